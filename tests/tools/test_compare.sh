#!/bin/sh
# cltrain-probe compare: noise is no change, a slower row is found, and what cannot be compared is not.
. "$(dirname "$0")/probe_common.sh"

[ -n "$python" ] || { echo "no Python"; exit 0; }

# Benches out of a formula: base times with noise that is a pass's own, and some of each sample.
cat >"$folder/make.py" <<'END'
import copy, json, random, sys

# bursts: the part of passes that something else on the machine makes up to twice as long. restless: rows that never settle.
def bench(seed, drift=1.0, slow=(), slow_by=1.1, noise=0.01, passes=5, bursts=0.0, restless=()):
    rng = random.Random(seed)
    rows = []
    for i in range(90):
        limit = i < 12
        key = f"limit l{i}" if limit else f"op matmul {i}x8 8x8 -> {i}x8"
        base = 10.0 * 1.05 ** i * drift * (slow_by if i in slow else 1)
        all_passes = []
        for p in range(passes):
            own = base * (1 + abs(rng.gauss(0, noise)))
            own *= 1 + rng.random() if rng.random() < bursts else 1
            own *= 1 + 0.5 * rng.random() if i in restless else 1
            all_passes.append([own * (1 + abs(rng.gauss(0, noise / 2))) for s in range(3)])
        rows.append({"device": "d", "key": key, "kind": "limit" if limit else "op", "status": "ok", "reason": None,
                     "samples_us": all_passes})
    return {"schema": "cltrain-probe/1", "kind": "bench", "complete": True, "host": {"cpu": "c"},
            "devices": [{"id": "d", "name": "n", "platform": "p", "driver": "1"}], "results": rows}

def write(name, document):
    json.dump(document, open(f"{sys.argv[1]}/{name}.json", "w"))

a = bench(1)
write("a", a)
for seed in range(2, 22):
    write(f"same{seed}", bench(seed))
write("drift", bench(30, drift=1.3))
write("drift_slow", bench(31, drift=0.8, slow=(50,)))
write("slow", bench(32, slow=(50,)))
write("fast", bench(33, slow=(60,), slow_by=0.85))
write("all_ops", bench(34, slow=range(12, 90), slow_by=1.2))
for seed in range(40, 50):
    write(f"noisy{seed}", bench(seed, noise=0.08))
for seed in range(60, 70):
    write(f"bursts{seed}", bench(seed, passes=10, bursts=0.2, restless=range(20, 40)))
write("bursts_slow", bench(70, passes=10, bursts=0.2, restless=range(20, 40), slow=(60, 75), slow_by=1.15))
# Part of the ops slower, or part of the limits, and the rest as it was: no part of that is the machine's.
write("part", bench(80, slow=range(40, 75), slow_by=1.09))
write("limits", bench(81, slow=range(0, 7), slow_by=1.5))
# The limits moved apart: nothing below that is told.
apart = bench(82, slow=(50,), slow_by=1.15)
for i in range(12):
    apart["results"][i]["samples_us"] = [[us * (1.1 if i % 2 else 0.9) for us in p] for p in apart["results"][i]["samples_us"]]
write("apart", apart)
# One row, for what no other guard catches: with these passes in the one and the other.
def pair(name, passes_a, passes_b):
    for which, passes in (("a", passes_a), ("b", passes_b)):
        d = copy.deepcopy(a)
        d["results"][40]["samples_us"] = passes
        write(f"{name}_{which}", d)
pair("ranks", [[10.0, 20.0, 20.1]] * 5, [[11.5, 20.0, 20.1]] * 5) # the best samples differ, all together do not
pair("overlap", [[10.0 + 0.001 * i for i in range(3)]] * 2 + [[10.5, 10.501, 10.502]] * 3,
     [[10.5, 10.51, 10.52]] + [[10.9 + 0.001 * i for i in range(3)]] * 4) # the best passes overlap
pair("chance", [[10.0, 10.9, 11.5]] * 5, [[11.0, 11.3, 11.6]] * 5) # what is rare in one row is not in 90
pair("clear", [[10.0, 10.1, 10.2]] * 5, [[11.0, 11.1, 11.2]] * 5)
# Builds and transfers are the host's: the device's drift is not theirs; builds, which do not settle, have to change by more.
def host(name, seed, drift=1.0, by=1.0):
    d = bench(seed, drift=drift)
    for i, key in ((9, "limit build_cold"), (10, "limit build_cached"), (11, "limit upload_pinned")):
        d["results"][i]["key"] = key
        d["results"][i]["samples_us"] = [[us * by / drift for us in p] for p in d["results"][i]["samples_us"]]
    write(name, d)
host("host", 90)
host("host_drift", 91, drift=1.3)
host("host_some", 92, by=1.08)
host("host_all", 93, by=1.3)
def change(name, function):
    d = copy.deepcopy(a)
    function(d)
    write(name, d)
change("broken", lambda d: d["results"][40].update(status="wrong", reason="it is wrong", samples_us=[]))
change("suspect", lambda d: d["results"][40].update(status="suspect", reason="above the roofline"))
change("late", lambda d: d["results"][40].update(status="not-run", reason="no time was left for it", samples_us=[]))
change("less", lambda d: d["results"].pop(40))
# Nothing can be told: of most rows, or of all ops. What is broken stands out all the same.
def suspect(d, first, last):
    for r in d["results"][first:last]:
        r.update(status="suspect", reason="above the roofline")
change("suspects", lambda d: suspect(d, 12, 89))
change("all_suspect", lambda d: suspect(d, 0, 90))
def all_but_broken(d):
    suspect(d, 12, 89)
    d["results"][40].update(status="crashed", reason="signal 11", samples_us=[])
change("suspects_broken", all_but_broken)
change("half", lambda d: d.update(results=d["results"][:45]))
change("fewer", lambda d: d.update(results=d["results"][:44]))
change("missing", lambda d: d.update(results=d["results"][:15]))
few = copy.deepcopy(a)
few["results"] = few["results"][:20]
write("few", few)
few = copy.deepcopy(few)
suspect(few, 12, 20)
write("few_suspect", few)
# All rows by a factor, and what they say of themselves with them.
def times(d, by, told_by=None):
    for r in d["results"]:
        r["samples_us"] = [[us * by for us in p] for p in r["samples_us"]]
        us = sorted(us for p in r["samples_us"] for us in p)
        middle = us[len(us) // 2] * (told_by or by) / by
        r["time_us"] = {"p10": 0.9 * middle, "p50": middle, "p90": 1.1 * middle, "count": len(us)}
for by in (0.51, 1.96, 2.1, 0.47, 3, 1e-6):
    change(f"times{by:g}", lambda d: times(d, by))
change("contradicts", lambda d: times(d, 1e-6, 1))
def one(d, i, by):
    us = d["results"][i]["samples_us"][2][0] * by
    d["results"][i]["time_us"] = {"p10": us, "p50": us, "p90": us, "count": 15}
change("median_high", lambda d: one(d, 40, 2.2))
change("median_low", lambda d: one(d, 40, 0.4))
change("median_near", lambda d: one(d, 40, 1.8))
def error(d, **errors):
    d["results"][40]["check"] = {"nmse": 1e-9, "nmse_after": 1e-9, "limit": 1e-7, **errors}
change("error", lambda d: error(d, nmse=0.3))
change("error_after", lambda d: error(d, nmse_after=0.3))
change("no_error", lambda d: error(d))
def wrong(d):
    error(d, nmse=0.3)
    d["results"][40].update(status="wrong", reason="it is wrong")
change("wrong", wrong)
change("schema", lambda d: d.update(schema="cltrain-probe/2"))
change("kind", lambda d: d.update(kind="list"))
change("cut", lambda d: d.update(complete=False))
change("device", lambda d: d["devices"][0].update(id="e"))
change("nothing", lambda d: d.update(results=[]))
change("twice", lambda d: d["results"].append(d["results"][3]))
change("text", lambda d: d["results"][3].update(samples_us=[["fast"]]))
change("negative", lambda d: d["results"][3].update(samples_us=[[-1.0, 0]]))
change("many", lambda d: d["results"][3].update(samples_us=[[1.0] * 100000]))
def one_pass(d):
    for r in d["results"]:
        r["samples_us"] = r["samples_us"][:1]
change("onepass", one_pass)
change("some", lambda d: d["results"][5].update(samples_us=d["results"][5]["samples_us"][:2]))
change("nokey", lambda d: d["results"][3].pop("key"))
change("noresults", lambda d: d.update(results=7))
change("others", lambda d: [r.update(key="op " + str(i)) for i, r in enumerate(d["results"])])
text = json.dumps(a)
open(f"{sys.argv[1]}/cut_off.json", "w").write(text[:len(text) // 2])
open(f"{sys.argv[1]}/list.json", "w").write("[1, 2]")
open(f"{sys.argv[1]}/empty.json", "w").write("")
END
"$python" "$folder/make.py" "$folder" || exit 1
a=$folder/a.json

# compare CODE WORDS FILE: the words on stdout.
compare() {
    expect "$1" "" compare "$a" "$folder/$3.json"
    says "$2"
}

expect 0 "" compare "$a" "$a"
says "90 the same, 0 faster, 0 slower"
for seed in 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21; do
    compare 0 "90 the same, 0 faster, 0 slower" "same$seed"
done
for seed in 40 41 42 43 44 45 46 47 48 49; do compare 0 "0 faster, 0 slower" "noisy$seed"; done
for seed in 61 62 63 64 65 66 67 68 69; do
    expect 0 "" compare "$folder/bursts60.json" "$folder/bursts$seed.json"
    says "90 the same, 0 faster, 0 slower"
done
expect 1 "" compare "$folder/bursts60.json" "$folder/bursts_slow.json"
says "88 the same, 0 faster, 2 slower"
says "slower    op matmul 60x8"
says "rows that differed more from pass to pass"
compare 0 "90 the same, 0 faster, 0 slower" drift
says "% slower in B, which is taken out"
compare 1 "89 the same, 0 faster, 1 slower" slow
says "slower    op matmul 50x8"
compare 1 "89 the same, 0 faster, 1 slower" drift_slow
compare 0 "89 the same, 1 faster, 0 slower" fast
compare 1 "12 the same, 0 faster, 78 slower" all_ops
compare 1 "55 the same, 0 faster, 35 slower" part
compare 1 "83 the same, 0 faster, 7 slower" limits
compare 0 "90 the same, 0 faster, 0 slower" apart
expect 0 "" compare "$folder/host.json" "$folder/host_drift.json"
says "90 the same, 0 faster, 0 slower"
expect 1 "" compare "$folder/host.json" "$folder/host_some.json"
says "89 the same, 0 faster, 1 slower"
says "slower    limit upload_pinned"
expect 1 "" compare "$folder/host.json" "$folder/host_all.json"
says "87 the same, 0 faster, 3 slower"
for name in ranks overlap chance; do
    expect 0 "" compare "$folder/${name}_a.json" "$folder/${name}_b.json"
    says "90 the same, 0 faster, 0 slower"
done
expect 1 "" compare "$folder/clear_a.json" "$folder/clear_b.json"
says "89 the same, 0 faster, 1 slower"
compare 0 "0 broken" suspect
says "1 of which nothing can be told"
compare 0 "1 gone" late
compare 1 "1 broken" broken
says "ok -> wrong: it is wrong"
compare 0 "1 gone" less
expect 0 "" compare "$folder/less.json" "$a"
says "1 appeared"
expect 0 "" compare "$folder/broken.json" "$a"
says "1 fixed"
expect 0 "" compare --threshold 20 "$a" "$folder/slow.json"

# Half of the rows have to be there, and some of the ops.
compare 0 "45 the same" half
refuse "of 90 rows that are ok in the first bench, 44 can be told of" compare "$a" "$folder/fewer.json"
refuse "of 90 rows that are ok in the first bench, 15 can be told of" compare "$a" "$folder/missing.json"
refuse "of 90 rows that are ok in the first bench, 13 can be told of" compare "$a" "$folder/suspects.json"
refuse "of 90 rows that are ok in the first bench, 0 can be told of" compare "$a" "$folder/all_suspect.json"
refuse "of 8 ops that are ok in the first bench, none can be told of" compare "$folder/few.json" "$folder/few_suspect.json"
compare 1 "1 broken" suspects_broken
expect 0 "" compare "$folder/missing.json" "$a"
says "75 appeared"

# The machine's is no more than a factor of two.
compare 0 "90 the same, 0 faster, 0 slower" times0.51
compare 0 "90 the same, 0 faster, 0 slower" times1.96
compare 1 "0 the same, 0 faster, 90 slower" times2.1
compare 1 "0 the same, 0 faster, 90 slower" times3
for by in 0.47 1e-06; do compare 0 "0 the same, 90 faster, 0 slower" "times$by"; done

# Rows that contradict themselves, in either file.
refuse "a result is damaged: its samples and its median contradict each other: 'limit l0'" compare "$a" "$folder/contradicts.json"
for name in median_high median_low; do
    refuse "contradict each other: 'op matmul 40x8" compare "$a" "$folder/$name.json"
    refuse "$folder/$name.json: a result is damaged" compare "$folder/$name.json" "$a"
done
compare 0 "90 the same" median_near
for name in error error_after; do
    refuse "it is ok, with an error above its limit: 'op matmul 40x8" compare "$a" "$folder/$name.json"
done
compare 0 "90 the same" no_error
compare 1 "1 broken" wrong
expect 1 "" compare --json "$a" "$folder/slow.json"
cp "$out" "$folder/compared.json"
valid "$folder/compared.json"
json "$folder/compared.json" 'o["verdict"] == "worse" and [r["change"] for r in o["rows"]].count("slower") == 1'
json "$folder/compared.json" 'abs([r for r in o["rows"] if r["change"] == "slower"][0]["time_ratio"] - 1.1) < 0.03'

# Not comparable: 2, a reason, nothing on stdout.
refuse "its schema is 'cltrain-probe/2'" compare "$a" "$folder/schema.json"
refuse "it is not a bench" compare "$a" "$folder/kind.json"
refuse "the bench was cut short" compare "$folder/cut.json" "$a"
refuse "the device's id is 'd' and 'e'" compare "$a" "$folder/device.json"
refuse "it has no results" compare "$a" "$folder/nothing.json"
refuse "it has no results" compare "$a" "$folder/noresults.json"
refuse "stands there twice" compare "$a" "$folder/twice.json"
refuse "a result has no key" compare "$a" "$folder/nokey.json"
refuse "no row was measured in 3 passes" compare "$a" "$folder/onepass.json"
expect 0 "" compare "$a" "$folder/some.json"
says "1 of which nothing can be told, in fewer than 3 passes"
refuse "no row is there in both" compare "$a" "$folder/others.json"
for bad in text negative many; do refuse "samples of a result are damaged" compare "$a" "$folder/$bad.json"; done
refuse "cut short, or no JSON" compare "$a" "$folder/cut_off.json"
refuse "cut short, or no JSON" compare "$folder/empty.json" "$a"
refuse "its schema is ''" compare "$a" "$folder/list.json"
refuse "nowhere.json" compare "$a" "$folder/nowhere.json"
refuse "two files" compare "$a"
refuse "one more" compare "$a" "$a" "$a"
refuse "--threshold '-3'" compare "$a" "$a" --threshold -3
if [ -w /dev/full ]; then
    "$program" compare "$a" "$a" >/dev/full 2>"$err"
    [ $? -eq 1 ] || fail "a full disk is no error"
fi

finish

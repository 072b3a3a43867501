#!/bin/sh
# cltrain-probe bench and shapes: real output of the schema, rows that crash or hang, bad input.
. "$(dirname "$0")/probe_common.sh"

cat >"$folder/small.txt" <<'END'
# a comment

forward          1 matmul 64x80 96x80^T -> 64x96
weight-gradient  2 matmul 64x96^T 64x80 -> 96x80
forward          1 conv2d k3 s1 p1 d1 g1 4x16x12x12 32x16x3x3 -> 4x32x12x12
update           1 adam 5000 5000 8 scalar 5000 5000 -> 5000
END

# Most of a bench's time goes to the device's limits: where ops are what is looked at, the others but two have no rows.
ops="only fma_f32|launch_waited|op "

# Some hang, which takes time and no processor: they do so meanwhile.
hang() {
    CLTRAIN_PROBE_TEST=$2 "$program" bench --models none --passes 1 $3 --json "$folder/$1.json" >"$folder/$1.out" 2>&1 </dev/null &
    echo $! >"$folder/$1.pid"
}

# ---- a bench ----

expect 0 "Measuring" bench --shapes "$folder/small.txt" --timeout 300 --seconds 900 --passes 1 --json "$folder/a.json" --csv "$folder/a.csv"
says "copy                 ok"
says "small"
cp "$out" "$folder/a.txt"
cp "$err" "$folder/a.err"
grep -q "matmul 64x80 96x80^T -> 64x96 .* ok " "$out" || fail "no matmul in the table"
valid "$folder/a.json"
a=$folder/a.json
json "$a" 'o["kind"] == "bench" and o["mode"] == "quick" and o["complete"] and len(o["results"]) == 19'
json "$a" 'all(results["limit " + k]["status"] == "ok" for k in ("fma_f32", "copy", "triad", "read", "local"))'
json "$a" 'all(results["limit " + k]["status"] == "ok" for k in ("launch_pipelined", "launch_waited", "build_cold"))'
json "$a" 'all(results["limit " + k]["bytes_per_second"] > 1e6 for k in ("upload_pinned", "download_pageable"))'
json "$a" 'all(r["status"] in ("ok", "unsupported", "suspect") for r in o["results"])'
json "$a" 'all((r["roof"].get("fraction", 0) > 0) == (r["roof"]["bound"] != "cache") and r["check"]["nmse"] <= 1e-7 for r in o["results"] if r["kind"] == "op" and r["status"] == "ok")'
json "$a" 'all(abs(r["flops_per_second"] * r["time_us"]["p50"] / 1e15 - 1) < 1e-6 for r in o["results"] if r["key"].startswith("limit fma") and r["status"] == "ok")'
json "$a" 'results["op matmul 64x96^T 64x80 -> 96x80"]["count"] == 2'
[ "$(wc -l <"$folder/a.csv")" -eq 20 ] || fail "the CSV has another number of rows"
head -n 1 "$folder/a.csv" | grep -q '^key,model,phase,count,status,p10_us' || fail "the CSV's head"
ls "$folder" | grep -q '\.part$' && fail "a temporary file was left"
# In several passes, of limits and of ops: so slow that none is above a roofline, which a busy machine may show too low.
several=$folder/several.json
CLTRAIN_PROBE_TEST="only fma_f32|launch|op ;slow=4 op " expect 0 "" bench --shapes "$folder/small.txt" --timeout 300 --seconds 900 --passes 3 --json "$several"
grep -q "compare can tell" "$err" && fail "three passes are not good enough to compare"
valid "$several"
json "$several" 'len(o["results"]) == 7 and all(len(r["samples_us"]) == 3 for r in o["results"] if r["status"] == "ok")'
expect 0 "" compare "$several" "$several"

CLTRAIN_PROBE_TEST="only ch" expect 0 "" bench --models none --seconds 900 --passes 1 --json - # launches, cached builds; batch norm
cp "$out" "$folder/b.json"
valid "$folder/b.json"
json "$folder/b.json" 'len(o["results"]) == 3 and all(r["kind"] == "limit" for r in o["results"])'

hang one "only triad|launch;hang limit triad" "--seconds 900 --timeout 30"
hang part "only triad|launch_waited;hang limit triad" "--seconds 60"
hang many "hang limit" "--seconds 38 --timeout 15"

# The schema wants the roofline of what is ok, and the part of it.
if [ -n "$python" ]; then
    for lack in 'del r["roof"]' 'r["roof"] = {"bound": "compute", "least_us": 1.0}'; do
        "$python" -c '
import json, sys
o = json.load(open(sys.argv[1]))
for r in [r for r in o["results"] if r["kind"] == "op"]: r.update(status="ok", reason=None); exec(sys.argv[2])
json.dump(o, open(sys.argv[3], "w"))' "$a" "$lack" "$folder/lacking.json" || fail "no document that lacks something"
        "$python" "$sources/tests/tools/validate.py" "$sources/docs/cltrain-probe.schema.json" "$folder/lacking.json" >/dev/null 2>&1 &&
            fail "the schema allows ops without a roofline: $lack"
    done
fi

# The medians are those of the samples, the fractions those of the roofline.
for one in "$a" "$several"; do
    json "$one" 'all(sum(map(len, r["samples_us"])) == r["time_us"]["count"] for r in o["results"] if r["status"] == "ok")'
    json "$one" 'all(abs(statistics.median(u for p in r["samples_us"] for u in p) / r["time_us"]["p50"] - 1) < 1e-6 and r["time_us"]["p10"] <= r["time_us"]["p50"] <= r["time_us"]["p90"] and (r["time_us"]["p10"] < r["time_us"]["p90"] or r["time_us"]["count"] < 2) for r in o["results"] if r["time_us"])'
done
json "$a" 'all(abs(r["roof"]["fraction"] * r["time_us"]["p50"] / r["roof"]["least_us"] - 1) < 1e-6 for r in o["results"] if "fraction" in r.get("roof", {}))'
json "$a" 'results["op adam 5000 5000 8 scalar 5000 5000 -> 5000"]["roof"]["bound"] != "compute"'
json "$a" 'all(abs(r["flops_per_second"] * r["time_us"]["p50"] / 1e6 / r["flops"] - 1) < 1e-6 for r in o["results"] if r["key"].startswith("op matmul") and r["status"] == "ok")'
grep -q "had no time" "$folder/a.err" && fail "ops had no time in a bench that had"

# bounds JSON CSV: what fits the cache is not held against the roofline of memory, and nothing else is without one but what ran faster.
bounds() {
    [ -n "$python" ] || return
    "$program" list --json >"$folder/list.json" 2>"$err"
    "$python" - "$1" "$2" "$folder/list.json" >"$out" 2>"$err" <<'END' || fail "bounds"
import csv, json, sys
bench, devices = json.load(open(sys.argv[1])), json.load(open(sys.argv[3]))["devices"]
cache = [d["facts"]["cache_bytes"] for d in devices if d["id"] == bench["devices"][0]["id"]][0]
memory = max(r["bytes_per_second"] for r in bench["results"] if r["key"] in ("limit copy", "limit triad", "limit read") and r["status"] == "ok")
told = {row["key"]: row for row in csv.DictReader(open(sys.argv[2]))}
ops = [r for r in bench["results"] if r["kind"] == "op" and r["status"] == "ok"]
assert ops
for r in ops:
    roof, row = r["roof"], told[r["key"]]
    if r["bytes"] <= cache: assert roof["bound"] != "memory", (r["key"], roof, cache)
    if r["bytes"] > cache and roof["bound"] == "cache": assert r["bytes"] / memory > r["time_us"]["p50"] / 1e6, (r, cache, memory)
    if roof["bound"] == "cache": assert set(roof) <= {"bound", "flops"}, roof
    if roof["bound"] == "memory": assert roof["fraction"] <= 1.2501, roof
    assert row["bound"] == roof["bound"] and (row["fraction"] == "") == (roof["bound"] == "cache"), row
END
}
bounds "$a" "$folder/a.csv"
adam=$([ -z "$python" ] || "$python" -c 'import json, sys; print([r.get("roof", {}).get("bound") for r in json.load(open(sys.argv[1]))["results"] if r["key"].startswith("op adam")][0])' "$a")
[ "$adam" != cache ] || grep -q '^adam 5000 .* ok .* -  *cache ' "$folder/a.txt" || fail "the table does not say that a cache bounds"

# Winograd's algorithm does a quarter of the arithmetic that is counted: it is held against the roofline with that, and so is nothing
# that is ok above the roofline by more than the margin.
for problem in "conv2d k3 s1 p1 d1 g1 16x128x16x16 128x128x3x3 -> 16x128x16x16" \
               "conv2d_grad_weight k3 s1 p1 d1 g1 16x128x16x16 16x128x16x16 -> 128x128x3x3"; do
    echo "forward 1 $problem"
done >"$folder/winograd.txt"
CLTRAIN_PROBE_TEST=$ops CLTRAIN_TUNE=off CLTRAIN_BACKENDS=reference,winograd expect 0 "" bench --shapes "$folder/winograd.txt" --timeout 300 --seconds 900 --passes 1 --json "$folder/winograd.json"
valid "$folder/winograd.json"
json "$folder/winograd.json" '[r["backend"] for r in o["results"] if r["kind"] == "op"] == ["winograd", "winograd"]'
json "$folder/winograd.json" 'all(abs(4 * r["roof"]["flops"] / r["flops"] - 1) < 1e-6 and r["roof"].get("fraction", 0) <= 1.2501 for r in o["results"] if r["kind"] == "op")'
json "$folder/winograd.json" 'all(abs(r["flops_per_second"] * r["time_us"]["p50"] / 1e6 / r["flops"] - 1) < 1e-6 for r in o["results"] if r["kind"] == "op" and r["status"] == "ok")'
# More than that is nothing.
CLTRAIN_TUNE=off CLTRAIN_BACKENDS=reference,winograd CLTRAIN_PROBE_TEST="$ops;slow=0.001 op " expect 0 "" bench --shapes "$folder/winograd.txt" --timeout 300 --seconds 900 --passes 1 --json "$folder/winograd.json"
json "$folder/winograd.json" '[r["status"] for r in o["results"] if r["kind"] == "op"] == ["suspect", "suspect"]'

# What takes the reference long, and cannot be cut into parts, is measured in every pass or in none.
echo "backward 5 batch_norm_grad 64x64x32x32 2x64 64 64x64x32x32 -> - 2x64" >"$folder/whole.txt"
for passes in 1 3; do
    CLTRAIN_PROBE_TEST=$ops expect 0 "" bench --shapes "$folder/whole.txt" --timeout 300 --seconds 900 --passes $passes --json "$folder/whole$passes.json"
    json "$folder/whole$passes.json" "[len(r['samples_us']) for r in o['results'] if r['kind'] == 'op' and r['status'] in ('ok', 'suspect')] == [$passes]"
done
"$program" compare "$folder/whole1.json" "$folder/whole3.json" >"$out" 2>"$err"
grep -q "^broken" "$out" && fail "a row of one pass is broken in a bench of three"

# ---- what cannot be is no number to quote ----

CLTRAIN_PROBE_TEST="only fma_f32|copy|read|local|launch_waited|upload_pinned;slow=0.000001 limit" expect 1 "nothing could be measured" bench --models none --seconds 900 --passes 1 --json "$folder/fast.json"
valid "$folder/fast.json"
for limit in fma_f32 copy read local launch_waited upload_pinned; do
    json "$folder/fast.json" "results[\"limit $limit\"][\"status\"] == \"suspect\" and \"very\" in results[\"limit $limit\"][\"reason\"]"
done
CLTRAIN_PROBE_TEST="$ops;slow=0.0001 op " expect 0 "" bench --shapes "$folder/small.txt" --timeout 300 --seconds 900 --passes 1 --json "$folder/fast.json" --csv "$folder/fast.csv"
valid "$folder/fast.json"
grep -q '^matmul 64x80 96x80^T -> 64x96  *suspect  *[0-9.]* .* - *- [a-z]' "$out" || fail "a suspect op has rates in the table"
grep -q '% of ' "$out" && fail "a suspect op has a part of the roof"
[ "$(grep -c '^"op .*,suspect,[^,]*,[^,]*,[^,]*,[0-9]*,,,,,"' "$folder/fast.csv")" -eq 4 ] || fail "a suspect op has rates in the CSV"
json "$folder/fast.json" 'not any(k in r for r in o["results"] for k in ("flops_per_second", "bytes_per_second") if r["kind"] == "op")'
json "$folder/fast.json" 'not any("fraction" in r.get("roof", {}) for r in o["results"])'
json "$folder/fast.json" 'all(r["status"] == "suspect" and ("times as fast as the measured roofline allows" in r["reason"] or "at the very most" in r["reason"]) for r in o["results"] if r["kind"] == "op")'

# What no device can do is suspect, whatever its peaks were measured as.
CLTRAIN_PROBE_TEST="$ops;slow=0.0000001 op " expect 0 "" bench --shapes "$folder/small.txt" --timeout 300 --seconds 900 --passes 1 --json "$folder/fast.json"
json "$folder/fast.json" 'all(r["status"] == "suspect" and "at the very most" in r["reason"] for r in o["results"] if r["kind"] == "op")'

# One sample, or two, have no spread. Of what takes long, as on a busy machine, there may be fewer than were asked for.
for few in 1 2; do
    CLTRAIN_PROBE_TEST="$ops;samples=$few" expect 0 "" bench --shapes "$folder/small.txt" --timeout 300 --seconds 900 --passes 1
    grep -q "compare can tell" "$err" && fail "a bench that leaves no file is not good enough to compare"
    words="[1-$few] samples*"
    grep -q "^launch_waited  *ok .*($words)" "$out" || fail "a limit of $few at most has a spread"
    [ "$(grep -c "^[a-z].* -> .*[0-9]  *$words " "$out")" -ge 2 ] || fail "no op of $few samples at most"
    grep -q '^[a-z].* -> .*[0-9]%  *[0-9-]' "$out" && fail "an op of $few samples at most has a spread"
done

# Ops that had no time: said at the end.
"$program" bench --shapes "$folder/small.txt" --seconds 0.3 --passes 1 --json "$folder/short.json" >"$out" 2>"$err" </dev/null
[ $? -le 1 ] || fail "a bench without time"
grep -q "^Measuring .*, for about 0.3 s$" "$err" || fail "so little time is told as none"
grep -q "^[1-4] of 4 ops had no time: give it more --seconds" "$err" || fail "no word of ops that had no time"
grep -q "measured in fewer than 3 passes: give it more --passes$" "$folder/a.err" || fail "no word of passes that were asked for and are too few"
n=$(sed -n 's/ of 4 ops had no time.*//p' "$err")
json "$folder/short.json" "sum(r['kind'] == 'op' and r['reason'] == 'no time was left for it' and r['status'] == 'not-run' for r in o['results']) == ${n:-0}"

# Too few passes to be compared, here for want of time: said where there is a file to compare.
for seconds in 3 6 12; do # it is short of three passes, and long enough for a row
    "$program" bench --models none --seconds $seconds --json "$folder/short.json" >"$out" 2>"$err" && break
done
n=$(sed -n 's/^compare can tell nothing of \([0-9]*\) of the \1 rows that are ok, measured in fewer than 3 passes: give it more --seconds, or run.*/\1/p' "$err")
json "$folder/short.json" "sum(r['status'] == 'ok' for r in o['results']) == ${n:-0} > 0"
refuse "no row was measured in 3 passes of both" compare "$folder/short.json" "$folder/short.json"

# Rates of what does next to nothing have digits, too.
echo "forward 1 matmul 1x1 1x1^T -> 1x1" >"$folder/tiny.txt"
echo "update 1 adam 12000000 12000000 8 scalar 12000000 12000000 -> 12000000" >>"$folder/tiny.txt" # from memory
CLTRAIN_PROBE_TEST="$ops|copy|triad|read" expect 0 "" bench --shapes "$folder/tiny.txt" --timeout 300 --seconds 900 --passes 1 --json "$folder/tiny.json" --csv "$folder/tiny.csv"
grep -q "matmul 1x1 1x1^T -> 1x1 .*%" "$out" || fail "no row of a tiny op"
grep -q ' 0\.00*\( \|$\)' "$out" && fail "a rate is printed as nothing"
bounds "$folder/tiny.json" "$folder/tiny.csv"

# ---- rows that end their process ----

CLTRAIN_PROBE_TEST="$ops;crash op conv2d" expect 0 "not to be believed" bench --shapes "$folder/small.txt" --timeout 300 --seconds 900 --passes 1 --json "$folder/c.json"
valid "$folder/c.json"
key='[r for r in o["results"] if r["key"].startswith("op conv2d")][0]'
json "$folder/c.json" "$key[\"status\"] == \"crashed\" and \"signal 6\" in $key[\"reason\"]"
json "$folder/c.json" 'results["op matmul 64x80 96x80^T -> 64x96"]["status"] in ("ok", "suspect")'
json "$folder/c.json" 'results["op adam 5000 5000 8 scalar 5000 5000 -> 5000"]["status"] in ("ok", "suspect")'
for hang in one part many; do
    wait "$(cat "$folder/$hang.pid")"
    echo $? >"$folder/$hang.code"
done
[ "$(cat "$folder/one.code") $(cat "$folder/part.code") $(cat "$folder/many.code")" = "0 0 1" ] || fail "exit codes of benches that hang"
json "$folder/one.json" 'results["limit triad"]["status"] == "timeout" and "30 s" in results["limit triad"]["reason"]'
json "$folder/one.json" 'results["limit launch_waited"]["status"] == "ok"'
# A hang takes a part of the time, and not that of the others; many do.
json "$folder/part.json" 'results["limit triad"]["status"] == "timeout" and "15 s" in results["limit triad"]["reason"]'
json "$folder/part.json" 'o["complete"] and [r["key"] for r in o["results"] if r["status"] not in ("ok", "unsupported")] == ["limit triad"]'
json "$folder/many.json" '3 <= sum("15 s" in r["reason"] for r in o["results"]) <= 6 and sum(r["reason"] == "no time was left for it" for r in o["results"]) >= 9'
expect 1 "" compare "$several" "$folder/c.json"
says "broken    op conv2d"

# ---- a driver that says that it launched something, and did not ----

# Of launches that repeat each other the first alone leaves the right result, and the times of all are of nothing: all of a kernel but the
# first are dropped, or all of these but one in eight.
pocl=$(cat "${OCL_ICD_VENDORS:-/etc/OpenCL/vendors}/pocl.icd" 2>/dev/null)
if [ -n "$pocl" ] && [ -f "$build/../faults/shim_icd.so" ]; then
    mkdir "$folder/shim"
    echo "$build/../faults/shim_icd.so" >"$folder/shim/shim.icd"
    grep -v conv2d "$folder/small.txt" >"$folder/dropped.txt"
    dropping() {
        CLTRAIN_PROBE_TEST=$ops SHIM_DROP=$1 OCL_ICD_VENDORS="$folder/shim" SHIM_DRIVER="$pocl" "$program" bench --shapes "$folder/dropped.txt" --timeout 300 --seconds 900 \
            --passes "$2" --json "$folder/dropped.json" >"$out" 2>"$err"
        got=$?
        valid "$folder/dropped.json"
        measured='[r for r in o["results"] if r["kind"] == "op"]'
    }
    dropping "" 1 # the driver is fine where it drops nothing
    [ $got -eq 0 ] || fail "a bench through the shim gave exit code $got"
    json "$folder/dropped.json" "{r['status'] for r in $measured} <= {'ok', 'suspect'} and len($measured) == 3"
    for drop in repeats 8; do
        dropping $drop $([ $drop = repeats ] && echo 1 || echo 3) # those that are looked at may all be the other ones
        [ $got -eq 1 ] || fail "a bench of launches that are dropped ($drop) gave exit code $got, not 1"
        json "$folder/dropped.json" "{r['status'] for r in $measured} == {'wrong'} and not any(r['time_us'] for r in $measured)"
        json "$folder/dropped.json" "all('did not run' in r['reason'] for r in $measured if 'matmul' in r['key'])"
        json "$folder/dropped.json" "not any(k in r for r in $measured for k in ('flops_per_second', 'bytes_per_second'))"
    done
fi

# A device that is gone in the middle: told, and no bench to compare with.
mkdir -p "$folder/vendors"
cp "${OCL_ICD_VENDORS:-/etc/OpenCL/vendors}/pocl.icd" "$folder/vendors"
CLTRAIN_PROBE_TEST="only fma|launch|load" OCL_ICD_VENDORS="$folder/vendors" "$program" bench --models none --seconds 120 --json "$folder/gone.json" >"$out" 2>"$err" &
child=$!
await grep -q "^Measuring" "$err" || fail "a bench does not begin to measure"
sleep "$(patience 2)"
rm "$folder/vendors/pocl.icd"
wait "$child"
got=$?
[ $got -eq 1 ] || fail "a device that vanishes gave exit code $got, not 1"
grep -q "the device was lost" "$err" || fail "no word of the device that vanished"
valid "$folder/gone.json"
json "$folder/gone.json" 'not o["complete"] and o["devices"][0]["status"] == "unsupported" and o["devices"][0]["reason"]'
json "$folder/gone.json" 'results["limit fma_f32"]["status"] == "ok"'
expect 2 "cut short" compare "$several" "$folder/gone.json"

# Told to stop: what was measured is written, as a bench that was cut short.
begun="^Measuring"
CLTRAIN_PROBE_TEST="only launch;hang launch_waited" interrupt 2 bench --full --seconds 300 --json "$folder/e.json"
valid "$folder/e.json"
json "$folder/e.json" 'not o["complete"]'
expect 2 "cut short" compare "$several" "$folder/e.json"

# ---- progress: one line of a terminal, however narrow that is ----

if [ -n "$python" ]; then
    for columns in 60 0; do # the line is 80 letters and more where there is room
        least=$((columns ? columns - 1 : 79))
        CLTRAIN_PROBE_TEST=$ops "$python" "$sources/tests/tools/narrow.py" $columns $least "$program" bench --shapes "$folder/small.txt" --timeout 300 --passes 1 --seconds 900 >"$out" 2>"$err" ||
            fail "progress on a terminal of $columns columns"
    done
fi

# ---- bad input ----

refuse "unknown option '--frobnicate'" bench --frobnicate
refuse "did you mean --shapes?" bench --shape x
refuse "--quick or --full" bench --quick --full
refuse "stdout is for one of" bench --json - --csv -
refuse "no shapes of a model 'vgg': there are convnet, mlp, resnet18" bench --models mlp,vgg
refuse "in place of" bench --models mlp --shapes "$folder/small.txt"
refuse "--passes: at most 5" bench --passes 6
refuse "--seconds '0'" bench --seconds 0
expect 1 "/nonexistent/a.json cannot be written" bench --models none --json /nonexistent/a.json
expect 1 "/nonexistent/a.csv cannot be written" bench --models none --csv /nonexistent/a.csv
expect 1 "nowhere.txt cannot be read" bench --shapes "$folder/nowhere.txt"
for line in "sideways 1 matmul 4x4 4x4 -> 4x4" "forward 0 matmul 4x4 4x4 -> 4x4" "forward 1 matmul 4x4 5x4 -> 4x4" \
            "forward 1 frobnicate 4x4 -> 4x4" "forward"; do
    echo "$line" >"$folder/bad.txt"
    refuse "bad.txt, line 1" bench --shapes "$folder/bad.txt"
done
head -c 3000 /dev/zero | tr '\0' 'a' >"$folder/bad.txt"
refuse "line 1 is too long" bench --shapes "$folder/bad.txt"
expect 1 "matches none" bench --device no-such-device

# ---- shapes ----

expect 0 "" shapes --model mlp:96 --sample 80 --batch 64
says "forward          1 matmul 64x80 96x80^T -> 64x96"
says "weight-gradient  1 matmul 64x96^T 64x80 -> 96x80"
grep -q '^update .* sgd ' "$out" || fail "no update among the shapes"
cp "$out" "$folder/mlp.txt"
CLTRAIN_PROBE_TEST=$ops expect 0 "" bench --shapes "$folder/mlp.txt" --timeout 300 --seconds 900 --passes 1 --csv -
says '"op matmul 64x80 96x80^T -> 64x96",mlp,forward,1,'
for file in "$sources"/tools/cltrain-probe/shapes/*.txt; do
    grep -q '^forward' "$file" && grep -q '^data-gradient' "$file" && grep -q '^weight-gradient' "$file" &&
        grep -q '^update' "$file" || fail "$file lacks a phase"
done
refuse "unknown model 'vgg'" shapes --model vgg

finish

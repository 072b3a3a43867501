"""make_pages.py BENCH FOLDER: documents out of a real bench: many ops, none, odd numbers, and texts that would be markup."""
import copy
import json
import random
import sys

bench = json.load(open(sys.argv[1], encoding="utf-8"))
base = {key: bench[key] for key in ("schema", "tool", "host", "time_utc")}
hack = "<script>window.hacked=1</script>"
quote = "\"'><img src=x onerror=window.hacked=1>&amp;</td></svg></style>"


def write(name, document):
    with open(f"{sys.argv[2]}/{name}.json", "w", encoding="utf-8") as file:
        json.dump(document, file)


def change(name, function, of=bench):
    document = copy.deepcopy(of)
    function(document)
    write(name, document)


def op(i, rng, status="ok", reason=None):
    kind = rng.choice(["matmul", "conv2d", "max_pool2d", "batch_norm_grad", "reduce", "adam", "frobnicate"])
    flops, bytes_ = 10 ** rng.uniform(3, 11), 10 ** rng.uniform(3, 9)
    us = max(1e-3 * flops / 100, 1e-3 * bytes_ / 20) * 10 ** rng.uniform(0, 1.5)
    samples = [[us * (1 + 0.01 * rng.random()) for _ in range(3)] for _ in range(5)]
    if status != "ok":
        samples = []
    return {"device": "d", "key": f"op {kind} {i}", "kind": "op", "status": status, "reason": reason, "samples_us": samples,
            "time_us": {"p10": us, "p50": us * 1.005, "p90": us * 1.01, "count": 15} if samples else None,
            "model": f"m{i // 40}", "phase": "forward", "count": 1 + i % 3, "problem": f"{kind} {i}x64 64x{i} -> {i}x{i}",
            "backend": rng.choice(["native#2", "reference", "winograd", "clblast", "clfft", "matrix", "another"]), "parameters": "", "flops": flops, "bytes": bytes_}


def limits(document):
    return [r for r in document["results"] if r["kind"] == "limit"]


rng = random.Random(1)
change("many", lambda d: d.update(results=limits(d) + [op(i, rng) for i in range(500 - 9)] +
                                  [dict(op(i, rng), status="suspect", reason="too fast") for i in range(500 - 9, 500)]))
change("none", lambda d: d.update(results=[]))
change("limits", lambda d: d.update(results=limits(d)))
bad = ["wrong", "crashed", "timeout", "build-failed", "unsupported"]
change("failed", lambda d: d.update(results=[dict(r, status="crashed", reason="signal 11", time_us=None, samples_us=[]) for r in limits(d)] +
                                    [op(i, rng, bad[i % 5], "it said no: " + "x" * 200) for i in range(25)]))


def markup(d):
    for r in d["results"][-3:]:
        r.update(problem=hack + quote, key="op " + hack + r["key"], model=quote, phase=hack, backend=hack[:20], parameters=quote, status=hack, reason=quote)
    d["devices"][0].update(name=hack + "GPU", vendor=quote, platform="\u202eevil & <b>bold</b>", driver="\u0001\u0007" + hack, id=quote, reason=hack)
    d["host"].update(cpu=hack, kernel=quote)
    d["tool"].update(commit=hack, version=quote)
    d.update(mode=hack, time_utc=quote)


change("markup", markup)


def numbers(d):
    odd = [1e308, -1e308, 1e-308, 0, -1, 1e30, "12", None, True, [], {}]
    ops = [op(i, rng) for i in range(3 * len(odd))]
    for i, value in enumerate(odd):
        ops[3 * i]["flops"] = value
        ops[3 * i + 1]["bytes"] = value
        ops[3 * i + 2]["time_us"] = {"p10": value, "p50": value, "p90": value, "count": value}
        ops[3 * i + 2]["roof"] = {"bound": "compute", "least_us": value, "fraction": value}
    for r, value in zip(limits(d), odd):
        r.update(time_us={"p10": value, "p50": value, "p90": value}, samples_us=[[value]])
    d["results"] = limits(d) + ops + [op(99, rng), op(98, rng)]
    d["devices"][0].update(memory_bytes=10 ** 18, compute_units=-5, clock_mhz="fast")


change("numbers", numbers)
change("types", lambda d: d.update(results=[7, None, "x", [], {}, {"kind": "op"}, {"kind": "limit", "key": "limit copy", "status": "ok"}],
                                   devices=[3, {"name": 7}], host=[], tool="x", time_utc=4, mode={}, seconds="x"))
change("long", lambda d: d["devices"][0].update(name="N" * 20000, driver="d" * 5000))
change("stopped", lambda d: d.update(complete=False))


def told(d):
    """What has no figures, or not all: each op is named for why."""
    def row(name, p10=90.0, p50=100.0, p90=120.0, count=15, bound="memory", fraction=0.5, status="ok", flops=2e6, bytes_=4e6, **more):
        samples = [[p50 * (1 + 0.01 * i) for i in range(count)]] if p50 > 0 and count > 0 else [[100.0]]
        return dict(op(0, random.Random(2)), key="op " + name, problem=name, status=status, reason="it is so" if status != "ok" else None, samples_us=samples,
                    time_us={"p10": p10, "p50": p50, "p90": p90, "count": count}, roof=dict({"bound": bound}, **({"fraction": fraction, "least_us": 50.0} if fraction else {})),
                    model="m", backend="native", parameters="", flops=flops, bytes=bytes_, **more)
    odd = {"p10": -5, "p50": 0, "p90": 1e308, "count": -7}
    d["results"] = [dict(limits(d)[0], key="limit copy", status="ok", reason=None, samples_us=[[1e5] * 4], time_us={"p10": 9e4, "p50": 1e5, "p90": 1.25e5, "count": 4}),
                    dict(limits(d)[0], key="limit read", status="ok", reason=None, samples_us=[[1e5] * 2], time_us={"p10": 9e4, "p50": 1e5, "p90": 1.25e5, "count": 2}),
                    dict(limits(d)[0], key="limit triad", status="ok", reason=None, samples_us=[[-1.0]], time_us=odd),
                    row("whole"), row("cached", bound="cache", fraction=None), row("old_cached", fraction=5.53), row("near", fraction=1.1),
                    row("winograd", bound="compute", fraction=2.5), row("launched", bound="launch", fraction=1.5),
                    row("suspect", fraction=13.0, status="suspect"), row("suspect_wrong", fraction=0.7, status="wrong"),
                    row("single", p10=100.0, p90=100.0, count=1), row("double", count=2), row("three", count=3),
                    row("odd", p10=-5, p50=0, p90=1e308, count=-7), row("odd_p10", p10=-5), row("odd_p50", p50=0), row("odd_p90", p90=1e308), row("odd_count", count=-7),
                    row("turned", p10=120.0, p90=90.0), row("odd_amounts", flops=-2e6, bytes_=1e300), row("odd_fraction", fraction=-3),
                    dict(row("odd_other"), other_backends=[{"backend": "reference", "status": "ok", "reason": None, "row": "reference", "parameters": "", "time_us": odd}])]


change("told", told)
change("one", lambda d: d.update(results=limits(d) + [op(7, rng)]))


def steady(d, slow=None):
    ops = [r for r in d["results"] if r["kind"] == "op"]
    for r in d["results"]:
        if r["status"] != "ok":
            continue
        us = r["time_us"]["p50"] * (1.5 if ops and r is ops[0] and slow else 1)
        r["samples_us"] = [[us * (1 + 0.002 * rng.random()) for _ in range(3)] for _ in range(5)]


change("steady", steady)
change("slow", lambda d: steady(d, True))
change("steady_once", lambda d: [steady(d)] + [r.update(samples_us=r["samples_us"][:1]) for r in d["results"]])
change("elsewhere", lambda d: d["devices"][0].update(id="another", name="Another"))
change("schema", lambda d: d.update(schema="cltrain-probe/2"))
change("kind", lambda d: d.update(kind="poem"))
change("noresults", lambda d: d.pop("results"))
for i, (model, measured) in enumerate([("mlp", 1234.5), ("convnet", None), (hack, "x"), ("huge", 1e300)]):
    write(f"model{i}", dict(base, kind="model", model={"text": model, "batch": 64}, predicted={"step_us": 1300.0 * 10 ** i, "error": 0.1},
                            measured={"step_us": measured} if measured else None))
write("model6", dict(base, kind="model", model="none", batch=64, predicted_us=7654321.0, measured_us=7654321.0, error_band_fraction=0.1))
write("model4", dict(base, kind="model", devices=bench["devices"], status="ok", reason=None, largest_batch=4096, memory={"total_bytes": 3 << 20},
                    model={"name": "convnet", "text": "convnet 48x3x32x32", "sample": "3x32x32", "classes": 10, "batch": 48},
                    predicted={"step_us": 31415.9, "error": 0.071}, measured={"step_us": 30000.0}))
write("model5", dict(base, kind="model", devices=bench["devices"], status="crashed", reason="it ended by signal 11", model={"text": "resnet18 9x3x32x32"},
                    predicted=None, measured=None, memory=None, largest_batch=None))
write("recommend", dict(base, kind="recommend", devices=bench["devices"], model={"text": "mlp:32 16x8"}, together={"ranks": 2, "step_us": 500.0, "gain": 1.4},
                        ranking=[{"rank": 1, "device": bench["devices"][0]["id"], "status": "ok", "batch": 16, "step_us": 700.0, "samples_per_second": 22857.0,
                                  "error": 0.1, "largest_batch": 4096, "share": 10, "reasons": ["the fastest " + hack, 7]},
                                 {"rank": 2, "device": "elsewhere", "status": "timeout", "batch": None, "step_us": None, "share": 0, "reasons": None}, 8]))
text = json.dumps(bench)
open(f"{sys.argv[2]}/half.json", "w").write(text[:len(text) // 2])
open(f"{sys.argv[2]}/nan.json", "w").write(text.replace('"flops": ', '"flops": NaN, "x": ', 1))
open(f"{sys.argv[2]}/bytes.json", "wb").write(text.encode().replace(b'"name": "', b'"name": "\xff\xfe<', 1))
open(f"{sys.argv[2]}/deep.json", "w").write("[" * 100000)

"""The tables of docs/onnx.md: page.py FOLDER RUN.json, from a run of `cltrain-conform --onnx FOLDER --json RUN.json`. Needs Python's onnx."""
import collections
import json
import pathlib
import re
import sys

import onnx

folder, run = pathlib.Path(sys.argv[1]), json.load(open(sys.argv[2], encoding="utf-8"))
ops, reasons, sums = collections.defaultdict(collections.Counter), collections.Counter(), collections.Counter()
for case in run["cases"]:
    results = [r for r in case["results"]]
    status = "passed" if results and all(r["status"] == "passed" for r in results) else next((r["status"] for r in results if r["status"] != "passed"), "skipped")
    name = case["id"].split("/", 1)[1]
    graph = onnx.load(folder / name / "model.onnx", load_external_data=False).graph
    op = "expanded" if name.endswith("_expanded") else graph.node[0].op_type if len(graph.node) == 1 else "several"
    sums[status] += 1
    ops[op][status] += 1
    if status != "passed":
        reason = next(r["reason"] for r in results if r["status"] == status) or "?"
        reasons[re.sub(r"[^ ]*/([^/ ]+):", r"\1:", reason)] += 1
print(f"{sum(sums.values())} cases: " + ", ".join(f"{n} {word}" for word, n in sums.most_common()) + ".\n")
print("| Op | Passed | Skipped | Failed |\n|---|---|---|---|")
for op in sorted(ops):
    c = ops[op]
    print(f"| {op} | {c['passed'] or ''} | {c['skipped'] or ''} | {sum(c.values()) - c['passed'] - c['skipped'] or ''} |")
print("\n| Why a case was skipped | Cases |\n|---|---|")
for reason, n in sorted(reasons.items(), key=lambda x: (-x[1], x[0])):
    print(f"| {reason} | {n} |")

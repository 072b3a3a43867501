"""page.py BENCH_JSON...: the tables of docs/performance.md from what tools/bench.sh wrote. Of rows in several files the last
file's count."""
import json
import sys


def number(value):
    return f"{value:.0f}" if value >= 1000 else f"{value:.3g}"


def table(rows, head, name, last=None, of=None):
    """`last`: one more column, whose values `of` tells."""
    columns = [*head, last] if last else head
    print("| " + " | ".join(columns) + " |\n|" + "---|" * len(columns))
    for r in rows:
        unit = r["unit"].replace("geometric mean of ", "mean ")
        cells = [name(r), number(r["cltrain"]), number(r["torch"]), unit, f"{r['ratio']:.2f}", f"±{50 * r['spread']:.0f} %"]
        if last:
            cells.append("-" if of(r) is None else f"{of(r):.2f}")
        print("| " + " | ".join(cells) + " |")
    print()


def main():
    by_name = {}
    for path in sys.argv[1:]:
        with open(path, encoding="utf-8") as file:
            by_name.update({r["name"]: r for r in json.load(file)["cases"] if "error" not in r})
    rows = list(by_name.values())
    head = ["case", "cltrain", "PyTorch", "unit", "ratio", "spread"]
    against = [r for r in rows if "reference" in r and not r["name"].startswith(("peak/conv/", "rows/"))]
    kinds = {"gemm": [], "conv": [], "rows": []}
    trained = []
    for r in rows:
        if "reference" not in r and not r["name"].startswith("adamw"):
            kinds.get(r["name"].split("/")[0], trained).append(r)

    print("## Training\n")
    table(trained, head, lambda r: r["name"])
    print("## Against the device\n")
    table(against, ["case", "cltrain", "reference", "unit", "part", "spread"], lambda r: f"{r['name']} (of the {r['reference']})")
    print("## Along rows\n")
    table(kinds["rows"], head, lambda r: r["name"].split("/", 1)[1], "part of a copy",
          lambda r: by_name[r["name"] + "/of-copy"]["ratio"])
    print("## Matrix products\n")
    table(kinds["gemm"], head, lambda r: r["name"].split("/", 1)[1])
    print("## Convolutions\n")
    table(kinds["conv"], ["layer (kernel, channels, outputs, size) / direction", *head[1:]],
          lambda r: r["name"].split("/", 1)[1], "ratio to channels_last", lambda r: r.get("ratio_channels_last"))


main()

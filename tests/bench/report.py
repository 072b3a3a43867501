"""Rows of the result, their means, and the table."""
import math
import statistics
import sys

import cases


def spread(values):
    """The width from the 10th to the 90th percentile, of the median."""
    ordered = sorted(values)

    def at(part):
        place = part * (len(ordered) - 1)
        low = int(place)
        high = min(low + 1, len(ordered) - 1)
        return ordered[low] + (place - low) * (ordered[high] - ordered[low])
    return (at(0.9) - at(0.1)) / at(0.5)


def row(name, unit, ours, theirs, smaller_is_better=False, reference=None):
    """Of each round's values; a ratio above 1 is in cltrain's favour."""
    a, b = statistics.median(ours), statistics.median(theirs)
    made = {"name": name, "unit": unit, "cltrain": a, "torch": b, "ratio": b / a if smaller_is_better else a / b,
            "rounds": len(ours), "spread": max(spread(ours), spread(theirs)), "spread_cltrain": spread(ours),
            "spread_torch": spread(theirs)}
    if reference:
        made["reference"] = reference
    return made


def geometric(values):
    return math.exp(statistics.fmean(math.log(value) for value in values))


def mean_row(name, rows):
    made = {"name": name, "unit": "geometric mean of GFLOP/s", "rounds": min(r["rounds"] for r in rows),
            "spread": statistics.median(r["spread"] for r in rows), "layers": len(rows)}
    made.update({key: geometric([r[key] for r in rows]) for key in ("cltrain", "torch", "ratio")})
    if "reference" in rows[0]:
        made["reference"] = rows[0]["reference"]
    if all("ratio_channels_last" in r for r in rows):
        made["ratio_channels_last"] = geometric([r["ratio_channels_last"] for r in rows])
    return made


def means(rows):
    """Over a network's distinct convolutions, each once: by direction and all; and against the peak."""
    good = [r for r in rows if "error" not in r and "direction" in r]
    ratios = [r for r in good if "reference" not in r]
    made = []
    for network in ("resnet18", "resnet50"):
        of_network = [r for r in ratios if r["network"] == network]
        for direction in cases.DIRECTIONS:
            chosen = [r for r in of_network if r["direction"] == direction]
            if chosen:
                made.append(mean_row(f"conv/{network}/geomean-{direction}", chosen))
        if of_network:
            made.append(mean_row(f"conv/{network}/geomean", of_network))
    for direction in cases.DIRECTIONS:
        chosen = [r for r in good if "reference" in r and r["direction"] == direction]
        if chosen:
            made.append(mean_row(f"peak/conv3x3-{direction}", chosen))
    return made


def targets(rows):
    """What the rows have to reach, and whether they do."""
    by_name = {r["name"]: r for r in rows}
    made = []
    for name, key, relation, wanted in cases.TARGETS:
        value = by_name.get(name, {}).get(key)
        if value is not None:
            reached = value >= wanted if relation == ">=" else value <= wanted
            made.append({"name": name, "of": key, "value": value, "relation": relation, "wanted": wanted,
                         "reached": reached})
    return made


# ---- text ----

def number(value):
    if value is None:
        return "-"
    return f"{value:.0f}" if value >= 1000 else f"{value:.4g}"


def line(r):
    left = f"{r['name']:<46}"
    if "error" in r:
        return f"{left} FAILED: {r['error']}"
    unit = r["unit"].replace("geometric mean of ", "mean ")
    reference = f"  of the {r['reference']}" if "reference" in r else ""
    if "ratio_channels_last" in r:
        reference += f"  ({r['ratio_channels_last']:.2f} in channels_last)"
    return (f"{left} {number(r['cltrain']):>9} {number(r['torch']):>9} {unit:<12} {r['ratio']:>6.2f}  "
            f"+-{50 * r['spread']:.0f} %{reference}")


def head(cltrain, torch, given):
    blas = ", ".join(name for name in torch["libraries"] if "blas" in name or "mkl" in name) or torch["blas"]
    return (f"cltrain on {cltrain['device']} ({cltrain['platform']}), PyTorch {torch['torch_version']} "
            f"({blas}; oneDNN {'yes' if torch['mkldnn'] else 'no'}), {given.threads} threads each, "
            f"{given.rounds} rounds")


def table(result):
    lines = [f"{'case':<46} {'cltrain':>9} {'PyTorch':>9} {'':<12} {'ratio':>6}"]
    lines += [line(r) for r in result["cases"]]
    if result["targets"]:
        lines += ["", "what is to be reached:"]
        lines += [f"  {t['name']:<44} {number(t['value']):>9} {t['relation']} {t['wanted']:<6g} "
                  f"{'yes' if t['reached'] else 'NO'}" for t in result["targets"]]
    lines.append(f"\nPyTorch {result['torch_version']}; {result['seconds']:.0f} s; PyTorch's side used "
                 f"{100 * result['torch_idle_cpu']:.1f} % of a processor in cltrain's turns")
    if result["others_cpu"] > 0.1:
        lines.append(f"Beware: others took {result['others_cpu']:.1f} processors of this machine meanwhile, so these "
                     "are no numbers of a quiet one. Threads that wait for one another, PyTorch's above all, suffer "
                     "most; \"cpu_ratio\" in the file compares processor time.")
    return "\n".join(lines)


def warn_of_slow_blas(torch):
    known = ("openblas", "mkl", "blis", "armpl")
    if torch["blas"] == "generic" and not any(word in name for name in torch["libraries"] for word in known):
        print("warning: this PyTorch has a BLAS without vectors, so that its matrix products and small models are "
              "slower than they need be; Debian's libopenblas0-pthread helps", file=sys.stderr)

"""The limits that `cltrain-probe bench` reports for a CPU device, against loops of the host's own on as many threads.

    limits.py PROBE HOST_LOOPS [TURNS]

By turns, so that what the machine does meanwhile meets both. Judged are the best samples that the benches report, of all turns,
against the best of the host's tries, as STREAM's are: on a shared machine medians of one turn and the next differ by a factor of
two. They are printed too, with their ratio in each turn. The multiply-adds are held against a loop in the processor's own vector
instructions, of which at least 0.9 is wanted; the copy against STREAM's (McCalpin 1995), of which it is to be within 15 %.
"""
import json
import os
import statistics
import subprocess
import sys

RATES = {"fma_f32": ("flops_per_second", "GFLOP/s", 0.9, None), "copy": ("bytes_per_second", "GB/s", 0.85, 1.15)}


def ask(*command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=120)
    if done.returncode:
        sys.exit(f"{command[0]}: exit code {done.returncode}: {done.stderr.strip()[-500:]}")
    return json.loads(done.stdout)


def bench(probe):
    """What it reports, by limit, and the device."""
    document = ask(probe, "bench", "--models", "none", "--passes", "1", "--json", "-")
    rows = {r["key"]: r for r in document["results"]}
    told = {}
    for name, (member, _, _, _) in RATES.items():
        row = rows["limit " + name]
        if row["status"] != "ok":
            sys.exit(f"{name}: {row['status']}: {row['reason']}")
        best = row[member] * row["time_us"]["p50"] / min(min(samples) for samples in row["samples_us"])
        told[name] = {"median": row[member], "best": best}
    return told, document["devices"][0]


def judge(name, turns):
    _, unit, least, most = RATES[name]
    ratios = [b[name]["median"] / h[name]["median"] for b, h in turns]
    reported = statistics.median(b[name]["median"] for b, _ in turns)
    host = statistics.median(h[name]["median"] for _, h in turns)
    best, host_best = max(b[name]["best"] for b, _ in turns), max(h[name]["best"] for _, h in turns)
    ratio = best / host_best
    right = ratio >= least and (most is None or ratio <= most)
    wanted = f"at least {least}" if most is None else f"{least} to {most}"
    print(f"{name}: bench {1e-9 * best:.2f} {unit}, host {1e-9 * host_best:.2f}: ratio {ratio:.3f} ({wanted}):"
          f" {'ok' if right else 'MISSED'}; medians {1e-9 * reported:.2f} and {1e-9 * host:.2f},"
          f" by turns {' '.join(f'{r:.3f}' for r in ratios)}")
    return right


def main():
    probe, loops = sys.argv[1:3]
    n_turns = int(sys.argv[3]) if len(sys.argv) > 3 else 7
    turns = []
    _, device = bench(probe)  # what is compiled first is compiled here
    if device["type"] != "cpu" or "Portable" not in device["platform"]:
        print(f"{device['name']} ({device['platform']}) is no CPU whose threads are the host's: skipped")
        sys.exit(77)
    threads = str(min(device["compute_units"], os.cpu_count()))
    for _ in range(n_turns):
        host = ask(loops, threads)
        if not host["fma_f32"]["best"]:
            print("no loop for this processor: skipped")
            sys.exit(77)
        turns.append((bench(probe)[0], host))
    sys.exit(0 if all([judge(name, turns) for name in RATES]) else 1)


main()

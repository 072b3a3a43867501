"""Runs cltrain and PyTorch by turns on the same cases and compares. tools/bench.sh starts it.

    bench.py WORKER PYTHON [--quick] [--cases a,b] [--output FILE] [--rounds N] [--threads N] [--torch-device D]

Each case is prepared once on both sides; then a round is a batch of repetitions on one side, a pause, one on
the other, a pause. The result is the median of the rounds' times."""
import argparse
import json
import math
import os
import pathlib
import resource
import shutil
import statistics
import sys
import tempfile
import time

import cases
import report
from sides import Side, SideError

HERE = pathlib.Path(__file__).resolve().parent
# After PyTorch's turn its threads spin for a while (OpenMP's some ms, OpenBLAS's some 100): only then cltrain's.
PAUSE_AFTER_CLTRAIN, PAUSE_AFTER_TORCH = 0.01, 0.15
WARM_UP = 0.05  # seconds of each turn that do not count: the processors and caches were another's
CHECK_TOLERANCE = 2e-4  # of the sum of sizes


def parse():
    parser = argparse.ArgumentParser(prog="bench.sh")
    parser.add_argument("worker")
    parser.add_argument("python")
    parser.add_argument("--quick", action="store_true", help="fewer cases and rounds: under 3 minutes")
    parser.add_argument("--cases", help="names or beginnings of names, separated by commas; groups: "
                        + ", ".join(cases.GROUPS))
    parser.add_argument("--output", default="bench.json")
    parser.add_argument("--rounds", type=int, help="of each case and side (default 7, quick 3)")
    parser.add_argument("--torch-device", default="cpu", choices=("cpu", "cuda"), help="PyTorch's device")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    given = parser.parse_args()
    if given.rounds is None:
        given.rounds = 3 if given.quick else 7
    given.seconds = 0.02 if given.quick else 0.1
    if given.rounds < 1 or given.threads < 1:
        parser.error("--rounds and --threads are 1 or more")
    return given


class Bench:
    def __init__(self, given):
        self.given = given
        self.rows = []
        self.idle = [0.0, 0.0]  # processor time that PyTorch's side took in cltrain's turns; their length
        self.peaks = {"fma": [], "copy": []}
        self.cltrain = self.cltrain_side({})
        self.torch = self.torch_side()

    def cltrain_side(self, environment):
        threads = str(self.given.threads)
        return Side([self.given.worker], {"POCL_MAX_PTHREAD_COUNT": threads, "LP_NUM_THREADS": threads, **environment})

    def torch_side(self):
        threads = str(self.given.threads)
        return Side([self.given.python, str(HERE / "worker.py"), threads, self.given.torch_device],
                    {"OMP_NUM_THREADS": threads, "OPENBLAS_NUM_THREADS": threads, "MKL_NUM_THREADS": threads,
                     "PYTHONDONTWRITEBYTECODE": "1"})

    # ---- what is asked for ----

    def wanted(self, name):
        chosen = self.given.cases
        return not chosen or any(name == word or name.startswith(word + "/") for word in chosen.split(","))

    # ---- rows ----

    def add(self, row):
        self.rows.append(row)
        print(report.line(row), file=sys.stderr, flush=True)

    def attempt(self, name, unit, run):
        """A row of what run() gives; what goes wrong is a row with "error"."""
        try:
            run()
        except (SideError, OSError, KeyError, ValueError, ZeroDivisionError) as error:
            self.add({"name": name, "unit": unit, "cltrain": None, "torch": None, "ratio": None,
                      "rounds": self.given.rounds, "spread": None, "error": str(error) or repr(error)})

    # ---- timed cases ----

    def turn_of_cltrain(self):
        self.cltrain.ask(do="time", seconds=WARM_UP)
        before, start = self.torch.cpu_seconds(), time.perf_counter()
        answer = self.cltrain.ask(do="time", seconds=self.given.seconds)
        self.idle[0] += self.torch.cpu_seconds() - before
        self.idle[1] += time.perf_counter() - start
        time.sleep(PAUSE_AFTER_CLTRAIN)
        return answer

    def turn_of_torch(self):
        self.torch.ask(do="time", seconds=WARM_UP)
        answer = self.torch.ask(do="time", seconds=self.given.seconds)
        time.sleep(PAUSE_AFTER_TORCH)
        return answer

    def measure_peaks(self):
        peaks = self.cltrain.ask(do="peaks")
        self.peaks["fma"].append(peaks["flops"] * 1e-9)
        self.peaks["copy"].append(peaks["bytes"] * 1e-9)
        return peaks

    def timed(self, case):
        request = {"do": "prepare", **case["request"]}
        ours = self.cltrain.ask(**request)
        theirs = self.torch.ask(**request)
        compare(ours, theirs)
        time.sleep(PAUSE_AFTER_TORCH)
        turns, peaks = ([], []), []
        for _ in range(self.given.rounds):
            turns[0].append(self.turn_of_cltrain())
            if case.get("against_peak") or case.get("against_copy"):
                peaks.append(self.measure_peaks())
            turns[1].append(self.turn_of_torch())
        rates = [[case["work"] / turn["seconds"] for turn in side] for side in turns]
        row = report.row(case["name"], case["unit"], *rates)
        row["cpu_ratio"] = median_of(turns[1], "cpu") / max(median_of(turns[0], "cpu"), 1e-9)
        row.update({key: facts[key] for facts, key in ((ours, "row"), (theirs, "layout"), (theirs, "foreach"))
                    if key in facts})
        row.update({key: case[key] for key in ("network", "direction", "kernel") if key in case})
        if "channels_last_seconds" in theirs:
            row["ratio_channels_last"] = row["cltrain"] * theirs["channels_last_seconds"] / case["work"]
        self.add(row)
        self.against_roof(case, rates[0], peaks)

    def against_roof(self, case, rates, peaks):
        if case.get("against_peak"):
            row = report.row("peak/" + case["name"].replace("gemm/", "gemm-"), case["unit"], rates,
                             [roof["flops"] * 1e-9 for roof in peaks], reference="multiply-add peak of the device")
            row.update({key: case[key] for key in ("network", "direction", "kernel") if key in case})
            self.add(row)
        if case.get("against_copy"):
            self.add(report.row(case["against_copy"], case["unit"], rates, [roof["bytes"] * 1e-9 for roof in peaks],
                                reference="copy kernel on the device"))

    def peak(self):
        self.cltrain.ask(do="close")
        if self.cltrain.ask(do="describe")["type"] != "cpu":
            return  # the host's loop says nothing of another device
        kernel, loop = [], []
        for _ in range(self.given.rounds):
            kernel.append(self.measure_peaks()["flops"] * 1e-9)
            loop.append(self.cltrain.ask(do="host_peak", threads=self.given.threads)["flops"] * 1e-9)
        self.add(report.row("peak/fma", "GFLOP/s", kernel, loop, reference="loop of intrinsics on the host"))

    # ---- fresh processes ----

    def first_step(self):
        request = {"do": "prepare", "kind": "train", "first": 1, **cases.MODELS["convnet"]}
        names = ("cold", "warm")
        ours, theirs = {name: [] for name in names}, {name: [] for name in names}
        for _ in range(self.given.rounds):
            folder = tempfile.mkdtemp(prefix="cltrain-bench-")
            try:
                for name in names:
                    ours[name].append(fresh(self.cltrain_side(caches(folder)), request))
                    theirs[name].append(fresh(self.torch_side(), request))
            finally:
                shutil.rmtree(folder, ignore_errors=True)
        for name in names:
            self.add(report.row(f"first_step/{name}", "s", ours[name], theirs[name], smaller_is_better=True))

    def memory(self):
        request = {"do": "prepare", "kind": "train", "first": 1, **cases.MODELS["resnet18"]}
        ours, theirs = [], []
        folder = tempfile.mkdtemp(prefix="cltrain-bench-")
        try:
            resident_step(self.cltrain_side(caches(folder)), request)  # the compilers are not what is measured
            for _ in range(self.given.rounds):
                ours.append(resident_step(self.cltrain_side(caches(folder)), request))
                theirs.append(resident_step(self.torch_side(), request))
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        self.add(report.row("memory", "MiB", ours, theirs, smaller_is_better=True))

    # ---- all ----

    def run(self):
        if self.wanted("peak"):
            self.attempt("peak/fma", "GFLOP/s", self.peak)
        for case in cases.timed(self.given.quick):
            if self.wanted(case["name"]):
                self.attempt(case["name"], case["unit"], lambda case=case: self.timed(case))
        for side in (self.cltrain, self.torch):
            side.ask(do="close")
        for name, unit, run in (("first_step", "s", self.first_step), ("memory", "MiB", self.memory)):
            if self.wanted(name):
                self.attempt(name, unit, run)
        for row in report.means(self.rows):
            self.add(row)

    def own_cpu(self):
        """Processor time of this process and all workers so far."""
        self_and_ended = sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF,
                                                                          resource.RUSAGE_CHILDREN))
        return self_and_ended + sum(side.cpu_seconds() for side in (self.cltrain, self.torch) if side.process)

    def result(self, seconds, others):
        torch = self.torch.ask(do="describe")
        return {"torch_version": torch.pop("torch_version"), **self.cltrain.ask(do="describe"),
                "threads": self.given.threads, "quick": self.given.quick, "torch": torch,
                "torch_idle_cpu": self.idle[0] / self.idle[1] if self.idle[1] else 0.0,
                "peaks": {name: statistics.median(values) for name, values in self.peaks.items() if values},
                "others_cpu": others / seconds, "seconds": seconds, "cases": self.rows,
                "targets": report.targets(self.rows)}


def median_of(turns, key):
    return statistics.median(turn[key] for turn in turns)


def compare(ours, theirs):
    """Both computed the same, where that can be told: sums of sizes and weighted sums, parameters."""
    if ours.get("parameters") != theirs.get("parameters"):
        raise SideError(f"{ours['parameters']} parameters against PyTorch's {theirs['parameters']}")
    for a, b in zip(ours.get("check", []), theirs.get("check", [])):
        if not math.isclose(a, b, abs_tol=CHECK_TOLERANCE * abs(theirs["check"][0])):
            raise SideError(f"results differ: {ours['check']} against PyTorch's {theirs['check']}")


def busy_seconds():
    """Processor time that the whole machine used so far."""
    with open("/proc/stat", encoding="ascii") as file:
        user, nice, system, _, _, irq, softirq, steal = map(int, file.readline().split()[1:9])
    return (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")


def caches(folder):
    return {"XDG_CACHE_HOME": os.path.join(folder, "xdg"), "POCL_CACHE_DIR": os.path.join(folder, "pocl"),
            "MESA_SHADER_CACHE_DIR": os.path.join(folder, "mesa")}


def fresh(side, request):
    """Seconds from the start of the process to the end of its first step."""
    with side:
        side.start()
        side.ask(**request)
        return time.perf_counter() - side.started


def resident_step(side, request):
    """MiB that two steps need beside the process with its device or library loaded."""
    with side:
        idle = side.ask(do="memory")["resident"]
        side.ask(**request)
        side.ask(do="time", seconds=0)
        return (side.ask(do="memory")["peak"] - idle) / 2**20


def main():
    given = parse()
    bench = Bench(given)
    start = time.perf_counter()
    with bench.cltrain, bench.torch:
        torch = bench.torch.ask(do="describe")
        report.warn_of_slow_blas(torch)
        print(report.head(bench.cltrain.ask(do="describe"), torch, given), file=sys.stderr)
        busy = busy_seconds() - bench.own_cpu()
        bench.run()
        result = bench.result(time.perf_counter() - start, busy_seconds() - bench.own_cpu() - busy)
    text = json.dumps(result, indent=1, allow_nan=False)
    pathlib.Path(given.output).write_text(text + "\n", encoding="utf-8")
    print(report.table(result))
    return 0 if result["cases"] else "no case has such a name: " + given.cases


if __name__ == "__main__":
    sys.exit(main())

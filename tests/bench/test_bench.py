"""test_bench.py BENCH_SH BUILD: a quick run writes a JSON of the documented form, a case that cannot be is a row with an error,
and both sides compute the same in every kind of case. Says nothing of speed. Exit code 77: no PyTorch."""
import json
import os
import subprocess
import sys
import tempfile

import bench as benchmark
import cases
from sides import Side

ROW = {"name": str, "unit": str, "cltrain": float, "torch": float, "ratio": float, "rounds": int, "spread": float}


def no_constant(name):
    raise ValueError(name + " is not JSON")


def run(bench, build, folder, *arguments):
    output = os.path.join(folder, "bench.json")
    done = subprocess.run(["sh", bench, "--build", build, "--quick", "--rounds", "2", "--output", output, *arguments],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    if "no Python here imports" in done.stderr:
        sys.exit(77)
    print(done.stdout, done.stderr)
    if done.returncode:
        return done.returncode, None
    with open(output, encoding="utf-8") as file:
        return 0, (json.load(file, parse_constant=no_constant), done.stdout)


def check_row(row):
    for key, kind in ROW.items():
        assert isinstance(row[key], kind), (key, row)
    assert row["cltrain"] > 0 and row["torch"] > 0 and row["rounds"] == 2 and row["spread"] >= 0, row
    smaller = row["unit"] in ("s", "MiB")
    ratio = row["torch"] / row["cltrain"] if smaller else row["cltrain"] / row["torch"]
    assert abs(row["ratio"] / ratio - 1) < 1e-9, row


def small(request):
    """A case of the benchmark with few elements: what it computes matters here, and not how long it takes."""
    few = {"batch": 2, "outputs": 16, "size": 7, "rows": 6, "elements": 5000, "m": 24, "n": 40, "k": 56}
    made = {key: min(value, few[key]) if key in few else value for key, value in request.items()}
    if "model" in made:
        made["model"] = {"mlp:1024,1024": "mlp:24"}.get(made["model"], made["model"])
    return made


def check_both_sides(build, python):
    """Every kind of case, in every form that it has."""
    seen = set()
    with Side([os.path.join(build, "tests/bench/worker")], {}) as ours, \
            Side([python, os.path.join(os.path.dirname(benchmark.__file__), "worker.py"), "2", "cpu"], {}) as theirs:
        for case in cases.timed(False):
            request = small(case["request"])
            if request.get("model") in ("convnet", "resnet18"):  # their kernels take a minute to compile; system/convnet and parity train them
                continue
            key = json.dumps(request, sort_keys=True)
            if key in seen:
                continue
            seen.add(key)
            asked = {"do": "prepare", **request, "first": 1}
            answers = ours.ask(**asked), theirs.ask(**asked)
            benchmark.compare(*answers)
            assert answers[0].get("check") or answers[0]["loss"] > 0, (request, answers)
    kinds = {json.loads(key)["kind"] for key in seen}
    assert kinds == {"gemm", "conv", "rows", "train", "adamw"} and len(seen) > 40, (kinds, len(seen))


def main():
    bench, build = sys.argv[1:3]
    with tempfile.TemporaryDirectory() as folder:
        code, result = run(bench, build, folder, "--cases", "tiny,gemm/512")
        assert code == 0, code
        made, table = result
        check_both_sides(build, made["torch"]["python"])
        assert isinstance(made["torch_version"], str) and made["device"], made
        assert [row["name"] for row in made["cases"]] == ["gemm/512", "tiny"], made["cases"]
        for row in made["cases"]:
            check_row(row)
            assert row["name"] in table
        assert [target["name"] for target in made["targets"]] == ["tiny"]

        # No backend is left that computes them: every case fails, and the run says so in its rows.
        os.environ["CLTRAIN_BACKENDS"] = "clfft"
        code, result = run(bench, build, folder, "--cases", "gemm/512,tiny")
        assert code == 0, code
        for row in result[0]["cases"]:
            assert "no backend" in row["error"] and row["ratio"] is None, row
        del os.environ["CLTRAIN_BACKENDS"]
        assert run(bench, build, folder, "--cases", "nonsense")[0] == 1
        assert run(bench, build, folder, "--rounds", "0")[0] == 2
    print("all well")


main()

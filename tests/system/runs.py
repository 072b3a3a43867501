"""Whole runs of cltrain-train.

    runs.py PROGRAM CASE [LEAST_SQUARES]

Exit status 77: what the case needs is not on this machine.
"""
import glob
import json
import math
import os
import random
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time

PROGRAM = ""
LEAST_SQUARES = ""
FOLDER = ""
SKIPPED = 77


class Failure(Exception):
    pass


def check(condition, text):
    if not condition:
        raise Failure(text)


def skip(reason):
    print("skipped:", reason)
    sys.exit(SKIPPED)


def path(name):
    return os.path.join(FOLDER, name)


def start(*arguments, **environment):
    return subprocess.Popen([PROGRAM, *map(str, arguments)], stdin=subprocess.DEVNULL,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                            env={**os.environ, **environment})


def run(*arguments, expect=0, **environment):
    """What was printed on stdout and stderr."""
    process = start(*arguments, **environment)
    out, err = process.communicate()
    check(process.returncode == expect,
          f"{' '.join(map(str, arguments))} gave {process.returncode}, not {expect}:\n{out}{err}")
    return out, err


def train(*arguments, **environment):
    """The JSON report of a run."""
    return json.loads(run(*arguments, "--json", "--quiet", **environment)[0])


# ---- safetensors, as its specification says ----

def read_safetensors(file_path):
    """Fails unless the file is whole. Gives names with bytes, and the metadata."""
    with open(file_path, "rb") as file:
        content = file.read()
    check(len(content) >= 8, "shorter than the header's length")
    length = struct.unpack_from("<Q", content)[0]
    check(8 + length <= len(content), "the header is cut")
    header = json.loads(content[8:8 + length])
    metadata = header.pop("__metadata__", {})
    tensors, end = {}, 0
    for name, facts in sorted(header.items(), key=lambda item: item[1]["data_offsets"]):
        begin, stop = facts["data_offsets"]
        check(begin == end, f"a hole before {name}")
        check(stop - begin == math.prod(facts["shape"]) * {"F32": 4, "I64": 8}[facts["dtype"]],
              f"{name} has a wrong size")
        tensors[name] = content[8 + length + begin:8 + length + stop]
        end = stop
    check(8 + length + end == len(content), "the data is cut, or goes on")
    return tensors, metadata


def floats(data):
    return struct.unpack(f"<{len(data) // 4}f", data)


# ---- drivers ----

def oclgrind_environment():
    library = "/usr/lib/oclgrind/liboclgrind-rt-icd.so"
    if not os.path.exists(library):
        return None
    os.makedirs(path("oclgrind"), exist_ok=True)
    with open(path("oclgrind/oclgrind.icd"), "w") as file:
        file.write(library + "\n")
    return {"OCL_ICD_VENDORS": path("oclgrind")}


def has_device(words, environment):
    """Whether a device of that name is listed: one that is there and fails is a failure, not an absence."""
    out, _ = run("--list-devices", **environment)
    return words in out.lower()


# ---- cases ----

def convnet():
    """A short training reads most of the digits right, and twice the same gives the same."""
    run_it = ("convnet", "--data", "digits", "--epochs", 6, "--seed", 1)
    first = train(*run_it, "--export", path("a"))
    check(first["test_accuracy"] >= 0.93, f"accuracy {first['test_accuracy']}")
    for key in ("model", "device", "parameters", "epochs", "steps", "train_loss", "test_loss",
                "samples_per_second", "first_step_seconds", "peak_device_bytes"):
        check(key in first, f"the report has no {key}")
    train(*run_it, "--export", path("b"))
    with open(path("a"), "rb") as a, open(path("b"), "rb") as b:
        check(a.read() == b.read(), "two runs of one seed differ")
    print(f"accuracy {first['test_accuracy']:.4f}")


def resume():
    """6 epochs, and 3 with 3 more after a resume: the same bytes, weights and optimizer state."""
    recipes = (("convnet", "--optimizer", "sgd", "--momentum", 0.9, "--lr", 0.02),
               ("convnet", "--optimizer", "adamw"),
               ("mlp:48,24", "--optimizer", "sgd", "--momentum", 0.9, "--nesterov", "--schedule", "cosine",
                "--warmup", 10, "--clip-norm", 1))
    for model, *recipe in recipes:
        run_it = (model, "--data", "digits", "--epochs", 6, "--seed", 1, "--batch", 64, *recipe)
        train(*run_it, "--save", path("whole"))
        train(*run_it, "--stop-after", 3, "--save", path("half"))
        half, there = read_safetensors(path("half"))
        train(*run_it, "--resume", path("half"), "--save", path("joined"))
        whole, metadata = read_safetensors(path("whole"))
        joined, again = read_safetensors(path("joined"))
        check(int(metadata["cltrain.steps"]) == 2 * int(there["cltrain.steps"]), f"{there} is not half of {metadata}")
        check(metadata == again, f"metadata differ: {metadata} and {again}")
        check(list(whole) == list(joined), "other tensors")
        check(any(name.startswith("cltrain.optimizer.") for name in whole), "no optimizer state")
        differing = [name for name in whole if whole[name] != joined[name]]
        check(not differing, f"{model} {recipe}: the bytes differ of {differing}")
        moved = [name for name in whole if half[name] != whole[name]]
        check(len(moved) >= len(whole) // 2, f"only {moved} moved after the resume")
        print(f"{model} {recipe}: {len(whole)} tensors the same")


def earlier():
    """mlp-12-first and -last are the first and the last of three epochs, by earlier builds of the library, the last by one whose updates have no
    contraction, which changed their last bits. What goes on from the first ends with the bytes of the last where the device is the one that they
    were made on, else near its losses."""
    files = os.path.join(os.path.dirname(os.path.dirname(__file__)), "files")
    checkpoint = path("checkpoint.safetensors")
    shutil.copy(os.path.join(files, "mlp-12-first.safetensors"), checkpoint)
    report = train("mlp:12", "--data", "digits", "--epochs", 3, "--seed", 3, "--optimizer", "adam", "--resume", checkpoint, "--save", checkpoint)
    check(report["steps"] == 132, f"{report['steps']} steps")
    for name, value in (("train_loss", 1.996707656), ("test_loss", 1.866940621)):
        check(abs(report[name] / value - 1) < 1e-4, f"{name} is {report[name]}, not {value}")
    there, of = read_safetensors(os.path.join(files, "mlp-12-last.safetensors"))
    here, now = read_safetensors(checkpoint)
    check(list(there) == list(here), f"other tensors: {list(there)} and {list(here)}")
    devices = [json.loads(metadata["cltrain.choices"].splitlines()[0]) for metadata in (of, now)]
    if any(devices[0][key] != devices[1][key] for key in ("device", "platform", "driver")):
        skip(f"another device than {devices[0]['device']}, {devices[0]['driver']}: the losses agree, bytes are not compared")
    differing = [name for name in there if there[name] != here[name]]
    check(not differing, f"the bytes differ of {differing}")
    print(f"{len(there)} tensors the same")


def convnet_accuracy():
    accuracies = [train("convnet", "--data", "digits", "--epochs", 30, "--seed", seed)["test_accuracy"]
                  for seed in range(1, 6)]
    mean = sum(accuracies) / len(accuracies)
    print("accuracies", accuracies, "mean", mean)
    check(mean >= 0.98, f"mean accuracy {mean}")


def second_start():
    """In an own empty cache: what the first run builds, the second finds."""
    own = {"XDG_CACHE_HOME": path("cache"), "POCL_CACHE_DIR": path("pocl"), "CLTRAIN_PROGRAM_CACHE": "on"}
    os.makedirs(path("pocl"))
    run_it = ("convnet", "--data", "digits", "--steps", 5, "--seed", 1, "-v", "-v")
    report, first = run(*run_it, **own)
    check(", 0 from the cache" in first, f"the first run should have built all:\n{first}")
    _, second = run(*run_it, **own)
    check("so far 0 built" in second, f"the second run does not say what it built:\n{second}")
    lines = [line for line in second.splitlines() if "so far" in line]
    check(all("so far 0 built" in line for line in lines), "the second run built programs:\n" + "\n".join(lines))
    # PoCL's own cache taken away each time: the binaries hold the kernels all the same. The best of
    # three, for other programs may take the processors, against the one that built.
    kept = []
    for _ in range(3):
        shutil.rmtree(path("pocl"))
        os.makedirs(path("pocl"))
        kept.append(train(*run_it[:-2], **own)["first_step_seconds"])
    built = float(re.search(r"first step after ([0-9.]+) s", report)[1])
    print(f"first step {built:.2f} s; with the library's cache alone:", " ".join(f"{s:.3f} s" for s in kept))
    check(min(kept) < built / 4, "the second start is slow")


def kill(times=20):
    """kill -9 at random moments of a run that saves after each step."""
    checkpoint, seen, temporaries = path("model.safetensors"), 0, 0
    random.seed(20)
    command = ("mlp:256", "--data", "digits", "--epochs", 1000, "--save-every", 1, "--save", checkpoint)
    reference, _ = None, run("mlp:256", "--data", "digits", "--steps", 1, "--save", checkpoint)
    whole = set(read_safetensors(checkpoint)[0])
    for _ in range(times):
        before = int(read_safetensors(checkpoint)[1]["cltrain.steps"])
        process = start(*command, "--resume", checkpoint)
        time.sleep(0.05)
        while os.path.getmtime(checkpoint) == reference and process.poll() is None:
            time.sleep(0.002)
        time.sleep(random.uniform(0.0, 0.4))
        process.send_signal(signal.SIGKILL)
        process.communicate()
        reference = os.path.getmtime(checkpoint)
        tensors, metadata = read_safetensors(checkpoint)
        after = int(metadata["cltrain.steps"])
        check(set(tensors) == whole, "tensors are missing")
        check(after >= before, f"step {before} was there, {after} is now")
        check(all(math.isfinite(x) for x in floats(tensors["fc1.weight"])), "values that are none")
        seen += after > before
        temporaries = max(temporaries, len(glob.glob(checkpoint + ".*")))
    check(seen >= 0.4 * times, f"only {seen} of {times} kills met a run that had saved")
    check(temporaries <= 2, f"{temporaries} temporaries pile up")
    run("mlp:256", "--data", "digits", "--epochs", 1000, "--steps", after + 1, "--resume", checkpoint,
        "--save", checkpoint)
    check(not glob.glob(checkpoint + ".*"), "temporaries of dead runs are left")
    print(f"{times} kills, {seen} of them after saves; {after} steps in all; at most {temporaries} temporaries")


def kill_all():
    kill(50)


def drivers():
    """One step of the same convnet on each driver: equal losses."""
    run_it = ("convnet", "--data", "synthetic:1x8x8,classes=10,n=20", "--batch", 8, "--steps", 1, "--seed", 3)
    rusticl = {"RUSTICL_ENABLE": "llvmpipe"}
    candidates = [("pocl", {}), ("llvmpipe", rusticl), ("oclgrind", oclgrind_environment())]
    losses = {}
    for name, environment in candidates:
        if environment is None or not has_device(name, environment):
            print(name, "is not on this machine")
            continue
        report = train(*run_it, "--device", name, **environment)
        losses[name] = (report["train_loss"], report["test_loss"])
        print(name, report["device"], losses[name])
    if len(losses) < 2:
        skip("fewer than two OpenCL drivers")
    for k in range(2):
        values = [pair[k] for pair in losses.values()]
        check(max(values) - min(values) <= 1e-4, f"losses differ: {losses}")


def refuse(expect, words, *arguments, **environment):
    _, err = run(*arguments, expect=expect, **environment)
    check(words in err, f"the error does not say \"{words}\":\n{err}")
    print(err.strip().splitlines()[-1])


def refusals():
    short = ("mlp", "--epochs", 1, "--data")
    os.makedirs(path("none"))
    refuse(1, "no platform", *short, "digits", OCL_ICD_VENDORS=path("none"))
    refuse(1, "matches none", *short, "digits", "--device", "abacus")
    refuse(1, "matches none", *short, "digits", CLTRAIN_DEVICE="abacus")
    with open(path("text.csv"), "w") as file:
        file.write("a,b,label\n1,2,0\n3,four,1\n")
    refuse(1, "line 3, column 2", *short, f"csv:{path('text.csv')}")
    with open(path("label.csv"), "w") as file:
        file.write("a,b,label\n1,2,0\n3,4,-1\n")
    refuse(1, "line 3, column 3", *short, f"csv:{path('label.csv')}")
    os.makedirs(path("idx"))
    for part in ("train", "t10k"):
        with open(path(f"idx/{part}-images-idx3-ubyte"), "wb") as file:
            file.write(struct.pack(">IIII", 2051, 1000, 28, 28) + bytes(500))
        with open(path(f"idx/{part}-labels-idx1-ubyte"), "wb") as file:
            file.write(struct.pack(">II", 2049, 1000) + bytes(1000))
    refuse(1, "train-images-idx3-ubyte: its header tells of", *short, f"idx:{path('idx')}")
    run("mlp:8", "--data", "digits", "--steps", 1, "--save", path("other"))
    refuse(1, "fc1.weight", "mlp:9", "--data", "digits", "--steps", 2, "--resume", path("other"))
    refuse(1, "cannot be opened", "mlp", "--data", "digits", "--resume", path("missing"))
    with open(path("other"), "rb") as file:
        content = file.read()
    for length in (0, 7, 300, len(content) - 1):
        with open(path("cut"), "wb") as file:
            file.write(content[:length])
        refuse(1, path("cut"), "mlp:8", "--data", "digits", "--resume", path("cut"))


def garbage_cache():
    """Files of the program cache that are cut, empty, noise or another's are built anew in silence."""
    own = {"XDG_CACHE_HOME": path("cache"), "CLTRAIN_PROGRAM_CACHE": "on"}
    run_it = ("mlp", "--data", "digits", "--steps", 5, "--seed", 1)
    wanted = train(*run_it, **own)["train_loss"]
    files = sorted(glob.glob(path("cache/cltrain/programs/*.clbin")))
    check(len(files) > 1, "programs are not cached")
    contents = []
    for name in files:
        with open(name, "rb") as file:
            contents.append(file.read())
    random.seed(5)
    damages = {
        "empty": lambda i, whole: b"",
        "cut": lambda i, whole: whole[:len(whole) // 2],
        "noise": lambda i, whole: random.randbytes(len(whole)),
        "one bit": lambda i, whole: whole[:-64] + bytes([whole[-64] ^ 1]) + whole[-63:],
        "longer": lambda i, whole: whole + b"x",
        "another's": lambda i, whole: contents[i - 1],
    }
    for name, damage in damages.items():
        for talk in (("--json",), ("-v", "-v", "--json")):
            for i, whole in enumerate(contents):
                with open(files[i], "wb") as file:
                    file.write(damage(i, whole))
            out, err = run(*run_it, *talk, **own)
            check(json.loads(out)["train_loss"] == wanted, f"another result from a cache that is {name}")
            check("-v" in talk or "cache" not in err, f"the cache is spoken of:\n{err}")
        counts = [line for line in err.splitlines() if "so far" in line][-1]
        check(f"so far {len(files)} built, 0 from" in counts, f"{name}: not all was built anew: {counts}")
        _, err = run(*run_it, "-v", "-v", **own)
        check("so far 0 built" in err, f"{name}: the cache was not mended:\n{err}")


def linear():
    """On the data and the split of the run, `least_squares` solves the normal equations in double."""
    if not LEAST_SQUARES:
        skip("the program least_squares was not named")
    random.seed(8)
    with open(path("line.csv"), "w") as file:
        for _ in range(5000):
            row = [random.gauss(3, 2) for _ in range(5)]
            target = sum((i - 2) * x for i, x in enumerate(row)) + 0.5 + random.gauss(0, 0.3)
            file.write(",".join(f"{x:.9g}" for x in [*row, target]) + "\n")
    # On few samples the last steps' noise shows, unless the learning rate falls to nothing.
    for spec, seed, more in (("synthetic-regression:1000000x10,noise=0.1", 1, ()),
                             (f"csv:{path('line.csv')},regression=1,header=0", 2, ("--schedule", "cosine"))):
        learned = train("linear", "--data", spec, "--seed", seed, *more)["test_mse"]
        solved = float(subprocess.run([LEAST_SQUARES, spec, str(seed)], check=True, stdout=subprocess.PIPE).stdout)
        print(f"{spec}: mean squared error {learned:.6f}, of the least-squares solution {solved:.6f}")
        check(abs(learned / solved - 1) <= 0.02, "more than 2 % from the least-squares solution")


def logistic():
    table = os.path.join(os.path.dirname(__file__), "../../../shared/data/breast_cancer.csv")
    if not os.path.exists(table):
        skip("breast_cancer.csv is not beside the project")
    for seed in (1, 2, 3):
        report = train("logistic", "--data", f"csv:{table},skip=1,label=30", "--seed", seed)
        print(f"seed {seed}: accuracy {report['test_accuracy']:.4f}")
        check(report["test_accuracy"] >= 0.95, "less than 0.95")


def main():
    global PROGRAM, LEAST_SQUARES, FOLDER
    PROGRAM = os.path.abspath(sys.argv[1])
    LEAST_SQUARES = sys.argv[3] if len(sys.argv) > 3 else ""
    case = globals()[sys.argv[2].replace("-", "_")]
    FOLDER = tempfile.mkdtemp(prefix="cltrain-system-")
    try:
        case()
    except Failure as failure:
        print("FAILED:", failure)
        sys.exit(1)
    finally:
        shutil.rmtree(FOLDER, ignore_errors=True)


main()

"""Whole runs of cltrain-train by several processes, started by cltrain-run.

    ranks.py CLTRAIN_TRAIN CLTRAIN_RUN CASE [MODEL]

Exit status 77: what the case needs is not on this machine.
"""
import json
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

TRAIN = ""
RUN = ""
FOLDER = ""
SKIPPED = 77
MODEL = ""
WITHOUT_END = "100000"  # seconds: what waits for so long is told by end()
# Gradients of SGD are not blown up by what rounding does to them, as Adam's are: runs stay comparable.
SGD = ("--optimizer", "sgd", "--lr", 0.05, "--momentum", 0.9)


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


def begin(command, **environment):
    return subprocess.Popen([*map(str, command)], stdin=subprocess.DEVNULL, stdout=open(path("out"), "w"),
                            stderr=open(path("err"), "w"), env={**os.environ, **environment})


def said(name):
    with open(path(name)) as file:
        return file.read()


def end(process, expect=0):
    """Waits for it; expect: its status, None: any."""
    try:
        process.wait(timeout=240)
    except subprocess.TimeoutExpired:
        process.terminate()
        process.wait()
        raise Failure("it hangs:\n" + said("err"))
    check(expect in (None, process.returncode), f"exit {process.returncode}, not {expect}:\n{said('out')}{said('err')}")


def report():
    """The last one: a rank that is killed when others are done has all begun again."""
    text = "".join(re.sub(r"^\[rank \d+\] ", "", line) for line in open(path("out")))
    return json.loads(text[text.rfind("\n{\n") + 1:])


def alone(*arguments, **environment):
    end(begin([TRAIN, MODEL, "--data", "digits", "--seed", 1, *arguments, "--json", "-q"], **environment))
    return report()


def command(n, launcher, arguments):
    return [RUN, "-n", n, *launcher, "--", TRAIN, MODEL, "--data", "digits", "--seed", 1, *arguments, "--json"]


def by_shell(script, arguments):
    """A command whose ranks run a script of the shell in the place of TRAIN, which it starts by exec with "$@"."""
    at = arguments.index(TRAIN)
    return [*arguments[:at], "sh", "-c", script, "sh", *arguments[at + 1:]]


def together(n, *arguments, launcher=(), **environment):
    end(begin(command(n, launcher, arguments), **environment))
    return report()


def compare(what, got, wanted, tolerance):
    for key in ("train_loss", "test_loss"):
        difference = abs(got[key] / wanted[key] - 1)
        print(f"{what}: {key} {got[key]:.9g}, wanted {wanted[key]:.9g}: {difference:.1e} apart")
        check(difference <= tolerance, f"more than {tolerance}")


def ranks_of(launcher_pid):
    """Process ids by rank."""
    found = {}
    for entry in os.listdir("/proc"):
        try:
            with open(f"/proc/{entry}/environ", "rb") as file:
                environment = dict(v.split(b"=", 1) for v in file.read().split(b"\0") if b"=" in v)
            with open(f"/proc/{entry}/cmdline", "rb") as file:
                program = file.read().split(b"\0")[0].decode()
        except (OSError, ValueError):
            continue
        if program == TRAIN and environment.get(b"RANKS_TEST") == FOLDER.encode():
            found[int(environment[b"RANK"])] = int(entry)
    return found


def wait_for(text, process):
    for _ in range(2400):
        if text in said("err"):
            return
        check(process.poll() is None, f"it ended before \"{text}\":\n{said('err')}")
        time.sleep(0.05)
    raise Failure(f"never said \"{text}\":\n{said('err')}")


# ---- cases ----

def same_loss():
    """4 ranks with 16 samples each, and with 8, 24, 16 and 16, end as one process with 64 does. By AdamW, the default, for
    two epochs: its steps have the size of the learning rate however small gradients are, so that from the fourth on a last
    bit can be a thousandth, in one process too."""
    for what, epochs, options in (("sgd", 5, SGD), ("adamw", 2, ())):
        wanted = alone("--epochs", epochs, "--batch", 64, *options)
        got = together(4, "--epochs", epochs, *options)
        check(got["ranks"] == 4 and got["batch"] == 64 and got["shares"] == [16] * 4, f"4 ranks: {got}")
        check(got["steps"] == wanted["steps"] and got["bytes_sent"] > 0 and got["waited_seconds"] > 0, f"the report: {got}")
        compare(f"{what}, 4 ranks", got, wanted, 1e-5)
        got = together(4, "--epochs", epochs, "--shares", "8,24,16,16", *options)
        check(got["shares"] == [8, 24, 16, 16], f"shares: {got['shares']}")
        compare(f"{what}, unequal shares", got, wanted, 1e-5)


def resnet18():
    """2 ranks whose batch norm is over the samples of both are one process with them all, as long as rounding is not blown up: with
    such a network each step makes its differences a few times larger, also those of one process with other kernels. Ranks that norm by
    themselves are another network."""
    words = ["resnet18", "--data", "digits", "--seed", 1, "--optimizer", "sgd", "--lr", 0.001, "--steps", 3]
    own = {"CLTRAIN_BACKENDS": "-winograd"}  # would serve the larger batch alone
    ranks = [RUN, "-n", 2, "--", TRAIN, *words, "--batch", 16, "--json"]
    end(begin([TRAIN, *words, "--batch", 32, "--json", "-q"], **own))
    wanted = report()
    end(begin([*ranks, "--sync-batch-norm"], **own))
    compare("resnet18, 3 steps", report(), wanted, 1e-4)
    end(begin(ranks, **own))
    apart = abs(report()["train_loss"] / wanted["train_loss"] - 1)
    check(apart > 1e-3, f"batch norm of each rank by itself gives the same loss, within {apart:.1e}")


def draw_images(folder, n):
    """Two classes that are told apart by their tint, one four times as frequent."""
    from PIL import Image
    rng = random.Random(1)
    for i in range(n):
        rare = i % 5 == 0
        kind = os.path.join(folder, "rare" if rare else "usual")
        os.makedirs(kind, exist_ok=True)
        tint, width, height = (200, 90, 60) if rare else (60, 90, 200), rng.randrange(40, 90), rng.randrange(40, 90)
        pixels = bytes(min(255, max(0, c + rng.randrange(-50, 50))) for _ in range(width * height) for c in tint)
        Image.frombytes("RGB", (width, height), pixels).save(os.path.join(kind, f"{i}.jpg"), quality=90)


def images():
    """resnet50 on a folder of pictures by two ranks with unequal shares, and all at once: classes sampled evenly, augmentation, metrics, TensorBoard, and a rank
    that is killed in the middle of an epoch, behind which all go on from the checkpoint."""
    try:
        draw_images(path("photos"), 90)
    except ImportError:
        skip("there is no Pillow")
    words = ["resnet50", "--data", f"folder:{path('photos')},size=32,jitter=0.2", "--seed", 1, "--optimizer", "sgd", "--lr", 0.002, "--epochs", 2, "--shares", "5,3", "--stratify",
             "--balanced-sampling", "--save", path("model"), "--save-every", 1, "--tensorboard", path("board"), "--log", path("log"), "--json"]
    ranks = [RUN, "-n", 2, "--max-restarts", 1, "--", TRAIN, *words]
    end(begin(ranks))
    wanted = report()
    check(wanted["steps"] == 18 and wanted["shares"] == [5, 3] and sum(map(sum, wanted["test_confusion"])) == 18, f"{wanted}")
    check(0 <= wanted["test_f1"] <= 1 and 0 <= wanted["test_auc"] <= 1, f"{wanted}")
    for name in ("model", "log"):
        os.remove(path(name))
    process = begin(ranks, RANKS_TEST=FOLDER)
    while not (os.path.exists(path("model")) and '"event":"progress"' in said("log")):
        check(process.poll() is None, f"it ended early:\n{said('err')}")
        time.sleep(0.02)
    os.kill(ranks_of(process.pid)[1], signal.SIGKILL)
    end(process)
    got = report()
    check("Resumed from" in said("err"), f"it did not resume:\n{said('err')}")
    check(got["steps"] == wanted["steps"], f"{got['steps']} steps, not {wanted['steps']}")
    compare("resnet50, killed", got, wanted, 1e-5)
    check(got["test_confusion"] == wanted["test_confusion"], f"{got['test_confusion']}, not {wanted['test_confusion']}")
    check(len(os.listdir(path("board"))) >= 3, "each start has an event file of its own")


def kill_one(rank, launcher, *arguments):
    """Kills a rank in the fourth epoch; gives what the others come to."""
    process = begin(command(3, launcher, arguments), RANKS_TEST=FOLDER)
    wait_for("epoch 3/", process)
    os.kill(ranks_of(process.pid)[rank], signal.SIGKILL)
    end(process)
    return report()


def shrink():
    """A rank is killed: the others go on, to the loss of a run that was never disturbed."""
    options = ("--epochs", 10, "--batch", 16, "--optimizer", "sgd", "--lr", 0.02, "--momentum", 0.9)
    wanted = together(3, *options)
    for victim in (1, 0):
        got = kill_one(victim, ("--on-failure", "continue"), *options, "--save", path("model"))
        check(got["ranks"] == 2 and got["ranks_lost"] == 1 and got["shares"] == [24, 24], f"2 are left: {got}")
        check(f"rank {victim} was lost" in said("err"), f"nobody named rank {victim}:\n{said('err')}")
        check(got["steps"] == wanted["steps"], f"{got['steps']} steps, not {wanted['steps']}")
        check(os.path.exists(path("model")), "no checkpoint")
        compare(f"without rank {victim}", got, wanted, 1e-4)


def early():
    """A rank ends before its first step: as one whose device is not there, or killed. The others begin without it."""
    options = ("--epochs", 2, *SGD)
    wanted = together(2, *options, "--batch", 24)
    arguments = command(3, ("--on-failure", "continue"), (*options, "--batch", 16))
    no_device = f'[ "$RANK" = 1 ] && export CLTRAIN_DEVICE=there-is-none; exec {TRAIN} "$@"'
    end(begin(by_shell(no_device, arguments)))
    check("there-is-none" in said("err"), f"rank 1 had a device:\n{said('err')}")
    got = report()
    check(got["ranks"] == 2 and got["ranks_lost"] == 1 and got["steps"] == wanted["steps"], f"2 are left: {got}")
    compare("without a rank that had no device", got, wanted, 1e-5)
    process = begin(arguments, RANKS_TEST=FOLDER)
    wait_for("on each of 3 ranks", process)
    os.kill(ranks_of(process.pid)[1], signal.SIGKILL)
    end(process)
    got = report()
    check(got["ranks"] == 2 and got["ranks_lost"] == 1 and got["steps"] == wanted["steps"], f"2 are left: {got}")


def meet(victim, ends, late, milliseconds):
    """Three ranks begin, of which one ends as its environment makes it and another is late to receive; gives what became of them."""
    preload = f"LD_PRELOAD={EARLY_END} ASAN_OPTIONS=${{ASAN_OPTIONS:+$ASAN_OPTIONS:}}verify_asan_link_order=0"
    script = (f'[ "$RANK" = {victim} ] && export {preload} {ends}; '
              f'[ "$RANK" = {late} ] && export {preload} CLTRAIN_TEST_LATE_MS={milliseconds}; exec {TRAIN} "$@"')
    arguments = command(3, ("--on-failure", "continue"), ("--steps", 1, "--batch", 16, *SGD))
    process = begin(by_shell(script, arguments))
    end(process, None)
    before_training = said("err").partition("First step done")[0]
    if "joining the other ranks" in before_training:
        return "no group"
    check(process.returncode == 0, f"rank {victim} ended ({ends}), rank {late} being late, and the others, too:\n{said('err')}")
    if f"rank {victim} was lost" not in before_training:
        return "trained"
    got = report()
    check(got["ranks"] == 2 and got["ranks_lost"] == 1 and got["steps"] == 1 and got["shares"] == [24, 24], f"2 of 3 are left: {got}")
    check(got["shares"] in ([16, 16], [24, 24]), f"shares {got['shares']}")
    return "went on"


def dies_while_all_meet(victim, late, every):
    """At each of its sends in turn."""
    went_on = 0
    for send in range(24, 1000, every):
        became = meet(victim, f"CLTRAIN_TEST_ENDS_AT={send}", late, 10)
        went_on += became == "went on"
        if became == "trained":
            break
    print(f"rank {victim} died while all met, rank {late} being late: the others went on {went_on} times")
    check(went_on >= 4, f"rank {victim} never died while all met")


def while_meeting(every=4, order=((1, 0), (1, 2))):
    """A rank leaves or dies while all meet, and another is late: what one has come through the others have not."""
    for victim, late in order:
        for milliseconds in (20, 50)[every > 1:]:
            check(meet(victim, "CLTRAIN_DEVICE=there-is-none", late, milliseconds) == "went on", f"rank {victim} had a device:\n{said('err')}")
    for victim, late in order[:1] if every > 1 else order:
        dies_while_all_meet(victim, late, every)


def while_meeting_anywhere():
    while_meeting(1, ((1, 0), (1, 2), (0, 1), (0, 2), (2, 0), (2, 1)))


def twice():
    """A second rank is killed while the others go on without the first."""
    for seconds in (0, 0.02):
        process = begin(command(4, ("--on-failure", "continue"), ("--epochs", 8, "--batch", 16, *SGD)), RANKS_TEST=FOLDER,
                        CLTRAIN_COMM_CONNECT_SECONDS=WITHOUT_END)
        wait_for("epoch 3/", process)
        ranks = ranks_of(process.pid)
        os.kill(ranks[1], signal.SIGKILL)
        time.sleep(seconds)
        os.kill(ranks[3], signal.SIGKILL)
        end(process)
        got = report()
        check(got["ranks"] == 2 and got["ranks_lost"] == 2, f"2 are left: {got}")


def store_dies():
    """Rank 0 serves the store, as without cltrain-run, and is killed: the others end at once, and say why."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    place = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "CLTRAIN_COMM_TOKEN": "a token for tests alone"}
    words = (TRAIN, "convnet", "--data", "digits", "--batch", 16, "--epochs", 1000, "--on-failure", "shrink")
    first = begin(words, RANK="0", **place)
    second = subprocess.Popen([*map(str, words)], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                              env={**os.environ, "RANK": "1", **place})
    try:
        wait_for("epoch 1/", first)
        first.kill()
        text = second.communicate(timeout=600)[1]
        check(second.returncode == 1 and "was served by the job's rank 0" in text, f"exit {second.returncode}:\n{text}")
    finally:
        first.kill()
        second.kill()
        first.wait()
        second.wait()


def another_runs_file():
    """A restart before the first save begins anew, whatever another run has left in the file."""
    old = alone("--epochs", 2, "--lr", 0.05, "--save", path("old"))
    os.utime(path("old"), (1, 1))
    once = f'[ "$RANK$CLTRAIN_RESTART_COUNT" = 10 ] && exit 9; exec {TRAIN} "$@"'
    arguments = command(2, ("--max-restarts", 1), ("--epochs", 2, "--save", path("old")))
    end(begin(by_shell(once, arguments)))
    check("Resumed" not in said("err") and report()["lr"] != old["lr"], f"it took another's file:\n{said('err')}")


def restart():
    """A rank is killed: all start again, and go on from the checkpoint."""
    options = ("--epochs", 10, "--batch", 16, "--optimizer", "sgd", "--lr", 0.02, "--momentum", 0.9)
    wanted = together(3, *options)
    got = kill_one(2, ("--max-restarts", 1), *options, "--save", path("model"))
    check("Resumed from" in said("err"), f"it did not resume:\n{said('err')}")
    another_runs_file()
    check(got["steps"] == wanted["steps"] and got["ranks"] == 3, f"{got}")
    # Batch norm apart, of which this model has none, all is in the file: the same bits.
    check(got["train_loss"] == wanted["train_loss"] and got["test_loss"] == wanted["test_loss"],
          f"{got['train_loss']} and {wanted['train_loss']}")


def stop():
    """SIGTERM: all ranks end after the same step, rank 0 saves, and the run can be gone on with by another number of ranks."""
    options = ("--batch", 16, "--optimizer", "sgd", "--lr", 0.02)
    process = begin(command(3, (), ("--epochs", 400, *options, "--save", path("model"))))
    wait_for("epoch 2/", process)
    process.terminate()
    end(process, 128 + signal.SIGTERM)
    check(os.path.exists(path("model")), f"no checkpoint:\n{said('err')}")
    end(begin(command(2, (), ("--steps", 100000, *options, "--resume", path("model")))), 1)
    check("batches an epoch" in said("err"), f"another batch should be refused:\n{said('err')}")
    got = together(2, "--epochs", 0, "--batch", 24, "--optimizer", "sgd", "--resume", path("model"))
    check(got["steps"] > 0 and got["ranks"] == 2, f"resumed by 2: {got}")


def with_two_drivers():
    """The environment in which PoCL and rusticl have a device each."""
    own = {"RUSTICL_ENABLE": "llvmpipe"}
    listed = subprocess.run([TRAIN, "--list-devices"], stdout=subprocess.PIPE, text=True, env={**os.environ, **own}).stdout.lower()
    if "llvmpipe" not in listed or "pthread" not in listed and "portable" not in listed:
        skip("PoCL and rusticl are not both on this machine")
    return own


def balance():
    """One rank on PoCL and one on rusticl: the same loss, and with --balance the faster one gets the larger share."""
    own = with_two_drivers()
    devices = ("--devices", "pthread,llvmpipe")
    wanted = alone("--epochs", 4, "--batch", 64, *SGD)
    equal = together(2, "--epochs", 4, "--batch", 32, *SGD, launcher=devices, **own)
    compare("PoCL and rusticl", equal, wanted, 1e-4)
    fair = together(2, "--epochs", 4, "--batch", 32, "--balance", *SGD, launcher=devices, **own)
    print(f"shares {fair['shares']}: {fair['samples_per_second']:.0f} samples/s, with equal ones {equal['samples_per_second']:.0f}")
    check(sum(fair["shares"]) == 64 and min(fair["shares"]) >= 1, f"shares {fair['shares']}")
    check(fair["shares"][0] > fair["shares"][1], "the slower device has the larger share")
    # The machine decides on the shares, and with them on rounding, by which an activation near 0 may fall on its other side.
    compare("balanced", fair, wanted, 1e-2)


def threads(devices, *arguments, expect=0, **environment):
    """One process, and a thread for each device."""
    end(begin([TRAIN, MODEL, "--data", "digits", "--seed", 1, "--devices", devices, *arguments, "--json"], **environment), expect)
    return report() if expect == 0 else None


def devices():
    """Ranks that are threads of one process have the bits of ranks that are processes, by algorithms that add in the order of ranks."""
    own = with_two_drivers()
    two = "pthread,llvmpipe"
    options = ("--epochs", 3, "--batch", 16, "--export")
    wanted = together(2, *options, path("processes"), launcher=("--devices", two), CLTRAIN_COMM_ALGORITHMS="direct,shards", **own)
    got = threads(two, *options, path("threads"), **own)
    check(got["ranks"] == 2 and got["engine"] == "local" and got["shares"] == [16, 16], f"{got}")
    for key in ("train_loss", "test_loss", "steps"):
        check(got[key] == wanted[key], f"threads: {key} {got[key]}, by processes {wanted[key]}")
    with open(path("processes"), "rb") as one, open(path("threads"), "rb") as other:
        check(one.read() == other.read(), "other weights")
    alone("--epochs", 3, "--devices", "pthread", "--batch", 16)
    process = begin([TRAIN, MODEL, "--data", "digits", "--seed", 1, "--devices", two, "--epochs", 4000, "--batch", 16, "--save", path("model")], **own)
    wait_for("epoch 2/", process)
    process.terminate()
    end(process, 128 + signal.SIGTERM)
    check(os.path.exists(path("model")), f"no checkpoint:\n{said('err')}")
    got = threads(two, "--epochs", 0, "--batch", 16, "--resume", path("model"), **own)
    check(got["steps"] > 0, f"resumed: {got}")
    for names, code, words in (("pthread,", 2, "a device without a name"), ("pthread,nowhere", 1, '"nowhere" matches none'), (two, 2, "3 numbers for 2 ranks"),
                               ("0,pthread,0", 2, "the same device")):
        threads(names, "--shares", "8,8,8", expect=code, **own)
        check(said("err").count(words) == 1, f"{names}: \"{words}\" once expected in\n{said('err')}")
    end(begin(command(2, (), ("--devices", two)), **own), 2)
    check("cltrain-run --devices" in said("err"), said("err"))


def refusals():
    for shares, words in (("8,8", "2 numbers for 3 ranks"), ("8,0,8", "whole numbers"), ("8,x,8", "whole numbers"),
                          ("1000,1000,1", "more than")):
        end(begin(command(3, (), ("--shares", shares))), 2)
        check(words in said("err"), f"--shares {shares}: no \"{words}\" in\n{said('err')}")
    end(begin(command(2, (), ("--shares", "8,8", "--batch", 16))), 2)
    check("exclude" in said("err"), said("err"))


def each_its_own(options, *own, expect=0, launcher=(), **environment):
    """Rank i also has the options own[i]."""
    words = " ".join(f"{i}) set -- \"$@\" {' '.join(map(str, o))};;" for i, o in enumerate(own))
    arguments = command(len(own), launcher, options)
    script = f'case "$RANK" in {words} esac; exec {TRAIN} "$@"'
    end(begin(by_shell(script, arguments), CLTRAIN_COMM_TIMEOUT_SECONDS="60", **environment), expect)


def own_batches():
    """--batch is a rank's own: ranks with 8 and 24 samples are one process with 32."""
    wanted = alone("--epochs", 2, "--batch", 32, *SGD)
    each_its_own(("--epochs", 2, *SGD), ("--batch", 8), ("--batch", 24))
    got = report()
    check(got["shares"] == [8, 24] and got["batch"] == 32 and got["steps"] == wanted["steps"], f"{got}")
    compare("own batches", got, wanted, 1e-5)


def differing():
    """What ranks must have alike is compared before the first step, and the error says what differs, between whom, and how."""
    plain = ("--batch", 16, "--epochs", 1)
    cases = (((), ("--shares", "8,24"), ("--shares", "24,8"), "rank 1 and rank 0 differ in --shares: 24,8 and 8,24"),
             ((), ("--shares", "8,24"), ("--batch", 24), "rank 1 and rank 0 differ in --shares: none and 8,24"),
             (("--batch", 16), ("--epochs", 3), ("--epochs", 4), "rank 1 and rank 0 differ in --epochs: 4 and 3"),
             (plain, ("--steps", 20), (), "differ in --steps: none and 20"),
             (plain, ("--stop-after", 1), (), "differ in --stop-after: none and 1"),
             (plain, (), ("--balance",), "differ in --balance: given and not given"),
             (plain, ("--save", path("model"), "--save-every", 3), ("--save", path("model"), "--save-every", 2), "differ in --save-every: 2 and 3"),
             (plain, ("--resume", path("none")), (), "differ in --resume: not given and given"),
             (plain, (), ("--on-failure", "shrink"), "differ in --on-failure: shrink and stop"),
             (plain, ("--lr", 0.5), ("--lr", 0.25), "differ in --lr: 0.25 and 0.5"),
             (plain, (), ("--data", "synthetic:1x8x8,classes=10,n=500"), "differ in --data: training samples: 400 and 1438"),
             (plain, (), ("--data", "synthetic:1x8x8,classes=10,n=1797"), "differ in --data: labels"),
             (plain, (), ("--seed", 2), "differ in --data: labels"))
    for options, *own, words in cases:
        each_its_own(options, *own, expect=2)
        check(words in said("err"), f"{own}: no \"{words}\" in\n{said('err')}")
    check(not os.path.exists(path("model")), "a run that was refused has saved")
    for name, factor in (("0", 1), ("1", 1.01)):
        with open(path(name + ".csv"), "w") as file:
            file.writelines(f"{i % 7},{factor * (i % 5)},{i % 3}\n" for i in range(100))
    logistic = [RUN, "-n", 2, "--", "sh", "-c", f'exec {TRAIN} logistic --no-standardize --data csv:{FOLDER}/$RANK.csv']
    end(begin(logistic), 2)
    check("the samples have other values" in said("err"), f"other samples:\n{said('err')}")
    # Defaults are what they are; --save may name another file where nobody writes.
    each_its_own(("--batch", 16), ("--epochs", 10, "--stop-after", 1, "--save", path("model")), ("--stop-after", 1, "--save", path("else")))
    check(os.path.exists(path("model")) and not os.path.exists(path("else")), "rank 0 saves")


def before_meeting():
    """A rank dies before it has come to the others, which do not wait for it: they end, and name it. Nobody is there to go on with."""
    for victim in (2, 0):
        arguments = command(3, ("--on-failure", "continue"), ("--epochs", 1))
        script = f'[ "$RANK" = {victim} ] && {{ sleep 1; kill -9 $$; }}; exec {TRAIN} "$@"'
        end(begin(by_shell(script, arguments), CLTRAIN_COMM_CONNECT_SECONDS=WITHOUT_END), 128 + signal.SIGKILL)
        check(f"rank {victim} ended with status 137 before ranks 0 to 2 had met" in said("err"), f"nobody named it:\n{said('err')}")


EPOCHS = 20


def train_and_kill(rng, launcher, words):
    """Kills a random rank at a random moment, in or before a random epoch; gives the rank, or None if the run was over by then."""
    process = begin([RUN, "-n", 3, *launcher, "--", TRAIN, *words], RANKS_TEST=FOLDER)
    victim, epoch, moment = rng.randrange(3), rng.randrange(EPOCHS), rng.uniform(0, 0.2)
    wait_for(f"epoch {epoch}/" if epoch else "on each of 3 ranks", process)
    time.sleep(moment)
    try:
        os.kill(ranks_of(process.pid)[victim], signal.SIGKILL)
    except (KeyError, ProcessLookupError):
        victim = None
    end(process)
    return victim, f"{moment:.3f} s after epoch {epoch}"


def deaths():
    """30 trainings in which a random rank is killed at a random moment: those who are left go on, or all start again, and each
    ends after the right number of steps with the loss of a run that was never disturbed."""
    seed = int(os.environ.get("CLTRAIN_TEST_SEED", random.randrange(1 << 30)))
    turns = int(os.environ.get("CLTRAIN_TEST_TURNS", 30))
    print("CLTRAIN_TEST_SEED =", seed)
    rng = random.Random(seed)
    words = ["mlp:32", "--data", "digits", "--seed", 1, "--batch", 8, "--epochs", EPOCHS, *SGD, "--json", "--save", path("model")]
    end(begin([RUN, "-n", 3, "--", TRAIN, *words]))
    wanted, killed = report(), 0
    for turn in range(turns):
        goes_on = turn % 2 == 0
        if os.path.exists(path("model")):
            os.remove(path("model"))
        victim, moment = train_and_kill(rng, ("--on-failure", "continue") if goes_on else ("--max-restarts", 1), words)
        got, what = report(), f"turn {turn}: rank {victim} killed {moment}, {'going on' if goes_on else 'restarted'}"
        check(got["steps"] == wanted["steps"], f"{what}: {got['steps']} steps, not {wanted['steps']}")
        difference = abs(got["test_loss"] / wanted["test_loss"] - 1)
        print(f"{what}: {got['ranks']} ranks at the end, test loss {difference:.1e} apart", flush=True)
        check(difference <= 1e-4, f"{what}: test loss {got['test_loss']}, not {wanted['test_loss']}:\n{said('err')}")
        if victim is not None and got["ranks_lost" if goes_on else "ranks"] == (1 if goes_on else 3):
            check(f"rank {victim} " in said("err"), f"{what}: nobody named it:\n{said('err')}")
            killed += 1
    check(killed >= turns // 2, f"only {killed} were killed while they trained")


def main():
    global TRAIN, RUN, EARLY_END, MODEL, FOLDER
    TRAIN, RUN, EARLY_END = map(os.path.abspath, sys.argv[1:4])
    MODEL = sys.argv[5] if len(sys.argv) > 5 else "convnet"
    case = globals()[sys.argv[4].replace("-", "_")]
    FOLDER = tempfile.mkdtemp(prefix="cltrain-ranks-")
    try:
        case()
    except Failure as failure:
        print("FAILED:", failure)
        sys.exit(1)
    finally:
        shutil.rmtree(FOLDER, ignore_errors=True)


main()

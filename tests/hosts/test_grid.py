#!/usr/bin/env python3
"""Two pipelines of two stages, one on each of two hosts, which are network namespaces. A rank that is killed, at any moment, is named, and nobody waits for it; what was saved
goes on with one pipeline, on one host, and comes to the losses that would have come without.

    test_grid.py CLTRAIN_TRAIN CLTRAIN_RUN [--times N] [--seed S]

Exit status 77: namespaces cannot be made here (that needs root), or there is no device.
"""
import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time

from hosts import Hosts, Unavailable
from ranks import Failure, TOKEN, check

MODEL = ["mlp:48,32,24", "--data", "digits", "--seed", "3", "--optimizer", "adamw", "--lr", "0.002"]
STAGES = ["--pipeline", "stages=2,microbatches=2"]
KEEP_PID = ["sh", "-c", 'echo $$ >pid.$RANK; exec "$@"', "sh"]
EPOCHS, MOST_SECONDS = 60, 300


def begin(folder, command):
    return subprocess.Popen(command, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                            env={**os.environ, "CLTRAIN_COMM_TOKEN": TOKEN, "CLTRAIN_COMM_HEARTBEAT_SECONDS": "2", "CLTRAIN_COMM_CONNECT_SECONDS": "20"})


def begin_grid(folder, hosts, train, launcher, port, *words):
    """A launcher a host: ranks 0 and 1, and 2 and 3."""
    run = [launcher, "-n", "2", "--nnodes", "2", "--master", f"{hosts.address(0)}:{port}"]
    return [begin(folder, hosts.command(i, *run, "--node-rank", str(i), "--", *KEEP_PID, train, *MODEL, "--batch", "16", *STAGES, *words)) for i in range(2)]


def end(launchers):
    """What each wrote; a launcher that does not end is a failure."""
    try:
        return [(one.communicate(timeout=MOST_SECONDS)[1], one.returncode) for one in launchers]
    finally:
        for one in launchers:
            one.kill()


def losses(folder, log):
    with open(os.path.join(folder, log), encoding="utf-8") as file:
        events = [json.loads(line) for line in file]
    return {e["epoch"]: (e["train_loss"], e["test_loss"]) for e in events if e["event"] == "epoch"}


def pid_of(folder, rank):
    """Once it has one."""
    deadline = time.monotonic() + MOST_SECONDS
    while time.monotonic() < deadline:
        try:
            with open(os.path.join(folder, f"pid.{rank}"), encoding="utf-8") as file:
                return int(file.read())
        except (FileNotFoundError, ValueError):
            time.sleep(0.01)
    raise Failure(f"rank {rank} was not started")


def await_saved(folder, launchers):
    deadline = time.monotonic() + MOST_SECONDS
    while not os.path.exists(os.path.join(folder, "saved")):
        check(time.monotonic() < deadline and all(one.poll() is None for one in launchers), "nothing was saved")
        time.sleep(0.01)


def kill_one(folder, hosts, train, launcher, port, victim, early, wait):
    for name in os.listdir(folder):
        if name.startswith(("pid.", "saved", "killed", "resumed")):
            os.remove(os.path.join(folder, name))
    launchers = begin_grid(folder, hosts, train, launcher, port, "--epochs", "100000", "--save", "saved", "--save-every", "1", "--log", "killed")
    pid = pid_of(folder, victim)
    if not early:
        await_saved(folder, launchers)
    time.sleep(wait)
    os.kill(pid, signal.SIGKILL)
    ends = end(launchers)
    check(all(code not in (0, None) for _, code in ends), f"a launcher ended well: {ends}")
    check(f"rank {victim}" in "".join(text for text, _ in ends), f"nobody names rank {victim}: {ends}")


def go_on(folder, hosts, train, launcher, wanted):
    """With one pipeline, whose batches are as large as those of both. Returns from which epoch on."""
    saved = os.path.exists(os.path.join(folder, "saved"))
    before = max(losses(folder, "killed"), default=0) if saved and os.path.exists(os.path.join(folder, "killed")) else 0
    words = ["--resume", "saved"] if saved else []
    ends = end([begin(folder, hosts.command(0, launcher, "-n", "2", "--", train, *MODEL, "--batch", "32", *STAGES, *words, "--epochs", str(before + 3), "--log", "resumed"))])
    check(ends[0][1] == 0, ends[0][0])
    got = losses(folder, "resumed")
    check(got and max(got) == before + 3, f"epochs {sorted(got)} after {before}")
    for epoch, values in got.items():
        for value, other in zip(values, wanted.get(epoch, values)):
            check(abs(value / other - 1) < 1e-4, f"epoch {epoch}: {values}, expected {wanted[epoch]}")
    return min(got)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("train", type=os.path.abspath)
    parser.add_argument("launcher", type=os.path.abspath)
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    options = parser.parse_args()
    chance = random.Random(options.seed)
    print(f"seed {options.seed}", flush=True)
    if subprocess.run([options.train, "--list-devices"], capture_output=True, text=True, check=False).returncode:
        print("skipped: no device")
        return 77
    try:
        with tempfile.TemporaryDirectory() as folder, Hosts(2) as hosts:
            ends = end(begin_grid(folder, hosts, options.train, options.launcher, 29500, "--epochs", str(EPOCHS), "--log", "whole"))
            check([code for _, code in ends] == [0, 0], ends)
            wanted = losses(folder, "whole")
            for i in range(options.times):
                victim, early, wait = chance.randrange(4), i % 3 == 2, chance.uniform(0, 2)
                kill_one(folder, hosts, options.train, options.launcher, 29501 + i, victim, early, wait)
                print(f"rank {victim} killed {wait:.2f} s after {'its start' if early else 'the first epoch'}: named; went on from epoch {go_on(folder, hosts, options.train, options.launcher, wanted)}", flush=True)
    except Unavailable as why:
        print("skipped: no network namespaces here:", why)
        return 77
    except (Failure, subprocess.TimeoutExpired) as failure:
        print("FAILED:", failure)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""One model trained by two hosts, which are network namespaces, a launcher on each: on PoCL and on rusticl, and where that is not, on
PoCL alone. It ends as one process does; and without the link, as an error that names the rank.

    test_train.py CLTRAIN_TRAIN CLTRAIN_RUN

Exit status 77: namespaces cannot be made here (that needs root), or there is no device.
"""
import json
import os
import re
import subprocess
import sys
import time

from hosts import Hosts, Unavailable
from ranks import Failure, TOKEN, check

MODEL = ["mlp", "--data", "digits", "--seed", "1", "--optimizer", "sgd", "--lr", "0.05"]
DRIVERS = {"RUSTICL_ENABLE": "llvmpipe"}


def begin(command, **environment):
    return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                            env={**os.environ, **DRIVERS, "CLTRAIN_COMM_TOKEN": TOKEN, **environment})


def report(text):
    return json.loads("".join(re.sub(r"^\[rank \d+\] ", "", line) for line in text.splitlines(True)))


class Job:
    """A launcher a host, with one rank each."""

    def __init__(self, hosts, train, launcher, devices, words, **environment):
        self.launchers = []
        for i, device in enumerate(devices):
            run = [launcher, "-n", "1", "--nnodes", "2", "--node-rank", str(i), "--master", f"{hosts.address(0)}:29500", "--"]
            self.launchers.append(begin(hosts.command(i, *run, train, *MODEL, *words), CLTRAIN_DEVICE=device, **environment))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for one in self.launchers:
            one.kill()
            one.communicate()

    def end(self, seconds):
        texts = [one.communicate(timeout=seconds) for one in self.launchers]
        return [(one.returncode, *text) for one, text in zip(self.launchers, texts)]


def same_loss(hosts, train, launcher, devices):
    out, err = begin([train, *MODEL, "--epochs", "3", "--batch", "32", "--json", "-q"]).communicate(timeout=600)
    check(out, err)
    wanted = report(out)
    with Job(hosts, train, launcher, devices, ["--epochs", "3", "--batch", "16", "--json"]) as job:
        ends = job.end(600)
    check([code for code, *_ in ends] == [0, 0], ends)
    got = report(ends[0][1])
    check(got["ranks"] == 2 and got["steps"] == wanted["steps"] and got["bytes_sent"] > 0, got)
    for key in ("train_loss", "test_loss"):
        apart = abs(got[key] / wanted[key] - 1)
        print(f"{' and '.join(devices)}: {key} {got[key]:.9g}, one process {wanted[key]:.9g}: {apart:.1e} apart")
        check(apart <= 1e-5, "more than 1e-5")


def cut(hosts, train, launcher, devices):
    """The link of host 1 is cut while they train: each end says so, and neither waits for the other."""
    with Job(hosts, train, launcher, devices, ["--epochs", "100000"], CLTRAIN_COMM_HEARTBEAT_SECONDS="1") as job:
        said = ""
        while "epoch 2/" not in said:
            line = job.launchers[0].stderr.readline()
            check(line, f"it ended: {said}")
            said += line
        hosts.cut(1)
        since = time.monotonic()
        ends = job.end(600)
        hosts.mend(1)
    took = time.monotonic() - since
    check(all(code not in (0, None) for code, *_ in ends), ends)
    for i, (_, _, err) in enumerate(ends):
        check(f"rank {1 - i} was lost" in err, f"host {i}: {err}")
    print(f"a cut link ended both hosts after {took:.1f} s")


def main():
    train, launcher = map(os.path.abspath, sys.argv[1:3])
    listed = begin([train, "--list-devices"]).communicate(timeout=600)[0]
    if "llvmpipe" in listed:
        devices = ("pthread", "llvmpipe") if "pthread" in listed else ("llvmpipe", "llvmpipe")
    elif "pthread" in listed:
        devices = ("pthread", "pthread")
    else:
        print("skipped: no device")
        return 77
    try:
        with Hosts(2) as hosts:
            same_loss(hosts, train, launcher, devices)
            cut(hosts, train, launcher, devices)
    except Unavailable as why:
        print("skipped: no network namespaces here:", why)
        return 77
    except (Failure, subprocess.TimeoutExpired) as failure:
        print("FAILED:", failure)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

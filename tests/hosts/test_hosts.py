#!/usr/bin/env python3
"""Ranks on several hosts, which are network namespaces: how they find each other, and what ends them.

    test_hosts.py RANK CLTRAIN_RUN [CASE...]

Exit status 77: namespaces cannot be made here (that needs root).
"""
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback

from hosts import Hosts, Unavailable
from ranks import Failure, Rank, TOKEN, arguments, check, check_reports, place

RANK = LAUNCHER = None
# A rank that is silent is lost after the first; operations, which end otherwise, may take a minute.
HEARTBEAT, MARGIN = 3.0, 50.0


class Job:
    """Ranks, one a host, which are ended with the block."""

    def __init__(self, hosts, size, variables=None, each=None, **wishes):
        self.ranks = []
        wishes.setdefault("heartbeat", HEARTBEAT)
        for r in range(size):
            more = {**(variables or {}), **(each(r) if each else {})}
            environment = place(r, size, f"{hosts.address(0)}:29500", **more)
            self.ranks.append(Rank(hosts.command(r, RANK, *arguments(**wishes)), environment, f"rank {r}"))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for rank in self.ranks:
            rank.end()

    def all_joined(self):
        for rank in self.ranks:
            rank.expect("step")

    def all_end_well(self):
        for rank in self.ranks:
            rank.expect_end(0)
            check(rank.find("done"), f"{rank.name}: {rank.tell()}")

    def but(self, lost):
        return [rank for i, rank in enumerate(self.ranks) if i != lost]


# ---- finding each other ----

def case_tcp(hosts):
    for size in (2, 4):
        with Job(hosts, size, seconds=0.5) as job:
            job.all_end_well()


def case_security(hosts):
    for level in ("auth", "none"):
        with Job(hosts, 2, {"CLTRAIN_COMM_SECURITY": level}, seconds=0.3) as job:
            job.all_end_well()


def case_file(hosts):
    with tempfile.TemporaryDirectory() as folder:
        store = {"CLTRAIN_COMM_STORE": f"file://{folder}/store", "CLTRAIN_COMM_JOB": "once", "CLTRAIN_COMM_INTERFACE": "eth0"}
        with Job(hosts, 3, store, seconds=0.5) as job:
            job.all_end_well()


def case_redis(hosts):
    if not shutil.which("redis-server"):
        return
    with tempfile.TemporaryDirectory() as folder:
        server = subprocess.Popen(hosts.command(3, "redis-server", "--bind", hosts.address(3), "--port", "7000", "--requirepass", "a b",
                                                "--save", "", "--dir", folder), stdout=subprocess.DEVNULL)
        try:
            store = {"CLTRAIN_COMM_STORE": f"redis://:a%20b@{hosts.address(3)}:7000", "CLTRAIN_COMM_JOB": "once"}
            with Job(hosts, 3, store, seconds=0.5) as job:
                job.all_end_well()
            with Job(hosts, 2, {**store, "CLTRAIN_COMM_STORE": f"redis://:wrong@{hosts.address(3)}:7000"}) as job:
                for rank in job.ranks:
                    rank.expect_end(1)
                    check("CLT_E_DENIED" in rank.find("ended")[2], rank.tell())
        finally:
            server.kill()
            server.wait()


def traffic(hosts, variables=None, each=None):
    """Bytes that host 1 receives on each net during a job of two ranks."""
    before = [hosts.received(1, net) for net in (0, 1)]
    with Job(hosts, 2, variables, each, seconds=0.5, count=1000000) as job:
        job.all_end_well()
    return [hosts.received(1, net) - before[net] for net in (0, 1)]


def case_interfaces(hosts):
    most = 4000000  # one all-reduce at least
    first, second = traffic(hosts)  # the one that routes to the master
    check(first > most > second, f"by default {first} bytes on eth0, {second} on eth1")
    tcp = {"CLTRAIN_COMM_STORE": f"tcp://{hosts.address(0, 1)}:29501"}
    first, second = traffic(hosts, {**tcp, "CLTRAIN_COMM_INTERFACE": "eth1"})
    check(second > most > first, f"by name {first} bytes on eth0, {second} on eth1")
    first, second = traffic(hosts, tcp, lambda r: {"CLTRAIN_COMM_INTERFACE": hosts.address(r, 1)})
    check(second > most > first, f"by address {first} bytes on eth0, {second} on eth1")
    with Job(hosts, 2, {"CLTRAIN_COMM_INTERFACE": "eth7"}, connect=2) as job:
        job.ranks[0].expect_end(1)
        check("eth7" in job.ranks[0].find("ended")[2], job.ranks[0].tell())
        job.ranks[1].expect_end(1)  # finds no store


def case_one_does_not_come(hosts):
    with Job(hosts, 2, {"WORLD_SIZE": "3"}, connect=2) as job:
        for rank in job.ranks:
            rank.expect_end(1)
            check("CLT_E_TIMEOUT" in rank.find("ended")[2] and "2" in rank.find("ended")[2], rank.tell())


def case_slow_link(hosts):
    """An all-reduce of 8 MB over 100 Mbit takes 0.64 s at least, and is right."""
    for i in (0, 1):
        hosts.limit(i, "100mbit")
    try:
        begin = time.monotonic()
        with Job(hosts, 2, seconds=0.01, count=2000000) as job:
            job.all_end_well()
        check(time.monotonic() - begin > 0.6, "faster than the link")
    finally:
        for i in (0, 1):
            hosts.run(i, "tc", "qdisc", "delete", "dev", "eth0", "root")


# ---- launchers ----

def case_launcher(hosts):
    """Two hosts, two ranks each."""
    environment = {"CLTRAIN_COMM_TOKEN": TOKEN}
    runs = []
    try:
        for i in (0, 1):
            words = [LAUNCHER, "-q", "-n", "2", "--nnodes", "2", "--node-rank", str(i), "--master", f"{hosts.address(0)}:29500", "--",
                     RANK, "--seconds", "0.5"]
            runs.append(subprocess.Popen(hosts.command(i, *words), env={**os.environ, **environment}, text=True,
                                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT))
        texts = [one.communicate(timeout=600)[0] for one in runs]
        for one, text in zip(runs, texts):
            check(one.returncode == 0 and text.count("done") == 2, f"cltrain-run gave {one.returncode}: {text}")
        check("joined" in texts[0] and " 3 4" in texts[1], texts)
    finally:
        for one in runs:
            one.kill()
            one.wait()


def received_per_value(hosts, **more):
    """Bytes that host 1 receives for each byte that is reduced, by two ranks on each of two hosts."""
    count, runs, before = 1000000, [], hosts.received(1, 0)
    for i in (0, 1):
        words = [LAUNCHER, "-q", "-n", "2", "--nnodes", "2", "--node-rank", str(i), "--master", f"{hosts.address(0)}:29500", "--",
                 RANK, *arguments(seconds=0.5, count=count)]
        runs.append(subprocess.Popen(hosts.command(i, *words), env={**os.environ, "CLTRAIN_COMM_TOKEN": TOKEN, **more}, text=True,
                                     stdout=subprocess.PIPE, stderr=subprocess.STDOUT))
    ends = ends_of(runs, 90)
    check(all(status == 0 for _, status in ends), ends)
    steps = int(ends[0][0].split("done")[1].split()[1]) + 1
    reduced = sum(4 * max(1, count // (1, 4096, 16, 1, 256, 3)[step % 6]) for step in range(steps))
    return (hosts.received(1, 0) - before) / reduced


def case_hierarchy(hosts):
    """Ranks of one host reduce first: each value crosses the network once; around a ring of 4 ranks one and a half times."""
    crossed = received_per_value(hosts), received_per_value(hosts, CLTRAIN_COMM_ALGORITHMS="ring")
    check(crossed[0] < 1.15 and crossed[1] > 1.4, f"host 1 received {crossed[0]:.2f} bytes a byte, and {crossed[1]:.2f} by a ring")


# A rank's line, as the launcher prints it.
STEP = r"(?m)^(?:\[rank \d+\] )?step "


def find_rank(number):
    """The process of a rank of ours, by its environment."""
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/environ", encoding="utf-8", errors="replace") as file:
                variables = file.read().split("\0")
            if os.path.samefile(f"/proc/{pid}/exe", RANK) and f"RANK={number}" in variables and f"TEST={os.getpid()}" in variables:
                return int(pid)
        except OSError:
            continue
    raise Failure(f"no process of rank {number}")


def case_launcher_continues(hosts):
    """A rank that is killed leaves the others at work, in a smaller group: also rank 0, for the launcher serves the store."""
    for victim in (0, 2):
        words = [LAUNCHER, "-n", "3", "--on-failure", "continue", "--", RANK, "--seconds", "3", "--shrink", "1", "--connect", "20"]
        launched = subprocess.Popen(hosts.command(0, *words), text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                    env={**os.environ, "TEST": str(os.getpid())})
        try:
            text = ""
            while len(re.findall(STEP, text)) < 3:
                line = launched.stdout.readline()
                check(line, f"cltrain-run ended: {text}")
                text += line
            os.kill(find_rank(victim), signal.SIGKILL)
            text += launched.communicate(timeout=600)[0]
            check(launched.returncode == 0, f"cltrain-run gave {launched.returncode}: {text}")
            check(text.count("shrunk") == 2 and text.count("done") == 2, text)
            check(f"rank {victim} ended with status 137" in text, text)
        finally:
            launched.kill()
            launched.wait()


def ends_of(runs, seconds):
    try:
        return [(one.communicate(timeout=seconds)[0], one.returncode) for one in runs]
    finally:
        for one in runs:
            one.kill()
            one.wait()


def launch_patient(hosts, seconds, *words, heartbeat=25):
    """A launcher and a rank on each of two hosts, and both have made steps. After a restart ranks are done in a second."""
    runs = []
    script = f'exec "$0" --heartbeat {heartbeat} --seconds "$([ "$CLTRAIN_RESTART_COUNT" = 0 ] && echo {seconds} || echo 1)"'
    for i in (0, 1):
        words_of_host = [LAUNCHER, "-n", "1", "--nnodes", "2", "--node-rank", str(i), "--master", f"{hosts.address(0)}:29500", *words, "--",
                         "sh", "-c", script, RANK]
        runs.append(subprocess.Popen(hosts.command(i, *words_of_host), text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                     env={**os.environ, "CLTRAIN_COMM_TOKEN": TOKEN}))
    for one in runs:
        line = one.stdout.readline()
        while not re.match(STEP, line):
            check(line, "cltrain-run ended early")
            line = one.stdout.readline()
    return runs


def case_outage(hosts):
    """What lasts less than --outage is waited for: a network that is cut, and a launcher that stands still."""
    for what in ("cut", "stop"):
        runs = launch_patient(hosts, 6)
        if what == "cut":
            hosts.cut(1)
        else:
            runs[0].send_signal(signal.SIGSTOP)
        time.sleep(4)
        if what == "cut":
            hosts.mend(1)
        else:
            runs[0].send_signal(signal.SIGCONT)
        for text, status in ends_of(runs, 90):
            check(status == 0 and "done" in text, f"{what}: cltrain-run gave {status}: {text}")
    runs = launch_patient(hosts, 60, "--outage", "1")
    hosts.cut(1)
    try:
        text, status = ends_of(runs[1:], 60)[0]
    finally:
        hosts.mend(1)
        ends_of(runs[:1], 60)
    check(status == 1 and "out of reach for 1 s (--outage)" in text, f"cltrain-run gave {status}: {text}")


def case_restart_after_outage(hosts):
    """A launcher that was out of reach for longer takes part in the restart of the others."""
    runs = launch_patient(hosts, 60, "--outage", "1", "--max-restarts", "1", heartbeat=3)
    hosts.cut(1)
    try:
        line = runs[1].stdout.readline()
        while line and "out of reach for 1 s (--outage)" not in line:
            line = runs[1].stdout.readline()
    finally:
        hosts.mend(1)
    for text, status in ends_of(runs, 90):
        check(status == 0 and "restart 1 of 1" in text and "done" in text, f"cltrain-run gave {status}: {text}")


def case_open_mpi(hosts):
    if not shutil.which("mpirun"):
        return
    words = ["mpirun", "-n", "2", "--allow-run-as-root", "--oversubscribe", RANK, "--seconds", "0.5"]
    environment = {**os.environ, "CLTRAIN_COMM_TOKEN": TOKEN}
    result = subprocess.run(hosts.command(0, *words), env=environment, capture_output=True, text=True, timeout=600, check=False)
    check(result.returncode == 0 and result.stdout.count("done") == 2, f"mpirun: {result}")


# ---- what ends a group ----

def case_kill(hosts):
    for size, victim in ((2, 0), (3, 1), (4, 3)):
        with Job(hosts, size, seconds=60, heartbeat=600) as job:  # the connection tells it, not silence
            job.all_joined()
            since = time.monotonic()
            job.ranks[victim].kill()
            check_reports(job.but(victim), victim, since, MARGIN)
            for rank in job.but(victim):
                rank.expect_end(3)


def case_stopped_rank(hosts):
    with Job(hosts, 3, seconds=60) as job:
        job.all_joined()
        since = time.monotonic()
        job.ranks[1].kill(signal.SIGSTOP)
        check_reports(job.but(1), 1, since, HEARTBEAT + MARGIN)
        job.ranks[1].kill(signal.SIGCONT)  # and it is told, too
        check("CLT_E_PEER" in job.ranks[1].expect("ended")[2], job.ranks[1].tell())


def case_cut_link(hosts):
    with Job(hosts, 3, seconds=60) as job:
        job.all_joined()
        since = time.monotonic()
        hosts.cut(2)
        try:
            check_reports(job.but(2), 2, since, HEARTBEAT + MARGIN)
            check("CLT_E_PEER" in job.ranks[2].expect("ended")[2], job.ranks[2].tell())
        finally:
            hosts.mend(2)


def case_shrink(hosts):
    with Job(hosts, 4, seconds=1.5, shrink=1, connect=20) as job:
        job.all_joined()
        job.ranks[2].kill()
        for rank, new in zip(job.but(2), range(3)):
            check(rank.expect("shrunk")[2] == f"{new} 3", rank.tell())
            rank.expect_end(0)
            check(rank.find("done"), rank.tell())


def case_cut_off_rank_is_fenced(hosts):
    """It comes back when the others have gone on without it."""
    with Job(hosts, 3, seconds=4, shrink=1, connect=20) as job:
        job.all_joined()
        hosts.cut(2)
        try:
            for rank in job.but(2):
                rank.expect("shrunk")
            job.ranks[2].expect("ended")
        finally:
            hosts.mend(2)
        check("CLT_E_FENCED" in job.ranks[2].expect("ended", nth=1)[2], job.ranks[2].tell())
        for rank in job.but(2):
            rank.expect_end(0)


# ---- strangers ----

STRANGER = r"""
import os, socket, sys, time
host, ports, seconds = sys.argv[1], [int(p) for p in sys.argv[2].split(",")], float(sys.argv[3])
held, tries, end = [], 0, time.monotonic() + seconds
while time.monotonic() < end:
    for port in ports:
        try:
            s = socket.create_connection((host, port), 1)
        except OSError:
            continue
        tries += 1
        s.settimeout(0.05)
        try:
            if tries % 3 == 1: held.append(s)
            if tries % 3 == 2: s.sendall(os.urandom(2000))
            if tries % 6 == 3: s.sendall(b"GET / HTTP/1.0\r\n\r\n")
            if tries % 6 == 3: s.recv(100)
        except OSError:
            pass
        if tries % 3 != 1: s.close()
        if len(held) > 300: held.pop(0).close()
print(tries)
"""


def listening_ports(hosts, i):
    """Of TCP, as the kernel has them."""
    found = set()
    for line in hosts.run(i, "cat", "/proc/net/tcp").stdout.splitlines()[1:]:
        fields = line.split()
        if fields[3] == "0A":
            found.add(int(fields[1].split(":")[1], 16))
    return found


def case_strangers(hosts):
    """A stranger on the network that finds the ports, while ranks work, and while they meet."""
    with Job(hosts, 2, seconds=6) as job:
        job.all_joined()
        for i in (0, 1):
            addresses = [line.split()[1].split(":")[0] for line in hosts.run(i, "cat", "/proc/net/tcp").stdout.splitlines()[1:]
                         if line.split()[3] == "0A"]
            check(addresses and "00000000" not in addresses, f"host {i} listens everywhere")
        strangers = [subprocess.Popen(hosts.command(3, sys.executable, "-c", STRANGER, hosts.address(i),
                                                    ",".join(map(str, listening_ports(hosts, i))), "3"),
                                      stdout=subprocess.PIPE, text=True) for i in (0, 1)]
        tries = [int(one.communicate(timeout=600)[0]) for one in strangers]
        check(min(tries) > 30, f"only {tries} tries")
        job.all_end_well()
        log = "\n".join(line for rank in job.ranks for line in rank.errors)
        check(hosts.address(3) in log, f"the log does not name the stranger: {log[-500:]}")
    stranger = subprocess.Popen(hosts.command(3, sys.executable, "-c", STRANGER, hosts.address(0), "29500", "4"),
                                stdout=subprocess.PIPE, text=True)
    try:
        with Job(hosts, 3, seconds=1.5) as job:
            job.all_end_well()
        check(int(stranger.communicate(timeout=600)[0]) > 5, "the stranger was not at the store")
    finally:
        stranger.kill()
        stranger.wait()


def case_wrong_token(hosts):
    with Job(hosts, 2, None, lambda r: {"CLTRAIN_COMM_TOKEN": TOKEN + "x" * r}, connect=5) as job:
        for rank in job.ranks:
            rank.expect_end(1)
        check("CLT_E_DENIED" in job.ranks[1].find("ended")[2], job.ranks[1].tell())


def main():
    global RANK, LAUNCHER
    RANK, LAUNCHER, wanted = sys.argv[1], sys.argv[2], sys.argv[3:]
    cases = [(name[5:], case) for name, case in globals().items() if name.startswith("case_")]
    failed = 0
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # namespaces are not left behind
    try:
        with Hosts(4) as hosts:
            for name, case in cases:
                if wanted and name not in wanted:
                    continue
                begin = time.monotonic()
                try:
                    case(hosts)
                    print(f"{name}: ok, {time.monotonic() - begin:.1f} s", flush=True)
                except (Failure, subprocess.SubprocessError, OSError) as failure:
                    failed += 1
                    print(f"FAILED: {name}: {failure}", flush=True)
                    if not isinstance(failure, Failure):
                        traceback.print_exc()
    except Unavailable as why:
        print(f"skipped: no network namespaces: {why}")
        return 77
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""kill -9 of a random rank of 3, at random moments: no hang, and every survivor reports that rank within a second. Every fifth dies while
the ranks still look for each other: then the others give up within the time that they have for that.

    kill.py RANK [--times N] [--seed S] [--seconds LIMIT]
"""
import argparse
import random
import socket
import statistics
import sys
import time

from ranks import Failure, Rank, arguments, check, check_reports, place

SIZE = 3


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def once(program, chance, limit):
    """One group, one death; the seconds until the last survivor said so."""
    master = f"127.0.0.1:{free_port()}"
    victim, wait, count = chance.randrange(SIZE), chance.uniform(0, 0.3), chance.choice([1, 1000, 65536, 2000000])
    command = [program, *arguments(seconds=60, count=count, heartbeat=600)]  # whose connection closes is lost at once, not when it has been silent
    ranks = []
    try:
        for r in range(SIZE):
            ranks.append(Rank(command, place(r, SIZE, master), f"rank {r}"))
        for rank in ranks:
            rank.expect("joined")
        time.sleep(wait)
        since = time.monotonic()
        ranks[victim].kill()
        survivors = [r for i, r in enumerate(ranks) if i != victim]
        took = check_reports(survivors, victim, since, limit)
        for rank in survivors:
            rank.expect_end(3)
        return took
    finally:
        for rank in ranks:
            rank.end()


JOINING_SECONDS, MARGIN = 2, 60


def once_while_joining(program, chance):
    """Whoever had joined reports the rank; the others say that somebody is missing."""
    master = f"127.0.0.1:{free_port()}"
    victim = chance.randrange(SIZE)
    command = [program, *arguments(seconds=60, heartbeat=1, connect=JOINING_SECONDS)]
    ranks = []
    try:
        for r in range(SIZE):
            ranks.append(Rank(command, place(r, SIZE, master), f"rank {r}"))
        time.sleep(chance.uniform(0, 0.06))
        ranks[victim].kill()
        for i, rank in enumerate(ranks):
            if i == victim:
                continue
            _, _, text = rank.expect("ended", JOINING_SECONDS + MARGIN)
            joined = rank.find("joined")
            rank.expect_end(3 if joined else 1)
            check(text.startswith(("CLT_E_TIMEOUT", "CLT_E_NETWORK", "CLT_E_PEER")), f"{rank.name} ended with {text}")
            check(not joined or f"rank {victim}" in text, f"{rank.name} does not name rank {victim}: {text}")
    finally:
        for rank in ranks:
            rank.end()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--times", type=int, default=10)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--seconds", type=float, default=50)
    options = parser.parse_args()
    seed = options.seed if options.seed is not None else random.randrange(1 << 30)
    chance = random.Random(seed)
    print(f"seed {seed}", flush=True)
    times = []
    for i in range(options.times):
        try:
            if i % 5 == 4:
                once_while_joining(options.program, chance)
            else:
                times.append(once(options.program, chance, options.seconds))
        except Failure as failure:
            print(f"FAILED: time {i + 1}: {failure}")
            return 1
    times.sort()
    print(f"{options.times} deaths, {len(times)} of them at work: every survivor named the rank; seconds until the last did: median {statistics.median(times):.4f}, "
          f"95 % {times[int(0.95 * (len(times) - 1))]:.4f}, most {times[-1]:.4f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

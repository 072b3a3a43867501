#!/usr/bin/env python3
"""kill -9 of a random rank of 3, at random moments: no hang, and every survivor reports that rank within a second.

    kill.py RANK [--times N] [--seed S] [--seconds LIMIT]
"""
import argparse
import random
import socket
import statistics
import sys
import time

from ranks import Failure, Rank, arguments, check_reports, place

SIZE = 3


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def once(program, chance, limit):
    """One group, one death; (who, after how many s, seconds until the last survivor said so)."""
    master = f"127.0.0.1:{free_port()}"
    victim, wait, count = chance.randrange(SIZE), chance.uniform(0, 0.3), chance.choice([1, 1000, 65536, 2000000])
    command = [program, *arguments(seconds=60, count=count, heartbeat=5)]
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
        return victim, wait, took
    finally:
        for rank in ranks:
            rank.end()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--times", type=int, default=10)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--seconds", type=float, default=1)
    options = parser.parse_args()
    seed = options.seed if options.seed is not None else random.randrange(1 << 30)
    chance = random.Random(seed)
    print(f"seed {seed}", flush=True)
    times = []
    for i in range(options.times):
        try:
            victim, wait, took = once(options.program, chance, options.seconds)
        except Failure as failure:
            print(f"FAILED: time {i + 1}: {failure}")
            return 1
        times.append(took)
    times.sort()
    print(f"{len(times)} deaths: every survivor named the rank; seconds until the last did: median {statistics.median(times):.4f}, "
          f"95 % {times[int(0.95 * (len(times) - 1))]:.4f}, most {times[-1]:.4f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

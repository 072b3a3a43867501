"""kill -9 at random moments of a program that saves a checkpoint after each step.

    kill.py SAVER KILLS [SEED]      until so many have met it in the middle of a save

A run that nobody kills tells what the checkpoint of each step is, bit by bit. After each kill the file must be that of the
last step that was told to be saved, or of the next one; and the following run goes on from it.
"""
import glob
import hashlib
import os
import random
import signal
import subprocess
import sys
import tempfile
import time

SAVER, KILLS = sys.argv[1], int(sys.argv[2])
HIDDEN = 2048  # a checkpoint of 1.8 MB
STEPS = 150 if KILLS > 100 else 60


def check(condition, text):
    if not condition:
        sys.exit(f"kill.py: {text}")


def content(path):
    with open(path, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()


def start(path):
    return subprocess.Popen([SAVER, path, str(STEPS), str(HIDDEN)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)


def control(folder):
    """The hash of each step's checkpoint."""
    path, hashes = os.path.join(folder, "control.safetensors"), {}
    process = subprocess.Popen([SAVER, path, str(STEPS), str(HIDDEN), "wait"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                               text=True, bufsize=1)
    for line in process.stdout:
        what, step = line.split()
        if what == "saved":
            hashes[int(step)] = content(path)
            process.stdin.write("\n")
    process.stdin.close()
    check(process.wait() == 0 and len(set(hashes.values())) == STEPS, "the control run failed")
    return hashes


def kill_once(path, hashes, before):
    """Starts a run from the checkpoint at hand, kills it, and gives the step that is there then; and whether it was saving."""
    process = start(path)
    first = process.stdout.readline().split()
    check(first == ["begun", str(before)], f"step {before} was there, but the run began with {first}")
    time.sleep(random.uniform(0, 0.25))
    process.send_signal(signal.SIGKILL)
    told = [int(line.split()[1]) for line in process.stdout if line.endswith("\n")]
    process.wait()
    last = told[-1] if told else before
    saving = bool(glob.glob(f"{path}.*.{process.pid}.*.tmp"))
    if not os.path.exists(path):
        check(last == 0, "the checkpoint is gone")
        return 0, saving
    now = content(path)
    for step in (last, last + 1):
        if now == hashes.get(step):
            return step, saving
    sys.exit(f"kill.py: after {last} was saved, the checkpoint is neither that nor the next one")


def main():
    random.seed(int(sys.argv[3]) if len(sys.argv) > 3 else 6)
    with tempfile.TemporaryDirectory() as folder:
        hashes, path = control(folder), os.path.join(folder, "model.safetensors")
        step = kills = saving = further = most = 0
        while saving < KILLS:
            check(kills < 5 * KILLS + 50, f"only {saving} of {kills} kills met a save")
            if step > STEPS - 40:
                os.unlink(path)
                step = 0
            before = step
            step, was_saving = kill_once(path, hashes, before)
            kills += 1
            saving += was_saving
            further += step > before
            most = max(most, len(glob.glob(path + ".*")))
        check(most <= 2, f"{most} temporaries pile up")
        run = start(path)
        run.communicate()
        check(run.returncode == 0 and content(path) == hashes[STEPS], "the last run did not end as the control did")
        check(not glob.glob(path + ".*"), "temporaries of dead runs are left")
        print(f"{kills} kills: {saving} in the middle of a save, {further} after at least one; the checkpoint was the old or the new one each time")


main()

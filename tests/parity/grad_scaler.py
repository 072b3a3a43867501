"""The scale of the loss against torch.amp.GradScaler, through overflows and long runs without.

    grad_scaler.py PROGRAM

Exits with 77 where PyTorch is not installed, or has no GradScaler on CPUs (before 2.3).
"""
import random
import subprocess
import sys

try:
    import torch
    scaler_of = torch.amp.GradScaler
except (ImportError, AttributeError) as error:
    print(f"skipped: {error}")
    sys.exit(77)


def trace_of_torch(word):
    weight = torch.nn.Parameter(torch.zeros(3))
    optimizer = torch.optim.SGD([weight], lr=0.0)
    scaler, trace = scaler_of("cpu"), []
    for letter in word:
        scaler.scale(torch.ones(()))  # the state is made with the first one
        weight.grad = torch.full((3,), float("inf") if letter == "x" else 1.0)
        scaler.step(optimizer)
        scaler.update()
        trace.append(scaler.get_scale())
    return trace


def trace_of_library(program, word):
    done = subprocess.run([program, word], capture_output=True, text=True, timeout=240)
    if done.returncode:
        sys.exit(f"{program}: {done.stderr}")
    return [float(line) for line in done.stdout.split()]


draw = random.Random(3)
word = "." * 4001 + "x" + "." * 1999 + "x" + "." * 2000 + "xx" + "." * 2001 + "x" * 5 + "".join("x" if draw.random() < 0.2 else "." for _ in range(200)) + "." * 2500
want, got = trace_of_torch(word), trace_of_library(sys.argv[1], word)
if len(want) != len(got):
    sys.exit(f"{len(got)} steps, expected {len(want)}")
for i, (a, b) in enumerate(zip(want, got)):
    if a != b:
        sys.exit(f"step {i} ({word[i]}): the scale is {b}, GradScaler's is {a}")
print(f"{len(want)} steps, {len(set(want))} scales, from {min(want)} to {max(want)}: the same")

"""Trains a model here and with the library, from the same weights on the same batches.

    compare.py DRIVER CASE ...

Losses of all steps must agree within 1e-3, relative. Then the library's weights are loaded with
load_state_dict(strict=True): the names and layouts must be PyTorch's own, and PyTorch's evaluation
with them must give the library's. Exits with 77 where PyTorch is not installed.
"""
import argparse
import math
import os
import subprocess
import sys
import tempfile
import time
import warnings

try:
    import numpy
    import torch
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

import models
import safetensors_file

TOLERANCE = 1e-3

# A ReLU's argument within rounding of zero falls on one side here and on the other there; with batch norm on
# small batches, training makes much of that: from PyTorch's own first weights and a usual learning rate, losses
# of PyTorch in float and in double part by more than 1e-2 within 5 steps. So the last norm of each branch beside
# a shortcut begins at `branch` instead of 1 (Goyal et al. 2017 begin it at 0), and the rates are small: PyTorch's
# losses from weights that differ by 1e-6 then agree within 1e-4 for all steps.
IMAGES = dict(shape=(3, 16, 16), classes=10, batch=8, steps=20, branch=0.2)
TINY = dict(shape=(1, 12, 8), classes=10, batch=16, steps=20)
CASES = {
    "resnet18-sgd": dict(IMAGES, model="resnet18", optimizer="sgd", lr=1e-3, momentum=0.9, nesterov=1,
                         weight_decay=5e-4),
    # PyTorch's own running means move by up to 5e-3 when its first weights change by 1e-6: a ReLU here and there turns, and Adam makes whole steps of it.
    "resnet18-adam": dict(IMAGES, model="resnet18", optimizer="adam", lr=5e-5, weight_decay=1e-4, buffers=1e-2),
    "convnet-sgd": dict(TINY, model="convnet", optimizer="sgd", lr=0.1, momentum=0.9, clip_norm=0.5),
    "convnet-adamw": dict(TINY, model="convnet", optimizer="adamw", lr=2e-3, weight_decay=0.05),
    "mlp-sgd": dict(TINY, model="mlp:64,32", optimizer="sgd", lr=0.2, weight_decay=1e-3, clip_value=0.01),
    "mlp-adam": dict(TINY, model="mlp:64,32", optimizer="adam", lr=5e-3, cosine=20),
    "mlp-accumulate": dict(TINY, model="mlp:64,32", optimizer="sgd", lr=0.1, momentum=0.9, accumulate=4),
    "transformer-adamw": dict(shape=(12,), tokens=models.Transformer.tokens, classes=6, batch=8, steps=20,
                              model="transformer", optimizer="adamw", lr=3e-3, weight_decay=0.01),
    # The gradient of the keys' bias is zero but for rounding, of which Adam makes whole steps: the way differs by these.
    "transformer-groups": dict(shape=(12,), tokens=models.Transformer.tokens, classes=6, batch=8, steps=50, groups=1, way=2e-3,
                               model="transformer", optimizer="adamw", lr=1e-3, weight_decay=0.5),
    "gpt2-adamw": dict(shape=(25,), tokens=40, classes=40, batch=4, steps=20, language=True, model="gpt2:3/4/64", optimizer="adamw", lr=2e-3,
                       weight_decay=0.1),
    "llama-adamw": dict(shape=(25,), tokens=40, classes=40, batch=4, steps=20, language=True, model="llama:3/8/64", optimizer="adamw", lr=2e-3,
                        weight_decay=0.1),
    "recurrent-adam": dict(shape=(9, 5), classes=6, batch=8, steps=20, model="recurrent", optimizer="adam", lr=3e-3),
    "lstm-sgd": dict(shape=(13,), tokens=40, classes=40, batch=4, steps=20, language=True, model="lstm:2/24", optimizer="sgd", lr=2.0, clip_norm=0.25),
    "unet-adam": dict(shape=(3, 35, 33), classes=5, batch=4, steps=20, model="unet", optimizer="adam", lr=5e-5),
    "unet-bilinear-sgd": dict(shape=(3, 32, 40), classes=5, batch=4, steps=20, model="unet-bilinear", optimizer="sgd", lr=2e-4, momentum=0.9),
}
# The same networks as PyTorch exports them to be trained: under its names, nothing folded.
for name in ("convnet-adamw", "resnet18-sgd", "transformer-adamw", "recurrent-adam"):
    CASES[f"onnx-{name}"] = dict(CASES[name], onnx=True)
# What the library is told; the rest of a case is about the data.
DRIVER_KEYS = ("model", "classes", "batch", "steps", "optimizer", "lr", "momentum", "nesterov", "weight_decay",
               "clip_norm", "clip_value", "cosine", "accumulate", "groups")


def make_data(case, random):
    """As many samples as all steps take: every batch is another one. Labels can be learned."""
    n = case["batch"] * case["steps"]
    y = random.integers(0, case["classes"], n)
    if case.get("language"):
        x = random.integers(0, case["tokens"], (n, *case["shape"]))
        for i in range(1, x.shape[1]):
            x[:, i] = numpy.where(random.random(n) < 0.8, (3 * x[:, i - 1] + 1) % case["tokens"], x[:, i])
        return x.astype(numpy.float32), y.astype(numpy.int32)
    if "tokens" in case:
        x = random.integers(0, case["tokens"], (n, *case["shape"]))
        x[:, 0] = y
        return x.astype(numpy.float32), y.astype(numpy.int32)
    prototypes = random.standard_normal((case["classes"], *case["shape"]))
    x = prototypes[y] + random.standard_normal((n, *case["shape"]))
    return x.astype(numpy.float32), y.astype(numpy.int32)


def make_optimizer(case, model):
    common = dict(lr=case["lr"], weight_decay=case.get("weight_decay", 0))
    if case["optimizer"] == "sgd":
        return torch.optim.SGD(model.parameters(), momentum=case.get("momentum", 0),
                               nesterov=bool(case.get("nesterov")), **common)
    kind = torch.optim.Adam if case["optimizer"] == "adam" else torch.optim.AdamW
    if not case.get("groups"):
        return kind(model.parameters(), **common)
    plain = [p for name, p in model.named_parameters() if name.endswith(".bias") or name.startswith("norm")]
    rest = [p for p in model.parameters() if all(p is not other for other in plain)]
    return kind([dict(params=rest, **common), dict(params=plain, lr=2 * case["lr"], weight_decay=0)])


def loss_of(case, output, x, y):
    if case.get("language"):
        return torch.nn.functional.cross_entropy(output.flatten(0, 1), x[:, 1:].long().flatten())
    return torch.nn.functional.cross_entropy(output, y)


def train(case, model, x, y):
    optimizer = make_optimizer(case, model)
    schedule = None
    if case.get("cosine"):
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, case["cosine"])
    accumulate, losses = case.get("accumulate", 1), []
    model.train()
    for step in range(case["steps"]):
        rows = slice(step * case["batch"], (step + 1) * case["batch"])
        loss = loss_of(case, model(x[rows]), x[rows], y[rows])
        if step % accumulate == 0:
            optimizer.zero_grad()
        (loss / accumulate).backward()
        losses.append(loss.item())
        if (step + 1) % accumulate:
            continue
        if case.get("clip_value"):
            torch.nn.utils.clip_grad_value_(model.parameters(), case["clip_value"])
        if case.get("clip_norm"):
            torch.nn.utils.clip_grad_norm_(model.parameters(), case["clip_norm"])
        optimizer.step()
        if schedule:
            schedule.step()
    return losses


def evaluate(case, model, x, y):
    model.eval()
    with torch.no_grad():
        output = model(x)
        loss = loss_of(case, output, x, y).item()
        return loss, math.nan if case.get("language") else (output.argmax(1) == y).double().mean().item()


def export(case, model, path):
    options = dict(input_names=["x"], output_names=["output"], dynamic_axes={"x": {0: "batch"}, "output": {0: "batch"}}, opset_version=14,
                   training=torch.onnx.TrainingMode.TRAINING, do_constant_folding=False)
    if tuple(map(int, torch.__version__.split(".")[:2])) >= (2, 5):
        options["dynamo"] = False
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(model, torch.zeros(case["batch"], *case["shape"]), path, **options)


def run_driver(driver, case, folder):
    words = [f"{key}={case[key]}" for key in DRIVER_KEYS if key in case and not (key == "model" and case.get("onnx"))]
    if case.get("onnx"):
        words.append(f"model={os.path.join(folder, 'model.onnx')}")
    files = [f"{name}={os.path.join(folder, name + suffix)}"
             for name, suffix in (("x", ".npy"), ("y", ".npy"), ("initial", ""), ("final", ""))]
    lines = subprocess.run([driver, *words, *files], check=True, stdout=subprocess.PIPE, text=True).stdout.split("\n")
    steps = case["steps"]
    word, loss, accuracy = lines[steps].split()
    assert word == "eval" and len(lines) == steps + 2, lines
    return [float(line) for line in lines[:steps]], float(loss), float(accuracy)


def to_arrays(model):
    return {name: tensor.detach().numpy().copy() for name, tensor in model.state_dict().items()}


def relative(a, b):
    return abs(a - b) / max(abs(b), 1e-12)


def check_weights(case, path, x, y, loss, accuracy):
    """The file is a state_dict of this model, and gives the evaluation that the library gave."""
    tensors, metadata = safetensors_file.read(path)
    fresh = models.build(case["model"], case["shape"], case["classes"])
    fresh.load_state_dict({name: torch.from_numpy(array.copy()) for name, array in tensors.items()}, strict=True)
    assert metadata == {"format": "pt"}, metadata
    own_loss, own_accuracy = evaluate(case, fresh, x, y)
    print(f"  evaluation of the saved weights: loss {own_loss:.7f} here, {loss:.7f} there")
    assert relative(loss, own_loss) < 1e-4, "the saved weights evaluate to another loss"
    assert case.get("language") or abs(accuracy - own_accuracy) * len(y) <= 1, (accuracy, own_accuracy)
    return tensors


def check_way(case, first, last, wanted):
    """The parameters went the same way as here, all in all; each buffer holds the same. Gives by how much the
    ways differ."""
    apart = way = 0.0
    for name, value in wanted.items():
        if name.endswith("num_batches_tracked"):
            assert int(last[name]) == case["steps"], f"{name} is {last[name]}"
        elif name.endswith(("running_mean", "running_var")):
            error = numpy.linalg.norm(last[name] - value) / numpy.linalg.norm(value)
            assert error < case.get("buffers", 1e-3), f"{name} differs by {error:.1e}"
        else:
            apart += float(((last[name] - value) ** 2).sum())
            way += float(((value - first[name]) ** 2).sum())
    assert apart < case.get("way", 0.05) ** 2 * way, f"the weights went another way, by {(apart / way) ** 0.5:.1e} of it"
    return (apart / way) ** 0.5


def compare(driver, name, folder):
    case = CASES[name]
    torch.manual_seed(7)
    x, y = make_data(case, numpy.random.default_rng(11))
    numpy.save(os.path.join(folder, "x.npy"), x)
    numpy.save(os.path.join(folder, "y.npy"), y)
    model = models.build(case["model"], case["shape"], case["classes"])
    for key, parameter in model.named_parameters():
        if "branch" in case and key.endswith("bn2.weight"):
            torch.nn.init.constant_(parameter, case["branch"])
    if case.get("onnx"):
        export(case, model, os.path.join(folder, "model.onnx"))  # which runs it, and moves the running statistics
    first = to_arrays(model)
    safetensors_file.write(os.path.join(folder, "initial"), first)
    start = time.monotonic()
    losses, loss, accuracy = run_driver(driver, case, folder)
    seconds = time.monotonic() - start
    x, y = torch.from_numpy(x), torch.from_numpy(y).long()
    wanted = train(case, model, x, y)
    errors = [relative(a, b) for a, b in zip(losses, wanted)]
    for step, (a, b, error) in enumerate(zip(losses, wanted, errors)):
        print(f"  step {step + 1:2}  {a:.7f}  {b:.7f}  {error:.1e}")
    last = check_weights(case, os.path.join(folder, "final"), x, y, loss, accuracy)
    print(f"{name}: largest difference of a loss {max(errors):.1e}; the library took {seconds:.1f} s")
    assert max(errors) < TOLERANCE, f"{name}: losses differ by more than {TOLERANCE}"
    assert min(wanted[-5:]) < wanted[0], f"{name}: nothing was learned, so little was compared"
    print(f"{name}: the weights differ by {check_way(case, first, last, to_arrays(model)):.1e} of their way")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("driver")
    parser.add_argument("cases", nargs="+", choices=CASES)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    for name in arguments.cases:
        with tempfile.TemporaryDirectory(prefix="cltrain-parity-") as folder:
            compare(arguments.driver, name, folder)


main()

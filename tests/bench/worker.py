"""PyTorch's side of the benchmark: worker.c's requests and cases.

    worker.py THREADS DEVICE

What PyTorch leaves to choose
(memory format, the optimizer's form) is tried when a case is prepared, and the fastest stays."""
import json
import math
import pathlib
import sys
import time

import numpy
import torch
from torch.nn import functional

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "parity"))
import models  # noqa: E402  (of the parity tests)

THREADS, DEVICE = int(sys.argv[1]), sys.argv[2]


def values(shape, stream):
    """bench_values of worker.c."""
    count = math.prod(shape)
    bits = numpy.arange(count, dtype=numpy.uint32) * numpy.uint32(2654435761)
    bits += numpy.uint32(stream * 0x9E3779B9 % 2**32)
    bits = (bits ^ bits >> numpy.uint32(16)) * numpy.uint32(0x85EBCA6B)
    bits = (bits ^ bits >> numpy.uint32(13)) * numpy.uint32(0xC2B2AE35)
    bits ^= bits >> numpy.uint32(16)
    floats = (bits >> numpy.uint32(8)).astype(numpy.float32) * numpy.float32(2.0**-23) - numpy.float32(1)
    return torch.from_numpy(floats.reshape(shape)).to(DEVICE)


def finish():
    if DEVICE != "cpu":
        torch.cuda.synchronize()


def seconds_of(run, repetitions=1):
    finish()
    start = time.perf_counter()
    for _ in range(repetitions):
        run()
    finish()
    return (time.perf_counter() - start) / repetitions


def best_of(run, tries=2):
    run()
    return min(seconds_of(run) for _ in range(tries))


def check(y):
    y = y.detach().contiguous().cpu().numpy().ravel().astype(numpy.float64)
    weights = values([y.size], 9).cpu().numpy()
    return [float(numpy.abs(y).sum()), float((y * weights).sum())]


def gemm(asked):
    m, n, k = asked["m"], asked["n"], asked["k"]
    a = values([k, m] if asked.get("transpose_a") else [m, k], 1)
    b = values([n, k] if asked.get("transpose_b") else [k, n], 2)
    a = a.t() if asked.get("transpose_a") else a
    b = b.t() if asked.get("transpose_b") else b
    y = torch.empty(m, n, device=DEVICE)

    def run():
        torch.mm(a, b, out=y)
    run()
    return run, {"check": check(y)}


def conv_in(asked, memory_format):
    """The case's function of one direction, with its operands in a memory format."""
    kernel, stride, padding = asked["kernel"], asked.get("stride", 1), asked.get("padding", 0)
    batch, size = asked["batch"], asked["size"]
    out = (size + 2 * padding - kernel) // stride + 1
    x_shape = [batch, asked["channels"], size, size]
    w_shape = [asked["outputs"], asked["channels"], kernel, kernel]
    y_shape = [batch, asked["outputs"], out, out]

    def tensor(shape, stream):
        return values(shape, stream).contiguous(memory_format=memory_format)

    def gradient(dy, x, w, wanted):
        return torch.ops.aten.convolution_backward(dy, x, w, None, [stride] * 2, [padding] * 2, [1, 1], False,
                                                   [0, 0], 1, [wanted == 0, wanted == 1, False])[wanted]
    # Operands that a direction does not read are there for their shapes; the streams are worker.c's.
    if asked["direction"] == "forward":
        x, w = tensor(x_shape, 1), tensor(w_shape, 2)
        return lambda: functional.conv2d(x, w, None, stride, padding)
    if asked["direction"] == "input":
        w, dy = tensor(w_shape, 1), tensor(y_shape, 2)
        x = torch.empty(x_shape, device=DEVICE).contiguous(memory_format=memory_format)
        return lambda: gradient(dy, x, w, 0)
    x, dy = tensor(x_shape, 1), tensor(y_shape, 2)
    w = torch.empty(w_shape, device=DEVICE).contiguous(memory_format=memory_format)
    return lambda: gradient(dy, x, w, 1)


def conv(asked):
    """In PyTorch's default layout; what its other one takes is told beside it."""
    run, other = conv_in(asked, torch.contiguous_format), conv_in(asked, torch.channels_last)
    best_of(run)
    return run, {"check": check(run()), "channels_last_seconds": best_of(other)}


def softmax(x, gradient):
    if not gradient:
        return lambda: functional.softmax(x, 1)
    dy = values(x.shape, 2)
    return lambda: torch.ops.aten._softmax_backward_data(dy, x, 1, torch.float32)


def layer_norm(x, gradient):
    """The gradient is of all three: input, weight and bias, from statistics that are given."""
    row, weight = x.shape[1:], values(x.shape[1:], 2)
    if not gradient:
        bias = values(row, 3)
        return lambda: functional.layer_norm(x, row, weight, bias)
    dy, (mean, istd), bias = values(x.shape, 3), values([2, len(x), 1], 4), torch.zeros(row, device=DEVICE)
    return lambda: torch.ops.aten.native_layer_norm_backward(dy, x, row, mean, istd, weight, bias, [True] * 3)[0]


def cross_entropy(x, gradient):
    """The gradient is of the log-softmax that the forward pass keeps, as its backward has it."""
    labels = torch.arange(len(x), device=DEVICE) * 7 % x.shape[1]
    if not gradient:
        return lambda: functional.cross_entropy(x, labels, reduction="none")
    dlosses, logs, one = values([len(x)], 3), functional.log_softmax(x, 1), torch.ones((), device=DEVICE)

    def run():
        d = torch.ops.aten.nll_loss_backward(dlosses, logs, labels, None, 0, -100, one)
        return torch.ops.aten._log_softmax_backward_data(d, logs, 1, torch.float32)
    return run


def rows(asked):
    ops = {"softmax": softmax, "layer_norm": layer_norm, "cross_entropy": cross_entropy}
    run = ops[asked["op"]](values([asked["rows"], asked["columns"]], 1), asked.get("gradient"))
    return run, {"check": check(run())}


def adamw(asked):
    parameter = torch.zeros(asked["elements"], device=DEVICE, requires_grad=True)
    parameter.grad = values([1 << 20], 1).repeat(-(-asked["elements"] // (1 << 20)))[:asked["elements"]]
    best = None
    for foreach in (False, True):
        optimizer = torch.optim.AdamW([parameter], lr=1e-3, weight_decay=0.01, foreach=foreach)
        with torch.no_grad():
            parameter.zero_()
        optimizer.step()
        first = float(parameter[0])
        seconds = best_of(optimizer.step, 1)
        if best is None or seconds < best[0]:
            best = seconds, foreach, optimizer, first
    return best[2].step, {"check": [best[3]], "foreach": best[1]}


def optimizer_of(asked, parameters, foreach):
    options = {"lr": asked["lr"], "weight_decay": asked.get("weight_decay", 0), "foreach": foreach}
    if asked["optimizer"] == "sgd":
        return torch.optim.SGD(parameters, momentum=asked.get("momentum", 0),
                               nesterov=bool(asked.get("nesterov")), **options)
    return {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW}[asked["optimizer"]](parameters, **options)


def steps_of(asked, layout, foreach):
    torch.manual_seed(0)
    shape = [asked["batch"], *asked["shape"]]
    x = values(shape, 1).cpu()
    y = torch.arange(asked["batch"]) % asked["classes"]
    if DEVICE != "cpu":
        x, y = x.pin_memory(), y.pin_memory()
    model = models.build(asked["model"], asked["shape"], asked["classes"]).to(DEVICE)
    if layout == "channels_last":
        x, model = x.contiguous(memory_format=torch.channels_last), model.to(memory_format=torch.channels_last)
    optimizer = optimizer_of(asked, model.parameters(), foreach)
    facts = {"parameters": sum(p.numel() for p in model.parameters()), "layout": layout, "foreach": foreach}

    def run():
        optimizer.zero_grad(set_to_none=True)
        # The batch lies in the host's memory on both sides.
        loss = functional.cross_entropy(model(x.to(DEVICE, non_blocking=True)), y.to(DEVICE, non_blocking=True))
        loss.backward()
        optimizer.step()
        facts["loss"] = loss.item() if "loss" not in facts else facts["loss"]
    return run, facts


def train(asked):
    """With the optimizer's form that is faster, unless only a first step is wanted."""
    layout = asked.get("layout", "contiguous")
    run, facts = steps_of(asked, layout, False)
    if asked.get("first"):
        run()
        return run, facts
    seconds = best_of(run)
    foreach = steps_of(asked, layout, True)
    if best_of(foreach[0]) < seconds:
        run, facts = foreach
    if not math.isfinite(facts["loss"]):
        raise ArithmeticError("the loss is not a number")
    return run, facts


def memory():
    """Bytes resident now and at most."""
    keys = {"VmRSS": "resident", "VmHWM": "peak"}
    with open("/proc/self/status", encoding="utf-8") as file:
        lines = [line.split() for line in file]
    return {keys[line[0][:-1]]: int(line[1]) * 1024 for line in lines if line[0][:-1] in keys}


def describe():
    """Which PyTorch, and with which BLAS."""
    with open("/proc/self/maps", encoding="utf-8") as file:
        mapped = {line.split()[-1] for line in file if "/" in line}
    words = ("blas", "mkl", "dnnl", "armpl")
    libraries = sorted(pathlib.Path(path).name for path in mapped
                       if any(word in pathlib.Path(path).name.lower() for word in words))
    settings = torch.__config__.show()
    blas = [part.strip() for part in settings.replace("\n", ",").split(",") if "BLAS_INFO=" in part]
    return {"torch_version": torch.__version__, "threads": torch.get_num_threads(), "python": sys.executable,
            "blas": blas[0].split("BLAS_INFO=")[1] if blas else "?", "libraries": libraries,
            "parallel": torch.__config__.parallel_info().split("ATen parallel backend:")[-1].split()[0],
            "device": DEVICE if DEVICE == "cpu" else torch.cuda.get_device_name(),
            "mkldnn": torch.backends.mkldnn.is_available()}


class Worker:
    kinds = {"gemm": gemm, "conv": conv, "rows": rows, "adamw": adamw, "train": train}

    def __init__(self):
        self.run = None
        self.estimate = 0

    def prepare(self, asked):
        self.run = None
        run, facts = self.kinds[asked["kind"]](asked)
        self.estimate = 0 if asked.get("first") else best_of(run)
        self.run = run
        return facts

    def time(self, asked):
        """In as many goes as it takes: an estimate from a busy moment is too long."""
        wanted, seconds, repetitions = asked.get("seconds", 0.05), 0, 0
        cpu = time.process_time()
        while not repetitions or seconds < 0.8 * wanted:
            count = max(1, math.ceil((wanted - seconds) / self.estimate)) if self.estimate else 1
            self.estimate = seconds_of(self.run, count)
            seconds += count * self.estimate
            repetitions += count
        return {"seconds": seconds / repetitions, "cpu": (time.process_time() - cpu) / repetitions,
                "repetitions": repetitions}

    def close(self):
        self.run = None
        return {}

    def serve(self, asked):
        if asked["do"] == "prepare":
            return self.prepare(asked)
        if asked["do"] == "time":
            return self.time(asked)
        return {"memory": memory, "describe": describe, "close": self.close}[asked["do"]]()


def main():
    torch.set_num_threads(THREADS)
    # f32 on both sides: no tensor cores that round to 10 bits.
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.benchmark = True
    worker = Worker()
    for line in sys.stdin:
        try:
            answer = worker.serve(json.loads(line))
        except Exception as error:  # pylint: disable=broad-except  (said in the answer)
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), flush=True)


main()

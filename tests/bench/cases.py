"""The cases of the benchmark: names, units, the work of a repetition, and what the workers are asked."""

GEMM_SQUARES = [256, 512, 1024, 1920]
# The linear layers of the models: batch, inputs, outputs.
LINEAR = {"mlp-fc1": (128, 3072, 1024), "mlp-fc2": (128, 1024, 1024), "convnet-fc1": (128, 4096, 128),
          "resnet18-fc": (64, 512, 10)}

# Distinct convolutions: channels, outputs, size of the input, kernel, stride; the padding keeps sizes.
RESNET18 = [(3, 64, 32, 3, 1), (64, 64, 32, 3, 1)] + [
    layer for i, channels in enumerate((64, 128, 256))
    for layer in ((channels, 2 * channels, 32 >> i, 3, 2), (channels, 2 * channels, 32 >> i, 1, 2),
                  (2 * channels, 2 * channels, 16 >> i, 3, 1))]
RESNET50 = [(3, 64, 224, 7, 2), (64, 64, 56, 1, 1), (64, 64, 56, 3, 1), (64, 256, 56, 1, 1), (256, 64, 56, 1, 1)] + [
    layer for i, width in enumerate((128, 256, 512))
    for layer in ((2 * width, width, 56 >> i, 1, 1), (width, width, 56 >> i, 3, 2), (width, 4 * width, 28 >> i, 1, 1),
                  (2 * width, 4 * width, 56 >> i, 1, 2), (4 * width, width, 28 >> i, 1, 1),
                  (width, width, 28 >> i, 3, 1))]
DIRECTIONS = ("forward", "input", "weight")

MODELS = {
    "mlp": {"model": "mlp:1024,1024", "shape": [3072], "batch": 128, "classes": 10, "optimizer": "adamw", "lr": 1e-3,
            "weight_decay": 0.01},
    "convnet": {"model": "convnet", "shape": [3, 32, 32], "batch": 128, "classes": 10, "optimizer": "adamw",
                "lr": 2e-3, "weight_decay": 0.01},
    "resnet18": {"model": "resnet18", "shape": [3, 32, 32], "batch": 64, "classes": 10, "optimizer": "sgd", "lr": 0.1,
                 "momentum": 0.9, "weight_decay": 5e-4, "nesterov": True},
    "tiny": {"model": "mlp:10", "shape": [5], "batch": 16, "classes": 2, "optimizer": "adam", "lr": 1e-3},
}
ADAMW_ELEMENTS = 50_000_000
ADAMW_QUICK_ELEMENTS = 12_500_000
ADAMW_BYTES = 28  # an element: parameter, m and v read and written, gradient read


def op(name, group, flops, request, **facts):
    return {"name": name, "group": group, "unit": "GFLOP/s", "work": flops * 1e-9, "request": request, **facts}


def gemm(name, m, n, k, **transposes):
    return op(f"gemm/{name}", "gemm", 2 * m * n * k, {"kind": "gemm", "m": m, "n": n, "k": k, **transposes})


def gemms(quick):
    for size in [512, 1024] if quick else GEMM_SQUARES:
        yield {**gemm(str(size), size, size, size), "against_peak": size >= 1024}
    for name, (batch, inputs, outputs) in {} if quick else LINEAR.items():
        yield gemm(f"{name}-forward", batch, outputs, inputs, transpose_b=True)
        yield gemm(f"{name}-input", batch, inputs, outputs)
        yield gemm(f"{name}-weight", outputs, inputs, batch, transpose_a=True)


def conv(network, batch, layer, direction):
    channels, outputs, size, kernel, stride = layer
    out = (size - 1) // stride + 1
    flops = 2 * batch * outputs * out * out * channels * kernel * kernel
    stride_text = f"s{stride}" if stride > 1 else ""
    name = f"conv/{network}/{kernel}x{kernel}{stride_text}-{channels}-{outputs}-{size}/{direction}"
    request = {"kind": "conv", "batch": batch, "channels": channels, "outputs": outputs, "size": size,
               "kernel": kernel, "stride": stride, "padding": kernel // 2, "direction": direction}
    return op(name, "conv", flops, request, network=network, direction=direction, kernel=kernel,
              against_peak=network == "resnet18" and kernel == 3)


def convs(quick):
    networks = {"resnet18": (64, [RESNET18[i] for i in (1, 4, 10)] if quick else RESNET18)}
    if not quick:
        networks["resnet50"] = (16, RESNET50)
    for network, (batch, layers) in networks.items():
        for layer in layers:
            for direction in DIRECTIONS:
                if layer[0] > 3 or direction != "input":  # nobody asks for the gradient of an image
                    yield conv(network, batch, layer, direction)


# Along rows, as in transformers and of 1,000 classes; more than caches hold. Name: rows, columns, and how many matrices of
# them have to be moved at least, forward and for the gradients.
ROWS = {"softmax": (49152, 256, 2, 3), "layer_norm": (16384, 768, 2, 3), "cross_entropy": (16384, 1000, 1, 2)}


def rows():
    for name, (count, columns, forward, gradient) in ROWS.items():
        for phase, tensors in (("forward", forward), ("gradient", gradient)):
            case = f"rows/{name}-{count}x{columns}/{phase}"
            yield {"name": case, "group": "rows", "unit": "GB/s", "work": tensors * count * columns * 4e-9,
                   "against_copy": case + "/of-copy",
                   "request": {"kind": "rows", "op": name, "rows": count, "columns": columns,
                               "gradient": phase == "gradient"}}


def trainings():
    for name, model in MODELS.items():
        steps = name == "tiny"
        case = {"name": name, "group": name, "unit": "steps/s" if steps else "images/s",
                "work": 1 if steps else model["batch"], "request": {"kind": "train", **model}}
        yield case
        if len(model["shape"]) == 3:  # once more with PyTorch in the layout that is not its default
            yield {**case, "name": name + "/channels-last", "request": {**case["request"], "layout": "channels_last"}}


def adamw(quick):
    elements = ADAMW_QUICK_ELEMENTS if quick else ADAMW_ELEMENTS
    return {"name": f"adamw/{elements / 1e6:g}M", "group": "adamw", "unit": "GB/s",
            "work": elements * ADAMW_BYTES * 1e-9, "request": {"kind": "adamw", "elements": elements},
            "against_copy": "adamw/of-copy"}


def timed(quick):
    """The cases that are a work for a time, in the order of their running."""
    return [*gemms(quick), *convs(quick), *([] if quick else rows()), *trainings(), adamw(quick)]


GROUPS = ["peak", "gemm", "conv", "rows", *MODELS, "adamw", "first_step", "memory"]

# Rows that have to reach something: which member, and how much.
TARGETS = [
    ("peak/fma", "ratio", ">=", 0.9), ("peak/gemm-1024", "ratio", ">=", 0.85), ("peak/gemm-1920", "ratio", ">=", 0.85),
    *[(f"peak/conv3x3-{direction}", "ratio", ">=", 0.75) for direction in DIRECTIONS],
    ("conv/resnet18/geomean", "ratio", ">=", 1.3), ("conv/resnet50/geomean", "ratio", ">=", 1.3),
    ("mlp", "ratio", ">=", 2.5), ("convnet", "ratio", ">=", 2.5), ("resnet18", "ratio", ">=", 1.4),
    ("tiny", "ratio", ">=", 2), ("adamw/of-copy", "ratio", ">=", 0.8), ("first_step/cold", "cltrain", "<=", 10),
    ("first_step/warm", "cltrain", "<=", 0.5), ("memory", "ratio", ">=", 1.25),
]

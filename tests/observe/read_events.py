"""Event files as TensorBoard reads them: random values written by the library are read back, also those of writers that were killed.

    read_events.py LIBCLTRAIN [SEED]

Exit status 77: there is no TensorBoard.
"""
import collections
import ctypes
import glob
import io
import logging
import math
import os
import random
import signal
import struct
import sys
import tempfile
import time

try:
    import numpy
    from PIL import Image
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    from tensorboard.plugins.hparams import api_pb2, metadata
    from tensorboard.plugins.pr_curve import metadata as pr_metadata
    from tensorboard.util import tensor_util
except ImportError:
    sys.exit(77)


class HParam(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("text", ctypes.c_char_p), ("number", ctypes.c_double)]


LIBRARY = ctypes.CDLL(sys.argv[1])
LIBRARY.clt_error_detail.restype = ctypes.c_char_p
TAGGED = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int64]
LIBRARY.clt_events_scalar.argtypes = TAGGED + [ctypes.c_double]
LIBRARY.clt_events_text.argtypes = TAGGED + [ctypes.c_char_p]
LIBRARY.clt_events_histogram.argtypes = TAGGED + [ctypes.c_void_p, ctypes.c_size_t]
LIBRARY.clt_events_image.argtypes = TAGGED + [ctypes.c_char_p, ctypes.c_int, ctypes.c_int, ctypes.c_int]
LIBRARY.clt_events_pr_curve.argtypes = TAGGED + [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
LIBRARY.clt_events_hparams.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p, ctypes.c_size_t]
LIBRARY.clt_events_session_end.argtypes = [ctypes.c_void_p, ctypes.c_bool]
ALL = {kind: 0 for kind in ("scalars", "tensors", "images", "histograms", "compressedHistograms", "distributions")}  # nothing is left out
TAGS = ["loss", "loss/train", "größe/ü", "x" * 300, "日本/語 🎉"]
RECORDS, KILLS, SIDE = 300, 20, 400


def call(name, *arguments):
    status = getattr(LIBRARY, name)(*arguments)
    assert status == 0, (name, status, LIBRARY.clt_error_detail())


def open_events(folder):
    events = ctypes.c_void_p()
    call("clt_events_open", ctypes.byref(events), folder.encode())
    return events


def read(folder):
    return EventAccumulator(folder, size_guidance=ALL, purge_orphaned_data=False).Reload()


def f32(value):
    return numpy.float32(value)


def floats(draw, count):
    """Of all sizes: any bits (NaN, infinite and denormal ones among them), around 1, and 0."""
    some = [struct.unpack("<f", draw.randbytes(4))[0], draw.gauss(0, 1), draw.gauss(0, 1e-5), 0.0]
    special = [math.nan, math.inf, -math.inf, 1e-45, -1e-40, 3.4028235e38, -0.0]
    values = [draw.choice(special) if draw.random() < 0.02 else draw.choice(some) * draw.choice([1, -1]) for _ in range(count)]
    return numpy.array(values, numpy.float32)


def same(a, b):
    """Bit by bit, but for what is not a number."""
    a, b = numpy.asarray(a, numpy.float32), numpy.asarray(b, numpy.float32)
    return a.shape == b.shape and bool(numpy.all((a.view(numpy.uint32) == b.view(numpy.uint32)) | (numpy.isnan(a) & numpy.isnan(b))))


def write_scalar(draw, events, tag, step):
    value = draw.choice([float(floats(draw, 1)[0]), draw.gauss(0, 1), 1e300, -1e-300, 1e-42])
    call("clt_events_scalar", events, tag.encode(), step, value)
    with numpy.errstate(over="ignore"):
        return f32(value)


def check_scalar(wanted, got):
    assert same(wanted, got.value), (wanted, got.value)


def write_text(draw, events, tag, step):
    text = "".join(draw.choice("abc *#|\n<&äß語🎉") for _ in range(draw.choice([0, 1, 50, 5000])))
    call("clt_events_text", events, tag.encode(), step, text.encode())
    return text


def check_text(wanted, got):
    array = tensor_util.make_ndarray(got.tensor_proto)
    assert array.shape == () and array.item().decode() == wanted


def write_histogram(draw, events, tag, step):
    values = floats(draw, draw.choice([1, 2, 100, 3000]))
    call("clt_events_histogram", events, tag.encode(), step, values.ctypes.data, len(values))
    return values


def limits_of_tensorflow():
    limits, v = [], 1e-12
    while v < 1e20:
        limits.append(v)
        v *= 1.1
    limits.append(sys.float_info.max)
    return [-v for v in reversed(limits)] + [0.0] + limits


LIMITS = numpy.array(limits_of_tensorflow())


def check_histogram(values, got):
    got, finite = got.histogram_value, values[numpy.isfinite(values)].astype(numpy.float64)
    assert got.num == len(finite)
    if not len(finite):
        return
    assert got.min == finite.min() and got.max == finite.max()
    assert math.isclose(got.sum, math.fsum(finite), rel_tol=1e-9, abs_tol=1e-9 * math.fsum(abs(finite)))
    assert math.isclose(got.sum_squares, math.fsum(finite * finite), rel_tol=1e-9)
    counts = numpy.bincount(numpy.searchsorted(LIMITS, finite, side="right"), minlength=len(LIMITS))
    wanted = {limit: count for limit, count in zip(LIMITS, counts) if count}
    found = {limit: count for limit, count in zip(got.bucket_limit, got.bucket) if count}
    assert wanted == found, (wanted, found)
    assert got.bucket[0] and got.bucket[-1] and list(got.bucket_limit) == sorted(got.bucket_limit)
    for i, count in enumerate(got.bucket):  # the edge below a full bucket is the one it is to have
        if i and count:
            assert LIMITS[numpy.searchsorted(LIMITS, got.bucket_limit[i]) - 1] == got.bucket_limit[i - 1]


def write_image(draw, events, tag, step):
    channels, height, width = draw.choice([1, 3]), draw.randint(1, 70), draw.randint(1, 70)
    pixels = draw.choice([draw.randbytes, bytes])(channels * height * width)
    call("clt_events_image", events, tag.encode(), step, pixels, height, width, channels)
    return channels, height, width, pixels


def check_image(wanted, got):
    channels, height, width, pixels = wanted
    assert (got.height, got.width) == (height, width)
    with Image.open(io.BytesIO(got.encoded_image_string)) as image:
        image.load()
        assert image.format == "PNG" and image.mode == ("L" if channels == 1 else "RGB") and image.size == (width, height)
        assert image.tobytes() == pixels


def write_curve(draw, events, tag, step):
    n, thresholds = draw.choice([1, 10, 1000]), draw.choice([2, 11, 128, 201])
    labels = numpy.array([draw.random() < 0.3 for _ in range(n)], numpy.uint8)
    scores = numpy.array([draw.choice([draw.random(), draw.randrange(11) / 10, -0.5, 1.5, math.nan]) for _ in range(n)], numpy.float32)
    call("clt_events_pr_curve", events, tag.encode(), step, labels.ctypes.data, scores.ctypes.data, n, thresholds)
    return labels, scores, thresholds


def check_curve(wanted, got):
    labels, scores, thresholds = wanted
    tensor = tensor_util.make_ndarray(got.tensor_proto)
    assert tensor.shape == (6, thresholds) and tensor.dtype == numpy.float32
    at = f32(numpy.arange(thresholds)) / f32(thresholds - 1)
    predicted, truth = scores[:, None] >= at, labels[:, None] != 0
    counts = [(predicted & truth).sum(0), (predicted & ~truth).sum(0), (~predicted & ~truth).sum(0), (~predicted & truth).sum(0)]
    assert (tensor[:4] == numpy.array(counts)).all()
    assert numpy.allclose(tensor[4], counts[0] / numpy.maximum(1e-7, counts[0] + counts[1]), atol=1e-6)
    assert numpy.allclose(tensor[5], counts[0] / numpy.maximum(1e-7, counts[0] + counts[3]), atol=1e-6)


# Tags are of one kind each, and so have its name before them.
KINDS = {"scalar": (write_scalar, check_scalar, EventAccumulator.Scalars), "text": (write_text, check_text, EventAccumulator.Tensors),
         "histogram": (write_histogram, check_histogram, EventAccumulator.Histograms), "image": (write_image, check_image, EventAccumulator.Images),
         "curve": (write_curve, check_curve, EventAccumulator.Tensors)}


def check_nonfinite(read_back, tag, written):
    wanted = [(step, int((~numpy.isfinite(values)).sum())) for step, values, _, _ in written if not numpy.isfinite(values).all()]
    name = tag + "/nonfinite"
    found = [(event.step, event.value) for event in read_back.Scalars(name)] if name in read_back.Tags()["scalars"] else []
    assert wanted == found, (wanted, found)


def check_all(folder, written):
    read_back = read(folder)
    for (kind, tag), values in written.items():
        _, check, events_of = KINDS[kind]
        found = events_of(read_back, tag)
        assert [event.step for event in found] == [step for step, *_ in values], tag
        for (_, value, before, after), event in zip(values, found):
            assert before - 1e-3 <= event.wall_time <= after + 1e-3
            check(value, event)
        if kind == "histogram":
            check_nonfinite(read_back, tag, values)
    texts, curves = read_back.PluginTagToContent("text"), read_back.PluginTagToContent("pr_curves")
    assert set(texts) == {tag for kind, tag in written if kind == "text"}
    assert set(curves) == {tag for kind, tag in written if kind == "curve"}
    for tag, content in curves.items():
        data, first = pr_metadata.parse_plugin_metadata(content), written["curve", tag][0][1]
        assert (data.version, data.num_thresholds) == (0, first[2])


def values_come_back(draw, folder):
    events, written = open_events(folder), collections.defaultdict(list)
    for _ in range(RECORDS):
        kind = draw.choice(list(KINDS))
        tag = f"{kind}/{draw.choice(TAGS)}"
        step, before = draw.choice([draw.randint(0, 1000), draw.randint(-2**63, 2**63 - 1)]), time.time()
        value = KINDS[kind][0](draw, events, tag, step)
        written[kind, tag].append((step, value, before, time.time()))
    check_all(folder, written)  # of a file that is still being written
    call("clt_events_flush", events)
    call("clt_events_close", events)
    check_all(folder, written)


def hparams_come_back(folder):
    events, hparams = open_events(folder), {"lr": 1e-3, "layers": 12.0, "optimizer": "adam", "größe": "", "zero": 0.0, "clip": "inf"}
    texts = {n: v.encode() if isinstance(v, str) else None for n, v in hparams.items()}
    array = (HParam * len(hparams))(*[HParam(n.encode(), texts[n], v if texts[n] is None else 0) for n, v in hparams.items()])
    metrics = (ctypes.c_char_p * 2)(b"loss/train", "genau/ü".encode())
    call("clt_events_hparams", events, array, len(array), metrics, 2)
    call("clt_events_session_end", events, False)
    call("clt_events_close", events)
    contents = read(folder).PluginTagToContent("hparams")
    experiment = metadata.parse_experiment_plugin_data(contents[metadata.EXPERIMENT_TAG])
    start = metadata.parse_session_start_info_plugin_data(contents[metadata.SESSION_START_INFO_TAG])
    end = metadata.parse_session_end_info_plugin_data(contents[metadata.SESSION_END_INFO_TAG])
    types = {info.name: info.type for info in experiment.hparam_infos}
    assert types == {n: api_pb2.DATA_TYPE_STRING if isinstance(v, str) else api_pb2.DATA_TYPE_FLOAT64 for n, v in hparams.items()}
    assert [info.name.tag for info in experiment.metric_infos] == ["loss/train", "genau/ü"]
    assert {n: getattr(v, v.WhichOneof("kind")) for n, v in start.hparams.items()} == hparams
    assert end.status == api_pb2.STATUS_FAILURE
    for moment in (experiment.time_created_secs, start.start_time_secs, end.end_time_secs):
        assert abs(moment - time.time()) < 100


def write_until_killed(folder, told):
    """Scalars, and images of half a megabyte: writing those takes long enough to be met."""
    events, noise, step = open_events(folder), os.urandom(3 * SIDE * SIDE), 0
    while True:
        if step % 2:
            call("clt_events_image", events, b"image", step, noise, SIDE, SIDE, 3)
        else:
            call("clt_events_scalar", events, b"scalar", step, step)
        os.write(told, b".")
        step += 1


class Shape(ctypes.Structure):
    _fields_ = [("rank", ctypes.c_int), ("dims", ctypes.c_int64 * 8)]


class Linear(ctypes.Structure):
    _fields_ = [("out_features", ctypes.c_int64), ("no_bias", ctypes.c_bool)]


def graphs_come_back(folder):
    graph = ctypes.c_void_p()
    call("clt_graph_create", ctypes.byref(graph))
    for name in "clt_input", "clt_linear_with", "clt_relu":
        getattr(LIBRARY, name).restype = ctypes.c_void_p
    LIBRARY.clt_input.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int, Shape]
    LIBRARY.clt_linear_with.argtypes = [ctypes.c_void_p, ctypes.c_char_p, Linear]
    LIBRARY.clt_relu.argtypes = [ctypes.c_void_p]
    LIBRARY.clt_events_graph.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
    h = LIBRARY.clt_input(graph, b"x", 0, Shape(2, (5, 7)))
    for name in b"encoder.0", b"encoder.1", b"head":
        h = LIBRARY.clt_relu(LIBRARY.clt_linear_with(h, name, Linear(3, False)))
    events = open_events(folder)
    call("clt_events_graph", events, h)
    call("clt_events_close", events)
    drawn = read(folder).Graph()
    nodes = {node.name: node for node in drawn.node}
    assert len(nodes) == len(drawn.node) and {"x", "encoder/0/weight", "head/bias"} <= set(nodes), sorted(nodes)
    assert all(operand.split(":")[0] in nodes for node in drawn.node for operand in node.input)
    shape = nodes["encoder/1/weight"].attr["_output_shapes"].list.shape[0]
    assert [dim.size for dim in shape.dim] == [3, 3], shape
    LIBRARY.clt_graph_destroy(graph)


def killed_writers_leave_whole_records(draw, folder):
    """The number of files whose last record is torn."""
    torn = 0
    for i in range(KILLS):
        run, (from_child, to_parent) = os.path.join(folder, str(i)), os.pipe()
        child = os.fork()
        if child == 0:
            try:
                write_until_killed(run, to_parent)
            finally:
                os._exit(1)
        os.close(to_parent)
        os.read(from_child, 1)
        time.sleep(draw.uniform(0, 0.2))
        os.kill(child, signal.SIGKILL)
        assert os.WTERMSIG(os.waitpid(child, 0)[1]) == signal.SIGKILL
        with os.fdopen(from_child, "rb") as pipe:
            told = 1 + len(pipe.read())
        read_back = read(run)
        steps = [event.step for event in read_back.Scalars("scalar")]
        if "image" in read_back.Tags()["images"]:
            steps += [event.step for event in read_back.Images("image")]
        assert sorted(steps) == list(range(len(steps))) and told <= len(steps) <= told + 1, (told, len(steps))
        torn += end_of_records(glob.glob(os.path.join(run, "*"))[0])
    return torn


def end_of_records(path):
    """1 if there is a part of a record at the end, else 0."""
    with open(path, "rb") as file:
        data, at = file.read(), 0
    while len(data) - at >= 12:
        at += 16 + struct.unpack_from("<Q", data, at)[0]
    return int(at != len(data))


def main():
    logging.getLogger("tensorboard").setLevel(logging.ERROR)  # which tells of torn records
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else random.randrange(1 << 30)
    draw = random.Random(seed)
    print(f"seed {seed}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        values_come_back(draw, os.path.join(folder, "values"))
        hparams_come_back(os.path.join(folder, "hparams"))
        graphs_come_back(os.path.join(folder, "graph"))
        torn = killed_writers_leave_whole_records(draw, os.path.join(folder, "killed"))
    print(f"{RECORDS} records came back; {KILLS} writers were killed, {torn} of them within a record")


main()

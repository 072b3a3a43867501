"""What cltrain-train --tensorboard writes: read back record by record, with and without breaks.

    board.py CLTRAIN_TRAIN
"""
import glob
import json
import os
import struct
import subprocess
import sys
import tempfile

PROGRAM = os.path.abspath(sys.argv[1])


def crc32c(data):
    crc = 0xffffffff
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82f63b78 if crc & 1 else 0)
    crc ^= 0xffffffff
    return ((crc >> 15 | crc << 17) + 0xa282ead8) & 0xffffffff


def fields(data):
    """(number, value) of a protocol buffer's message."""
    def varint(at):
        value = shift = 0
        while True:
            value |= (data[at] & 0x7f) << shift
            shift, at = shift + 7, at + 1
            if data[at - 1] < 0x80:
                return value, at
    at = 0
    while at < len(data):
        key, at = varint(at)
        size = {1: 8, 5: 4}.get(key & 7)
        if key & 7 == 0:
            value, at = varint(at)
        else:
            if size is None:
                size, at = varint(at)
            value, at = data[at:at + size], at + size
        yield key >> 3, value


def records(path):
    with open(path, "rb") as file:
        data = file.read()
    at = 0
    while at < len(data):
        length, check = struct.unpack_from("<QI", data, at)
        body = data[at + 12:at + 12 + length]
        assert check == crc32c(data[at:at + 8]) and len(body) == length, path
        assert length > 20000 or struct.unpack_from("<I", data, at + 12 + length)[0] == crc32c(body), path  # slow for pictures
        yield body
        at += 16 + length


def read(folder):
    """{tag: {step: (number of the value's field, value)}}, and how many files there are."""
    found, files = {}, sorted(glob.glob(os.path.join(folder, "events.out.tfevents.*")))
    for path in files:
        for number, record in enumerate(records(path)):
            event = dict(fields(record))
            if number == 0:
                assert event[3] == b"brain.Event:2", event
            for _, value in fields(event.get(5, b"")):
                parts = dict(fields(value))
                kind = next(k for k in (2, 4, 5, 8, 9) if k in parts)
                values = found.setdefault(parts[1].decode(), {})
                assert event.get(2, 0) not in values or not parts[1].startswith(b"test/"), (parts[1], "twice")
                values[event.get(2, 0)] = kind, parts[kind]
    return found, len(files)


def scalar(found, tag, step):
    kind, value = found[tag][step]
    assert kind == 2, (tag, kind)
    return struct.unpack("<f", value)[0]


def train(*words):
    done = subprocess.run([PROGRAM, *words, "--json"], capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout), done.stderr


def check_classes():
    told, _ = train("convnet", "--data", "digits", "--epochs", "2", "--stop-after", "1", "--save", "a.safetensors", "--tensorboard", "runs/a")
    told, _ = train("convnet", "--data", "digits", "--epochs", "2", "--resume", "a.safetensors", "--tensorboard", "runs/a", "--log", "a.jsonl")
    found, files = read("runs/a")
    check_graph("runs/a")
    last = told["steps"]
    assert files == 2, "a run that goes on has a file more"
    for tag, key in (("train/loss", "train_loss"), ("test/loss", "test_loss"), ("test/accuracy", "test_accuracy"), ("test/f1", "test_f1"), ("test/auc", "test_auc")):
        assert abs(scalar(found, tag, last) - told[key]) < 1e-6, (tag, told[key])
    assert sorted(found["test/loss"]) == [last // 2, last], found["test/loss"]
    for tag in ("weights/conv1.weight", "gradients/conv1.weight", "weights/fc2.bias"):
        assert found[tag][last][0] == 5, tag
    for tag in ("samples", "mistakes"):
        kind, image = next(iter(found[tag].values()))
        assert kind == 4 and b"\x89PNG" in image, tag
    assert [tag for tag in found if tag.startswith("class/")] == [f"class/{i}" for i in range(10)]
    epochs = [line for line in map(json.loads, open("a.jsonl", encoding="utf-8")) if line["event"] == "epoch"]
    assert abs(scalar(found, "test/loss", epochs[-1]["step"]) - epochs[-1]["test_loss"]) < 1e-6


def check_graph(folder):
    """The network, which is there once: each input of a node is a node, and layers are boxes."""
    paths = glob.glob(os.path.join(folder, "events.out.tfevents.*"))
    graphs = [value for path in paths for record in records(path) for number, value in fields(record) if number == 4]
    assert len(graphs) == 1, len(graphs)
    nodes = {}
    for kind, node in fields(graphs[0]):
        if kind == 1:
            parts = list(fields(node))
            nodes[dict(parts)[1].decode()] = [v.decode() for k, v in parts if k == 3]
    assert {"x", "y", "conv1/weight", "fc2/bias"} <= set(nodes), sorted(nodes)
    assert all(operand.split(":")[0] in nodes for operands in nodes.values() for operand in operands)
    assert any(name.startswith("conv1/conv2d_") and "conv1/weight" in operands for name, operands in nodes.items())


def check_numbers():
    told, _ = train("linear", "--data", "synthetic-regression:500x4", "--epochs", "2", "--tensorboard", "runs/b")
    found, _ = read("runs/b")
    assert abs(scalar(found, "test/r2", told["steps"]) - told["test_r2"]) < 1e-6
    assert "samples" not in found and "train/mse" in found


def check_errors():
    open("file", "w", encoding="utf-8").close()
    done = subprocess.run([PROGRAM, "mlp", "--data", "digits", "--tensorboard", "file/runs"], capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "--tensorboard" in done.stderr and "file/runs" in done.stderr, done


def main():
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        check_classes()
        check_numbers()
        check_errors()
        os.chdir("/")
    print("all passed")


main()

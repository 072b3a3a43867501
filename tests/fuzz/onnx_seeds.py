"""Seeds of fuzz_onnx_build, from the test cases of the Python package onnx (1.22 and older).

    onnx_seeds.py FOLDER

Each model of at most 24,000 bytes twice: as it is, and with its inputs as constants of their test data, so that what they give is computed while the graph
is built. To be gathered with minimize.sh, from BUILD/tests/fuzz/work/onnx_build.
"""
import hashlib
import os
import sys

import onnx
from onnx import TensorProto
from onnx.backend.test import runner

MOST_BYTES = 24000
DATA = os.path.join(os.path.dirname(runner.__file__), "..", "data")


def write(folder, model):
    data = model.SerializeToString()
    if len(data) <= MOST_BYTES:
        with open(os.path.join(folder, hashlib.sha1(data).hexdigest()), "wb") as file:
            file.write(data)


def with_constants(model, folder):
    for i, value in enumerate(list(model.graph.input)):
        path = os.path.join(folder, "test_data_set_0", f"input_{i}.pb")
        if not value.type.HasField("tensor_type") or not os.path.exists(path):
            continue
        tensor = TensorProto()
        with open(path, "rb") as file:
            tensor.ParseFromString(file.read())
        tensor.name = value.name
        entry = tensor.metadata_props.add()
        entry.key, entry.value = "cltrain.kind", "constant"
        model.graph.initializer.append(tensor)
        model.graph.input.remove(value)
    return model


def main(folder):
    os.makedirs(folder, exist_ok=True)
    for kind in ("node", "pytorch-operator", "pytorch-converted"):
        for case in sorted(os.listdir(os.path.join(DATA, kind))):
            path = os.path.join(DATA, kind, case)
            if os.path.exists(os.path.join(path, "model.onnx")):
                write(folder, onnx.load(os.path.join(path, "model.onnx")))
                write(folder, with_constants(onnx.load(os.path.join(path, "model.onnx")), path))


main(sys.argv[1])

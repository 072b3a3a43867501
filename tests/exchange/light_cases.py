"""ONNX's light models as folders of test cases: light_cases.py FROM TO, where FROM is onnx/backend/test/data/light of the Python package onnx (1.22 and older),
and `cltrain-conform --onnx TO` runs them. Inputs are those of the package's own runner: 0, 1/n ... (n - 1)/n."""
import pathlib
import shutil
import sys

import numpy as np
import onnx
from onnx import numpy_helper

source, target = map(pathlib.Path, sys.argv[1:])
for file in sorted(source.glob("*.onnx")):
    data = target / file.stem / "test_data_set_0"
    data.mkdir(parents=True, exist_ok=True)
    shutil.copy(file, data.parent / "model.onnx")
    shutil.copy(source / f"{file.stem}_output_0.pb", data / "output_0.pb")
    graph = onnx.load(file).graph
    weights = {i.name for i in graph.initializer}
    for k, value in enumerate(i for i in graph.input if i.name not in weights):
        shape = [d.dim_value or 1 for d in value.type.tensor_type.shape.dim]
        n = np.prod(shape)
        (data / f"input_{k}.pb").write_bytes(numpy_helper.from_array((np.arange(n).reshape(shape) / n).astype("f4"), value.name).SerializeToString())

"""What test_export writes, in ONNX Runtime: serve_onnx.py TEST_EXPORT. Exit code 77 where onnx or onnxruntime is missing."""
import os
import pathlib
import subprocess
import sys
import tempfile

try:
    import numpy as np
    import onnx
    import onnxruntime
except ImportError as missing:
    print(f"{missing}: skipped")
    sys.exit(77)

TYPES = {"f32": np.float32, "i32": np.int32, "u8": np.uint8}
# Sums of many products, in another order.
TOLERANCE = 2e-5


def read(folder, file, kind):
    return np.fromfile(folder / file, TYPES[kind])


def serve(folder, listed):
    name, samples = listed.stem.rsplit("-", 1)
    model = onnx.load(folder / f"{name}.onnx")
    onnx.checker.check_model(model, full_check=True)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(str(folder / f"{name}.onnx"), options, providers=["CPUExecutionProvider"])
    inputs, outputs = {}, []
    for line in listed.read_text().splitlines():
        what, value, file, kind, dims = line.split("\t")
        array = read(folder, file, kind)
        if what == "in":
            inputs[value] = array.reshape([int(d) for d in dims.split()])
        else:
            outputs.append((value, array))
    got = session.run([value for value, _ in outputs], {i.name: inputs[i.name] for i in session.get_inputs()})
    worst = 0
    for (value, wanted), array in zip(outputs, got):
        assert array.size == wanted.size, f"{name}, {samples} samples, {value}: {array.shape}"
        error = np.abs(array.ravel() - wanted).max() / max(np.abs(wanted).max(), 1e-6)
        assert error <= TOLERANCE, f"{name}, {samples} samples, {value}: error {error}"
        worst = max(worst, error)
    print(f"{name}, {samples} samples: {len(outputs)} outputs, error {worst:.1e}")


with tempfile.TemporaryDirectory() as folder:
    subprocess.run([sys.argv[1]], check=True, env={**os.environ, "EXPORT_FOLDER": folder}, stdout=subprocess.DEVNULL)
    lists = sorted(pathlib.Path(folder).glob("*.list"))
    assert lists, "nothing was exported"
    for listed in lists:
        serve(pathlib.Path(folder), listed)

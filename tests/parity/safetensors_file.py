"""safetensors files with the standard library and NumPy alone.

https://github.com/huggingface/safetensors, "Format": the header's length, u64; the header, JSON;
the tensors' bytes.
"""
import json
import struct

import numpy

DTYPES = {"F32": numpy.dtype("<f4"), "F64": numpy.dtype("<f8"), "I32": numpy.dtype("<i4"),
          "I64": numpy.dtype("<i8"), "U8": numpy.dtype("u1")}
NAMES = {dtype: name for name, dtype in DTYPES.items()}


def write(path, tensors):
    header, data = {}, b""
    for name, array in tensors.items():
        bytes_ = numpy.array(array, order="C").tobytes()
        header[name] = {"dtype": NAMES[array.dtype], "shape": list(array.shape),
                        "data_offsets": [len(data), len(data) + len(bytes_)]}
        data += bytes_
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)


def read(path):
    """The tensors and the metadata."""
    with open(path, "rb") as file:
        content = file.read()
    length = struct.unpack_from("<Q", content)[0]
    header = json.loads(content[8:8 + length])
    metadata = header.pop("__metadata__", {})
    tensors, end = {}, 0
    for name, facts in sorted(header.items(), key=lambda item: item[1]["data_offsets"]):
        start, stop = facts["data_offsets"]
        assert start == end, f"{path}: a hole before {name}"
        end = stop
        values = numpy.frombuffer(content[8 + length + start:8 + length + stop], DTYPES[facts["dtype"]])
        tensors[name] = values.reshape(facts["shape"])
    assert 8 + length + end == len(content), f"{path}: bytes left over"
    return tensors, metadata

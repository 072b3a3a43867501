"""The reader of ONNX files beside Python's onnx: compare_onnx.py PROGRAM FOLDER. All .onnx files below the folder. Exit code 77 where the package or the
folder is missing."""
import pathlib
import struct
import subprocess
import sys

try:
    import onnx
except ImportError:
    print("the Python package onnx is missing: skipped")
    sys.exit(77)

program, folder = sys.argv[1], pathlib.Path(sys.argv[2])
files = sorted(folder.glob("**/*.onnx"))
if not files:
    print(f"no ONNX files in {folder}: skipped")
    sys.exit(77)


def type_name(number):
    return onnx.TensorProto.DataType.Name(number) if number in onnx.TensorProto.DataType.values() and number else "?"


def domain(text):
    return "" if text == "ai.onnx" else text


def number(value):
    return "%.9g" % struct.unpack("f", struct.pack("f", value))


def tensor(what, t):
    at = next((f" at {e.value}" for e in t.external_data if e.key == "location"), "") if t.data_location == 1 else ""
    return f"{what} {t.name} {type_name(t.data_type)} [{', '.join(map(str, t.dims))}] raw {len(t.raw_data)}{at}"


def info(what, i):
    line = f"{what} {i.name}"
    if i.type.WhichOneof("value") == "tensor_type":
        kind = i.type.tensor_type
        line += f" {type_name(kind.elem_type)}"
        if kind.HasField("shape"):
            dims = [str(d.dim_value) if d.WhichOneof("value") == "dim_value" and d.dim_value >= 0 else d.dim_param or "?" for d in kind.shape.dim]
            line += f" [{', '.join(dims)}]"
    return line


def attribute(a):
    line = f"  {a.name} {a.type}"
    kind = onnx.AttributeProto
    if a.type == kind.FLOAT:
        line += " " + number(a.f)
    if a.type == kind.INT:
        line += f" {a.i}"
    if a.type == kind.STRING:
        line += " " + a.s.hex()
    if a.type == kind.FLOATS:
        line += "".join(" " + number(v) for v in a.floats)
    if a.type == kind.INTS:
        line += "".join(f" {v}" for v in a.ints)
    if a.type == kind.STRINGS:
        line += "".join(f" {v.decode()}" for v in a.strings)
    return [line] + ([tensor("   ", a.t)] if a.HasField("t") else [])


def wanted(model):
    g = model.graph
    lines = [f"model ir {model.ir_version} by {model.producer_name} {model.producer_version}, {len(model.functions)} functions, "
             f"{len(g.sparse_initializer)} sparse"]
    lines += [f'opset "{domain(o.domain)}" {o.version}' for o in model.opset_import]
    lines.append(f"graph {g.name}")
    for n in g.node:
        lines.append(f'node {n.name} {n.op_type} "{domain(n.domain)}"' + "".join(f" <{i}" for i in n.input) + "".join(f" >{o}" for o in n.output))
        for a in n.attribute:
            lines += attribute(a)
    lines += [tensor("initializer", t) for t in g.initializer]
    lines += [info("input", i) for i in g.input] + [info("output", o) for o in g.output]
    return lines


failed = 0
for path in files:
    got = subprocess.run([program, path], capture_output=True, text=True)
    lines = wanted(onnx.load(path, load_external_data=False))
    if got.returncode or got.stdout.split("\n") != lines + [""]:
        failed += 1
        first = next((f"{a!r}, not {b!r}" for a, b in zip(got.stdout.split("\n"), lines) if a != b), "one is longer")
        print(f"FAILED: {path}: {got.stderr or first}")
print(f"{len(files) - failed} of {len(files)} files are read as Python's onnx reads them")
sys.exit(failed > 0)

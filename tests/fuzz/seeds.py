"""First inputs of the fuzzers: right ones, and right ones that are cut or changed a little.

    seeds.py FOLDER        writes FOLDER/NAME/*
"""
import base64
import gzip
import io
import json
import os
import struct
import sys
import tarfile
import zlib

OUT = sys.argv[1]


def write(name, *inputs):
    folder = os.path.join(OUT, name)
    os.makedirs(folder, exist_ok=True)
    for number, content in enumerate(inputs):
        if isinstance(content, str):
            content = content.encode()
        with open(os.path.join(folder, f"seed-{number:02}"), "wb") as file:
            file.write(content)


def piece(content):
    return struct.pack("<H", len(content)) + content


# ---- ONNX: protocol buffers ----

def varint(value):
    value &= (1 << 64) - 1
    out = b""
    while value > 0x7f:
        out, value = out + bytes([value & 0x7f | 0x80]), value >> 7
    return out + bytes([value])


def field(number, value):
    """A number, or bytes; a float as four of them by itself."""
    if isinstance(value, float):
        return varint(number << 3 | 5) + struct.pack("<f", value)
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    value = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(value)) + value


def fields(*pairs):
    return b"".join(field(number, value) for number, value in pairs)


def onnx(*graph, opset=17):
    return fields((1, 8), (2, "seeds"), (8, field(2, opset)), (7, fields(*graph)))


def onnx_tensor(name, kind, dims, *data):
    return fields(*((1, d) for d in dims), (2, kind), (8, name), *data)


def onnx_attribute(name, kind, *values):
    return fields((1, name), (20, kind), *values)


def onnx_info(name, *dims):
    shape = b"".join(field(1, field(2, d) if isinstance(d, str) else field(1, d)) for d in dims)
    return fields((1, name), (2, field(1, fields((1, 1), (2, shape)))))


packed = b"".join(varint(v) for v in (1, -1, 300))
write("onnx_model",
      onnx((1, fields((1, "x"), (1, "w"), (1, ""), (2, "y"), (3, "n"), (4, "Gemm"), (5, onnx_attribute("alpha", 1, (2, 0.5))),
                      (5, onnx_attribute("axes", 7, (8, packed))), (5, onnx_attribute("mode", 3, (4, "linear"))))),
           (5, onnx_tensor("w", 1, (2, 3), (9, bytes(24)))), (11, onnx_info("x", "batch", 2)), (12, onnx_info("y", "batch", 3))),
      onnx((5, onnx_tensor("a", 1, (2,), (4, struct.pack("<2f", 1, 2)))), (5, onnx_tensor("b", 7, (3,), (7, packed))),
           (5, onnx_tensor("c", 9, (2,), (5, b"\0\1"))), (5, onnx_tensor("d", 6, (1,), (5, 7))), (5, onnx_tensor("e", 11, (1,), (10, bytes(8)))),
           (5, onnx_tensor("f", 1, (0, 5)))),
      onnx((5, onnx_tensor("w", 1, (2,), (13, fields((1, "location"), (2, "weights.bin"))), (13, fields((1, "offset"), (2, "4096"))),
                           (13, fields((1, "length"), (2, "8"))), (14, 1)))),
      onnx((1, fields((4, "Constant"), (2, "y"), (5, onnx_attribute("value", 4, (5, onnx_tensor("", 7, (), (7, 5)))))))),
      onnx((1, fields((4, "If"), (5, onnx_attribute("then_branch", 5, (6, fields((1, fields((4, "Add"))))))))), (15, b""), opset=9),
      onnx(), b"")

# ---- safetensors ----

def safetensors(header, data=b""):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


DTYPES = {"F32": 4, "F16": 2, "BF16": 2, "F64": 8, "I32": 4, "I64": 8, "U8": 1, "I8": 1, "I16": 2, "U16": 2, "U32": 4,
          "U64": 8, "BOOL": 1}
every, at = {"__metadata__": {"format": "pt", "cltrain.format": "cltrain/1"}}, 0
for dtype, width in DTYPES.items():
    every[dtype] = {"dtype": dtype, "shape": [2, 1], "data_offsets": [at, at + 2 * width]}
    at += 2 * width


def entry(**changes):
    return {"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8], **changes}}


eight = bytes(range(8))
write("safetensors",
      safetensors(every, bytes(range(at))),
      safetensors({**entry(), "z": {"dtype": "U8", "shape": [], "data_offsets": [8, 9]},
                   "empty": {"dtype": "F32", "shape": [0, 3], "data_offsets": [8, 8]}}, eight + b"9"),
      safetensors(entry(shape=[3]), eight), safetensors(entry(shape=[-1]), eight), safetensors(entry(shape=2), eight),
      safetensors(entry(shape=[1 << 62, 1 << 62]), eight), safetensors(entry(shape=[1] * 9), eight),
      safetensors(entry(dtype="F8"), eight), safetensors(entry(dtype=7), eight), safetensors({"a": 1}, eight),
      safetensors(entry(data_offsets=[0, 9]), eight), safetensors(entry(data_offsets=[4, 0]), eight),
      safetensors(entry(data_offsets=[0]), eight), safetensors(entry(data_offsets="x"), eight),
      safetensors({**entry(), "b": {"dtype": "U8", "shape": [4], "data_offsets": [2, 6]}}, eight),
      safetensors({"b": {"dtype": "U8", "shape": [4], "data_offsets": [4, 8]}}, eight),
      safetensors(entry(), eight + b"more"), safetensors({"__metadata__": [], **entry()}, eight),
      safetensors({"__metadata__": {"a": 1}, **entry()}, eight), safetensors(b'{"a":1,"a":2}'), safetensors(b"[]"),
      safetensors(b'{"a":[{},{}]}'), safetensors(b'{"a":{"b":{}}}'), safetensors(entry(shape=[[2]]), eight), safetensors({**entry(more=["[{", "\\\""]), "[{\"\\": entry(dtype="U8", shape=[0], data_offsets=[0, 0])["a"]}, eight),
      safetensors(b'{"a"'), struct.pack("<Q", 1 << 62) + b"{}", struct.pack("<Q", 100) + b"{}", b"short", safetensors(b""))



def checkpoint(format="cltrain/1", optimizer="adam", steps=7, accumulate=2, micro=1, skipped=None, seed=1, loader_seed=3, epoch=1, batch=2, batches=5):
    entries = [format, optimizer, steps, accumulate, micro, skipped, seed, loader_seed, epoch, batch, batches]
    return "".join(f"{chr(ord('a') + i)}{value}\n" for i, value in enumerate(entries) if value is not None)


write("checkpoint", checkpoint(), checkpoint(loader_seed=None, epoch=None, batch=None, batches=None, skipped=7), checkpoint(format=None), checkpoint(format="cltrain/2"),
      checkpoint(optimizer="x"), checkpoint(optimizer=None), checkpoint(steps=1 << 48), checkpoint(steps=(1 << 47) - 1), checkpoint(steps=-1), checkpoint(accumulate=0), checkpoint(accumulate=1 << 31),
      checkpoint(micro=2), checkpoint(skipped=8), checkpoint(seed=(1 << 64) - 1), checkpoint(seed=1 << 64), checkpoint(seed=""), checkpoint(seed=None), checkpoint(batch=6), checkpoint(batches="1e3"),
      checkpoint(epoch=1 << 48), checkpoint(steps="7 "), checkpoint(loader_seed=None), checkpoint(micro="+1"))

# ---- data ----


def npy(header, data, version=(1, 0), length=None):
    text = header.encode() + b"\n"
    head = b"\x93NUMPY" + bytes(version)
    length = len(text) if length is None else length
    return head + (struct.pack("<H", length) if version[0] == 1 else struct.pack("<I", length & 0xffffffff)) + text + data


def array(descr, shape, data, order="False", **more):
    return npy(f"{{'descr': '{descr}', 'fortran_order': {order}, 'shape': {shape}, }}", data, **more)


x2 = array("<f4", "(2, 2)", struct.pack("<4f", 1, 2, 3, 4))
y2 = array("<i8", "(2,)", struct.pack("<2q", 0, 1))


def two(x, y, packed=0):
    return bytes([packed]) + piece(x) + y


write("npy", two(x2, y2), two(x2, y2, 3), two(array("<f8", "(2,)", bytes(16)), array("<f4", "(2, 1)", bytes(8))),
      two(array("|u1", "(2, 3)", bytes(6), version=(2, 0)), array("|u1", "(2,)", b"\1\0", version=(3, 0))),
      two(array("<i4", "(2, 1, 1, 1)", bytes(8)), array("<i4", "(2,)", bytes(8))),
      two(array("<i8", "(2, 1)", bytes(16)), array("<f8", "(2,)", bytes(16))),
      two(array("<i4", "(2, 1)", bytes(8)), array("<i4", "(2,)", b"\xff" * 8)),
      two(array(">f4", "(2, 2)", bytes(16)), y2), two(array("<c8", "(2, 2)", bytes(16)), y2),
      two(array("<f4", "(2, 2)", bytes(16), order="True"), y2), two(array("<f4", "(0, 2)", b""), y2),
      two(array("<f4", "()", bytes(4)), y2), two(array("<f4", "(2, 2, 2, 2, 2, 2, 2, 2, 2)", b""), y2),
      two(array("<f4", "(99999999999999999999,)", b""), y2), two(array("<f4", "(4611686018427387904, 4)", b""), y2),
      two(array("<f4", "(3, 2)", bytes(24)), y2), two(x2[:-3], y2), two(x2 + b"more", y2), two(x2, y2[:-3]),
      two(npy("{'descr': \"<f4\", 'shape': (2, 2), 'fortran_order': False}", bytes(16)), y2),
      two(npy("{'descr': [('a', '<f4')], 'shape': (2,)}", b""), y2), two(npy("{'shape' (2,)}", b""), y2),
      two(npy("{'descr': '<f4', 'descr': '<f4'}", b""), y2), two(npy("{'other': 3}", b""), y2),
      two(npy("{'shape': (2)}", b""), y2), two(npy("{'shape': (2 3)}", b""), y2), two(npy("{}", b""), y2),
      two(npy("{'fortran_order': Maybe}", b""), y2), two(npy("no", b""), y2), two(npy("{'descr': '" + "x" * 40, b""), y2),
      two(npy("{}", b"", (9, 0)), y2), two(npy("{}", b"", (2, 0), 1 << 31), y2), two(b"no numpy", y2), two(b"", b""),
      two(gzip.compress(x2)[:-9], y2), two(x2, array("<f4", "(2, 2, 2)", bytes(32))))


def idx(dims, data, kind=8):
    return struct.pack(">I", kind << 8 | len(dims)) + b"".join(struct.pack(">I", d) for d in dims) + data


images, labels = idx([2, 2, 2], bytes(range(8))), idx([2], b"\0\1")
packed = gzip.compress(images)
write("idx", two(images, labels), two(images, labels, 3), two(packed, labels, 4), two(packed + packed, b"", 4), two(packed, labels), two(packed[:20], labels),
      two(packed + packed, labels), two(packed + b"x", labels), two(packed + b"\x1f", labels),
      two(packed[:14] + bytes(8) + packed[22:], labels), two(images[:-1], labels), two(images + b"x", labels),
      two(images, labels + b"x"), two(idx([3, 2, 2], bytes(12)), labels), two(idx([0, 2, 2], b""), labels),
      two(idx([0xffffffff] * 3, b""), labels), two(idx([0x10000, 0x10000, 1], b""), idx([0x10000], b""), 3),
      two(labels, labels), two(images, images), two(idx([2, 2, 2], bytes(8), 13), labels), two(images[:7], labels),
      two(idx([60000, 28, 28], b""), idx([60000], b"")), two(idx([2, 1000, 1000], b"")[:16], labels, 1), two(b"", b""),
      two(idx([2, 2, 2], b""), labels, 1), two(gzip.compress(images)[:-8] + bytes(8), labels))
record = b"\3" + bytes(3072)
write("cifar10", b"\x08\3", b"\x09\3", b"\x12\1\2", b"\x18\1\2\3" + record, b"\x0a\1" + record, b"\x04" + record,
      b"\x04" + record[:-1], b"\x05" + record + b"\2", b"\x04\x0a" + bytes(3072), b"\x00", b"\x04")
write("csv", "\0\0\n1,2,0\n3,4,1\n", "\0\0\na,b,class\n1,2,0\n3,4,1\n", "\1\0\n1,2\n", "\2\0\n1,2\n3,4\n", "\4\0b\na,b\n1.5,-2e3\n",
      "\x08\0b\na,b\n1,2\n", "\x20\1-1\nskipped\n1;2\r\n3;4\r\n", "\x40\0\n1\t2\n", "\x60\0\n1|2\n", "\x80\0\n1 2\n", "\xa0\0\n1\n",
      "\0\0\n\"1\",\"2\"\n\"3\",4\n", "\0\0\n\"a\"\"b\",c\n1,2\n", "\0\0\n\"a\nb\",c\n1,2\n", "\0\0\n\"open", "\0\0\n\"a\"b,c\n", "\0\0\na\"b,c\n1,2\n",
      "\0\0\n1,2\n\n\n", "\0\0\n1,2\n\n3,4\n", "\0\0\n1,2\n3\n", "\0\0\n1,2\n3,4,5\n", "\0\0\n1,nan\n", "\0\0\n1,\n", "\0\0\nx,y\n1,z\n",
      "\0\0\n1,1.5\n", "\0\0\n1,-1\n", "\0\0\n1,1e40\n", "\0\0\n1e-400,1\n", "\0\0x\na,b\n1,2\n", "\0\0-9\n1,2\n", "\0\0\n", "\0\0\n1\n2\n", "\0\0\na,b\n",
      b"\0\0\n\xef\xbb\xbf1,2\n", b"\0\0\n1,2\0\n", "\3\0\n1,2\n", "\0\0\n1\r2\r", "\0\0\n 1 ,\t2\n", "\0\0\n0x10,1\n", "\0\0\n+1,1\n", "\0\0\n1e5,9e9\n",
      "\0\0\na,b,c\n1,2,x\n3,4, y \n", "\0\0\n1,2,x\n3,4,y\n", "\0\0\na,b\n1,x\n2,3\n", "\0\0\na,b\n1,3\n2,x\n", "\0\0|a\na,b,c\nq,1,2\n", "\0\0c|a,-1\na,b,c,d\nq,1,2,w\n",
      "\0\0|,\na,b\n1,2\n", "\0\4\nb,c,a\n1,x,2\n", "\0\x0c\nb,c,a,d\n1,y,2,3\n", "\0\x14\nb,a\n1,2\n", "\0\x14\n1,2,3\n", "\0\x24\na,b,c\n1,2,2\n", "\0\x44\n1,x\n2,\n", "\0\2\na,b,c\nu,1,x\n,2,y\nv,,x\n", "\0\0\na,b,c\nu,1,x\n,2,y\n", "\4\x94\nb,a\nNA,u\n3,\n", "\4\x84\nb,a,t\n1,u,2\n3,w,4\n",
      "\4\x64\na,b,c\n1,2,3\n", "\0\4\na,c\n1,x\n", "\0\4\na,b,c\n1,2,z\n", "\0\4\na,b,d\n1,2,x\n",
      "\x08\3\n1,2\n1,2\n1,2\n4,5\n", "\0\0\n1,2,", "\0\0\n1_0,2\n", "\4\0\n1,inf\n", "\0\0\n" + "1," * 70 + "0\n")

# ---- pictures ----

# 20 x 14 pixels: baseline, progressive, gray, of four inks.
jpegs = [base64.b64decode(text) for text in (
    "/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDABsSFBcUERsXFhceHBsgKEIrKCUlKFE6PTBCYFVlZF9VXVtqeJmBanGQc1tdhbWGkJ6jq62rZ4C8ybqmx5moq6T/"
    "2wBDARweHigjKE4rK06kbl1upKSkpKSkpKSkpKSkpKSkpKSkpKSkpKSkpKSkpKSkpKSkpKSkpKSkpKSkpKSkpKSkpKT/wAARCAAOABQDASIAAhEBAxEB/8QA"
    "FgABAQEAAAAAAAAAAAAAAAAAAgAD/8QAIRAAAQMEAQUAAAAAAAAAAAAAAQACEQMSEyGBMUFDUaH/xAAWAQEBAQAAAAAAAAAAAAAAAAAAAgP/xAAYEQEBAQEB"
    "AAAAAAAAAAAAAAABEQACIf/aAAwDAQACEQMRAD8AYLmGWt0UXwKZs6O+IEmmYadHstG076OSdekoFMgM2eJg8k8KTGNogsnlSsk92fXUXf/Z",
    "/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDABsSFBcUERsXFhceHBsgKEIrKCUlKFE6PTBCYFVlZF9VXVtqeJmBanGQc1tdhbWGkJ6jq62rZ4C8ybqmx5moq6T/"
    "2wBDARweHigjKE4rK06kbl1upKSkpKSkpKSkpKSkpKSkpKSkpKSkpKSkpKSkpKSkpKSkpKSkpKSkpKSkpKSkpKSkpKT/wgARCAAOABQDASIAAhEBAxEB/8QA"
    "FgABAQEAAAAAAAAAAAAAAAAAAQAC/8QAFgEBAQEAAAAAAAAAAAAAAAAAAAEC/9oADAMBAAIQAxAAAAFDRma5/8QAGBABAAMBAAAAAAAAAAAAAAAAABEhMUH/"
    "2gAIAQEAAQUCchiKp//EABURAQEAAAAAAAAAAAAAAAAAAAAB/9oACAEDAQE/AVr/xAAUEQEAAAAAAAAAAAAAAAAAAAAQ/9oACAECAQE/AT//xAAWEAEBAQAA"
    "AAAAAAAAAAAAAAAQETH/2gAIAQEABj8CNKf/xAAbEAACAwADAAAAAAAAAAAAAAAAAREhQTFRYf/aAAgBAQABPyG1wh9NIDwKRUw//9oADAMBAAIAAwAAABDA"
    "7//EABYRAQEBAAAAAAAAAAAAAAAAAAERAP/aAAgBAwEBPxCAzQXf/8QAFxEBAQEBAAAAAAAAAAAAAAAAAREAIf/aAAgBAgEBPxCgUxJ3f//EABwQAQACAgMB"
    "AAAAAAAAAAAAAAEAESFBMVGBof/aAAgBAQABPxAVvAyotfiV9vIqqWHU5JjqFFN/Z//Z",
    "/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDABsSFBcUERsXFhceHBsgKEIrKCUlKFE6PTBCYFVlZF9VXVtqeJmBanGQc1tdhbWGkJ6jq62rZ4C8ybqmx5moq6T/"
    "wAALCAAOABQBAREA/8QAFwABAAMAAAAAAAAAAAAAAAAAAgABA//EACEQAAIBAwMFAAAAAAAAAAAAAAECEQADExIhgTFBQ1Gh/9oACAEBAAA/AGCyGVXY0XgW"
    "zo6N8oYkHknioSbZhTse1aLb12ck7eqoY1EFJ5r/2Q==",
    "/9j/7gAOQWRvYmUAZAAAAAAA/9sAQwAbEhQXFBEbFxYXHhwbIChCKyglJShROj0wQmBVZWRfVV1baniZgWpxkHNbXYW1hpCeo6utq2eAvMm6pseZqKuk/8AA"
    "FAgADgAUBEMRAE0RAFkRAEsRAP/EABgAAQEBAQEAAAAAAAAAAAAAAAADAgEG/8QAJhAAAgIBAwIGAwAAAAAAAAAAAQIAAxEEEjEhQRMUIkJhcVKBof/aAA4E"
    "QwBNAFkASwAAPwBsNdjWVV5H3xKh3rGAMAwVctWyDFZnpodKmDVkYHT9ybemktU2Q/B/GaZlG7xe/ESV66dLSoboPiYSgbRm7J+oq05tQPt5+Ylr38luK9VP"
    "acCtlVVsA8zFOqLsQq7QImkpOoAt3YA9sqlY8tvz6T7ZzUFSgcDBHPzEhqbUouNbV7yO8VLWyAlP7L0gJWAIn//Z",
)]


def chunk(kind, content):
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))


def png(width, height, bits, colour, interlaced=0, row=None):
    """Rows of bytes that count up."""
    channels = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}[colour]
    bytes_of_row = (width * bits * channels + 7) // 8
    rows = b"".join(b"\0" + bytes((x * 3 + y) % 4 if colour == 3 else (x * 7 + y * 5) % 256 for x in range(row or bytes_of_row)) for y in range(height))
    palette = chunk(b"PLTE", bytes(range(12))) + chunk(b"tRNS", bytes(2)) if colour == 3 else b""
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, bits, colour, 0, 0, interlaced)) + palette
            + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


box = bytes((40, 60, 200, 180, 1))
pictures = jpegs + [png(9, 7, 8, 2), png(9, 7, 16, 6), png(9, 7, 8, 3), png(9, 7, 1, 0), png(9, 7, 8, 4), png(8, 8, 8, 2, 1, 40)]
write("image", *[box + picture for picture in pictures], *[box + picture[:len(picture) * 2 // 3] for picture in pictures])

write("runs", *["\n".join(lines) + end for lines in ([
    '{"event":"start","model":"convnet","data":"digits","steps":0}', '{"event":"progress","step":7,"train_loss":1.5}',
    '{"event":"epoch","epoch":1,"step":44,"train_loss":1.1,"test_loss":0.9,"lr":0.002}',
    '{"event":"start","steps":20}', '{"event":"epoch","epoch":1,"step":44,"validation_loss":null}',
    '{"event":"end","epochs":1,"test_confusion":[[1,2],[3,4]],"classes":["a","b"]}'], ['{"event":"epoch"}'], ["[]"]) for end in ("\n", '\n{"event":"pro')])
write("option_file", '{"model": "mlp:8", "data": "digits", "epochs": 3, "lr": 0.02, "nesterov": true, "quiet": false, "device": null}', '{"epohcs": 2}',
      '{"data": ["digits"]}', '{"config": "x"}', "[1]", '{"lr": 1, "lr": 2}', '{"batch": 1e300, "seed": -1}',
      '{"event":"start","config":{"model":"mlp:8","data":"digits","log":"a.jsonl"}}\n{"event":"progress","step":1}\n', '{"event":"start","config":[1]}', '{"event":"start",',
      '{"event":"start","config":{"model":"mlp:8","data":"digits","resume":"auto","save":"a"},"steps":0}\n{"event":"start","config":{"model":"mlp:8","data":"digits","resume":"a","save":"a","epochs":4},"steps":9}\n',
      '{"event":"start","config":{"model":"mlp:8","lr":1},"steps":0}\n{"event":"start","config":{"model":"mlp:8","lr":2},"steps":9}\n')


def tar(*members, kind=tarfile.USTAR_FORMAT):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=kind) as archive:
        for name, content in members:
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return out.getvalue().rstrip(b"\0") + bytes(1024)


one = tar(("a/1.jpg", jpegs[2]), ("a/1.cls", b"3"), ("a/2.png", png(5, 4, 8, 2)), ("a/2.cls", b"0\n"))
long_names = [tar(("n" * 150 + ".jpg", jpegs[2]), ("n" * 150 + ".cls", b"1"), kind=kind) for kind in (tarfile.GNU_FORMAT, tarfile.PAX_FORMAT)]
write("tar", b"\0" + one, b"\1" + one, b"\0" + one[:1100], *[b"\0" + archive for archive in long_names], b"\0" + tar(("1.cls", b"x"), ("1.jpg", b"")),
      b"\0" + tar(("1.json", b"{}")), b"\1" + b"\x80" * 600)

# ---- texts ----
problems = ["matmul 8x4 16x4^T -> 8x16", "matmul 8x4^T 8x16 -> 4x16", "matmul 2x8x4 2x4x16 -> 2x8x16", "conv2d k3 s1 p1 d1 g1 2x3x8x8 4x3x3x3 -> 2x4x8x8",
            "conv2d k3 s1,2 p1 d1 g1 2x3x8x8:nhwc 4x3x3x3 -> 2x4x8x4:nhwc",
            "conv2d_grad_input k3 s1 p1 d1 g1 2x4x8x8 4x3x3x3 -> 2x3x8x8", "conv2d_grad_weight k3 s1 p1 d1 g1 2x3x8x8 2x4x8x8 -> 4x3x3x3",
            "max_pool2d k2 s2 p0 2x3x8x8 -> 2x3x4x4", "max_pool2d_grad k2 s2 p0 2x3x8x8 2x3x4x4 -> 2x3x8x8", "reduce r0 a3 8x4x2 -> 2", "reduce r1 a1 8x4 -> 4",
            "batch_norm_grad 2x3x8x8 2x3 3 2x3x8x8 -> - 2x3", "layer_norm n1 4x8 8 8 -> - 2x4",
            "sgd 100 100 16 scalar 100 -> 100", "adam 100 100 16 scalar 100 100 -> 100", "sgd 100 100 8 scalar -> 100", "adam 100 100 8 scalar 100 100 -> 100", "matmul 8x4 16x4^T", "-> 8x4",
            "matmul 8x4:i32 4x4 -> 8x4", "matmul -> -> 8x4", "nothing 8x4 -> 8x4", "matmul 99999999999x4 4x4 -> 8x4",
            "matmul 65536x65536 4x4 -> 8x4", "reduce rx 8 -> 8", "conv2d k 8x4 -> 8", "matmul k1 k1 k1 k1 k1 k1 k1 k1 k1 8x4 -> 8",
            "matmul 1 1 1 1 1 1 1 1 1 -> 1", "matmul 8x4 4x16 -> 8x16 8x16", "matmul 8x4 k3 4x16 -> 8x16", "w" * 70 + " 1 -> 1", "max_pool2d 8x4^T -> 8"]
write("problem", *(a + "\n" + problems[(i * 7 + 1) % len(problems)] + "\n" for i, a in enumerate(problems)),
      "matmul 8x4 16x4^T -> 8x16\nmatmul 16x4 16x4^T -> 16x16\n")
result = {"problem": problems[0], "row": "native", "parameters": {"block": 12}, "us": 413.2, "default_us": 520.1, "nmse": 2e-14, "tried": 7,
           "effort": "full"}
header = {"cltrain-tune": 1, "library": "0.1.0+abc", "device": "x", "platform": "Portable", "driver": "1", "id": "0", "type": "cpu",
          "vector_width": 16}
lines = [json.dumps(header), json.dumps(result), json.dumps({**result, "effort": "kept"}), json.dumps({**result, "failed": "it crashed"}),
         json.dumps({**result, "row": "", "us": -1}), json.dumps({**result, "parameters": {"a": 1 << 40}}), json.dumps({**result, "effort": "x"}),
         json.dumps({**result, "parameters": {f"p{i}": i for i in range(20)}}), json.dumps({**result, "parameters": 3}), "[]", "no JSON", ""]
write("tuning_results", "\0" + "\n".join(lines) + "\n", "\1" + "\n".join(lines[1:]) + "\n", "\1", "\0", "\0" + lines[0] + "\n" + lines[1],
      "\1" + lines[3] + "\n" + lines[3] + "\n" + lines[1] + "\n" + lines[2] + "\n", "\0" + json.dumps({**header, "type": "gpu"}) + "\n",
      "\1" + json.dumps({**result, "failed": 3}) + "\n" + json.dumps({**result, "parameters": {"x" * 80: 1}}) + "\n")
timing = {"problem": "matmul 32x80 40x80^T -> 32x40", "row": "native block=12", "us": 12.5, "gap_us": -0.25, "spread": 0.01, "own": 0.02,
          "degrees": 5, "flops": 204800, "bytes": 28160, "launches": 1}
larger = {**timing, "problem": "matmul 64x80 40x80^T -> 64x40", "us": 24.0, "flops": 409600, "bytes": 43520}
timings = [timing, larger, timing, {**timing, "row": "", "problem": "feed 4096"}, {**timing, "us": -1}, {**timing, "us": 1e300}, {**timing, "bytes": 1.5},
           {**timing, "own": -1}, {**timing, "degrees": 0}, {**timing, "spread": 1e15, "own": 1e15}, {**timing, "launches": 0}, {**timing, "launches": "x"}, {**timing, "problem": ""}, {**timing, "problem": "w" * 3000}, {**timing, "row": "r" * 200},
           {**timing, "problem": "conv2d k3 s1 p1 d1 g1 2x3x8x8 4x3x3x3 -> 2x4x8x8 then:relu:2", "us": 3.0}, {**timing, "row": "reference"}, [], 3]
told_times = [json.dumps(t) for t in timings]
write("times", "\n".join(told_times) + "\n", told_times[0] + "\n" + told_times[1] + "\n", told_times[0], "\n".join(told_times[1:4]) + "\n" + told_times[0][:40],
      "no JSON\n\n{}\n", '{"problem": "a", "problem": "b"}\n', "", "\0\n", *(t + "\n" + told_times[1] + "\n" for t in told_times[3:]))
write("programs", b"\1\0\0payload", b"\1\0\1payload", b"\1\x0a\1payload", b"\1\x2d\1payload", b"\1\x50\1payload", b"\1\0\0", b"CLTBIN1\0short", b"\0" * 90)
H = "0123456789abcdef" * 2
write("catalog", f"{H} {H[::-1]} cpu_copy\n{H} {H} -\n{H[1:]}0 {H} ref_adam\n", f"{H} {H}  \n{H} {H} a-b\n{H}-{H} a\n{H} {H} a", f"{H} {H} " + "x" * 64 + "\n", "\n\n \n", f"g{H[1:]} {H} a\n")
write("peaks", "123456700000 23456780000 3\n", "123456700000 23456780000 3\nx", "123456700000 23456780000 1001\n", "123456700000  23456780000 3", "123,4 23456780000 3", "1.234567e+11 2.345678e+10 3\n", "1e11 2e10 0\n", "-1 2 3", "nan inf 3", "1e30 1 1", "x", "", "1 2 99999999999999", "1e11 2e10 3 " * 9)
write("capabilities", "0\n", "1\n", "2\n", "1", "", "11\n", "1\n" * 40)

# ---- the network ----


def frame(kind, type=1, length=0, ticket=0, slot=1, offset=0, total=0, magic=0xc17a):
    return struct.pack("<HHIIIQQQ", magic, kind, type, length, ticket, slot, offset, total)


eager = frame(1, 1, 64, 0, 1, 0, 64) + bytes(64)
control = [eager, frame(2, 1, 0, 1, 8, 0, 17384), frame(3, 1, 0, 0, 2, 0, 17384), frame(4, 1, 0, 0, 0, 0, 128), frame(5), frame(6, 5, 4, 0, 1) + b"dead",
           frame(6, 5, 4, 0, 0) + b"gone", frame(6, 5, 4, 0, 99) + b"none", frame(7), frame(8), frame(9), frame(10), frame(1, 1, 20000, 0, 1, 0, 20000),
           frame(1, 1, 64, 0, 50, 0, 64) + bytes(64), frame(1, 1, 64, 0, 1, 0, 65) + bytes(64), frame(1, 2, 64, 0, 1, 0, 64) + bytes(64),
           frame(2, 1, 0, 1, 7, 0, 64), frame(2, 1, 0, 1, 99, 0, 64), frame(2, 2, 0, 1, 8, 0, 17384), frame(3, 2, 0, 0, 2, 0, 17384),
           frame(4, 1, 0, 0, 0, 0, 1 << 40), frame(8) + frame(8), frame(7) + eager, frame(1, magic=7), eager[:30]]


def meet(how, *streams):
    return bytes([how | 1]) + b"".join(map(piece, streams[:2])) + (streams[2] if len(streams) > 2 else b"")


large = frame(9, 1, 17384, 1, 2, 0, 17384) + bytes(17384)
half = frame(9, 1, 16384, 1, 2, 0, 17384) + bytes(16384) + frame(9, 1, 1000, 1, 2, 16384, 17384) + bytes(1000)
wrong = [frame(9, 1, 0, 1, 2), frame(9, 1, 1 << 20, 1, 2), frame(9, 1, 16, 9, 2, 0, 17384) + bytes(16), frame(9, 1, 16, 1, 9, 0, 17384) + bytes(16),
         frame(9, 1, 16, 1, 2, 17380, 17384) + bytes(16), frame(9, 1, 17, 1, 2, 0, 17384) + bytes(17), frame(9, 1, 16, 1, 2, 16, 17384) + bytes(16),
         frame(9, 2, 16, 1, 2, 0, 17384) + bytes(16), frame(9, 1, 16, 1, 2, 0, 99999) + bytes(16), frame(1, 1, 16), frame(9, magic=0)]


def hello(version=1, size=3, source=2, to=1, channel=0, channels=1, generation=0, job=b"0" * 32):
    return b"CLTRAIN\n" + struct.pack("<6Iq", version, size, source, to, channel, channels, generation) + job


write("transport", *(meet(how, c, b"") for c in control for how in (0x3e,)), meet(0x02, eager, b""), meet(0x22, eager, b""), meet(0x60, eager + control[-3], b""),
      meet(0x08, eager, large), meet(0x08, b"", half), meet(0x10, b"", half.replace(struct.pack("<Q", 2), struct.pack("<Q", 3))), meet(0x88, b"", half[:16424], half[16424:]),
      meet(0x48, b"", half[:5000]), meet(0x98, frame(7), half), *(meet(0x08, b"", w) for w in wrong), meet(0x04, control[1], b""), meet(0xc4, control[1], b""),
      meet(0x0e, frame(2, 1, 0, 1, 8, 0, 17384) + frame(4, 0, 0, 0, 0, 0, 128), b""), b"".join([b"\x3f", piece(eager * 20), piece(b"")]),
      b"\0" + hello(), b"\2", b"\2\x08\2", b"\2\x0c\7", b"\2\x10\0", b"\2\x14\0", b"\2\x18\1", b"\2\x18\7", b"\2\x1c\7", b"\2\x20\1", b"\2\x28\1", b"\x06", b"\0GET / HTTP/1.1\r\n",
      b"\0CLTRAIN", b"\x80" + hello(channels=2, channel=1), b"\x82\x18\1", b"\x82\x18\2", b"\0CLTREPLY" + struct.pack("<Q", 3), b"\0" + frame(9))


def head(code, key=0, value=0, milliseconds=0, magic=0x31537443):
    return struct.pack("<IHHII", magic, code, key, value, milliseconds)


put, look = head(2, 3, 5) + b"keyvalue1", head(4, 3) + b"key"
write("tcp_server", piece(put) + look, piece(head(3, 3, 5) + b"keyvalue2") + head(3, 3, 5) + b"keyvalue3", piece(head(5, 3, 0, 1000) + b"key") + put, piece(head(6, 3) + b"key") + look,
      piece(head(1)) + head(1), piece(head(4, 3) + b"key" + b"more") + head(9), piece(head(2, 9999)) + head(2, 3, 99999), piece(head(1, magic=0)) + head(2, 3, 5) + b"ke",
      piece(head(5, 3, 0, 0) + b"key") + head(1)[:7], piece(b"") + b"", piece(head(5, 3, 0, 0xffffffff) + b"key") + head(0), piece(put) + head(3, 3, 0) + b"key", piece(look) + look)
write("tcp_store", b"\0" + head(1), b"\1" + head(1, 0, 5) + b"value", b"\3" + head(2), b"\1" + head(3), b"\0" + head(1, 0, 5) + b"value", b"\1" + head(1, 3) + b"key",
      b"\1" + head(4), b"\1" + head(1, 0, 5000), b"\1" + head(1, 0, 4096) + bytes(4096), b"\1" + head(1, 0, 9) + b"short", b"\1", b"\1" + head(1) * 3, b"\1HTTP/1.1 400 Bad")
write("redis", b"\0+OK\r\n", b"\0:7\r\n", b"\0$6\r\n=value\r\n", b"\0$-1\r\n", b"\0-ERR no\r\n", b"\0-NOAUTH x\r\n", b"\0-LOADING x\r\n", b"\0-WRONGPASS \x1b\r\n", b"\0*3\r\n:1\r\n:2\r\n:3\r\n",
      b"\0$99999999\r\n", b"\0$5\r\nab", b"\0+OK\r\n+OK\r\n", b"\0HTTP/1.1\r\n", b"\1$6\r\n=value\r\n", b"\1$0\r\n\r\n", b"\1$5\r\nvalue\r\n", b"\1:3\r\n", b"\1$4099\r\n=" + bytes(4098) + b"\r\n",
      b"\1-ERR\r\n", b"\2host", b"\2host:1/3", b"\2user:pass%20word@host:1", b"\2:p@[::1]:6379/0", b"\2u@h", b"\2h/x", b"\2h/1234567890", b"\2u:%zz@h", b"\2%00:p@h", b"\2", b"\2:1", b"\2" + b"h" * 400,
      b"\0$9000\r\n" + bytes(9000) + b"\r\n", b"\0:99999999999999999999\r\n", b"\0$x\r\n", b"\0-ERR invalid password\r\n")
names = [line.strip().strip(",").split('"')[1::2] for line in open(os.path.join(os.path.dirname(__file__), "fuzz_environment.c")) if line.startswith('    "')]
names = [n for group in names for n in group]


def launch(**variables):
    return "".join(chr(ord("0") + names.index(n)) + v + "\n" for n, v in variables.items())


slurm = {"SLURM_STEP_ID": "0", "SLURM_PROCID": "1", "SLURM_NTASKS": "4", "SLURM_JOB_ID": "7", "SLURM_STEP_NODELIST": "n[01-04,7],m3"}
comm = {"CLTRAIN_COMM_STORE": "tcp://h:1", "CLTRAIN_COMM_TOKEN": "x" * 20}
torch = {"RANK": "1", "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29500"}
write("environment", launch(**torch), launch(**torch, TORCHELASTIC_RUN_ID="job", TORCHELASTIC_RESTART_COUNT="3", TORCHELASTIC_USE_AGENT_STORE="True", LOCAL_RANK="1"),
      launch(**{**torch, "MASTER_PORT": "65535"}, TORCHELASTIC_USE_AGENT_STORE="True"), launch(RANK="2", WORLD_SIZE="2"), launch(RANK="x", WORLD_SIZE="99999"), launch(RANK="1"),
      launch(RANK="0", WORLD_SIZE="2", MASTER_ADDR="h" * 400), launch(RANK="0", WORLD_SIZE="2", MASTER_ADDR="::1"), launch(RANK="0", WORLD_SIZE="2", TORCHELASTIC_RUN_ID="j" * 90, TORCHELASTIC_RESTART_COUNT="1"),
      launch(OMPI_COMM_WORLD_RANK="0", OMPI_COMM_WORLD_SIZE="2", OMPI_COMM_WORLD_LOCAL_RANK="0", OMPI_COMM_WORLD_LOCAL_SIZE="2", PMIX_NAMESPACE="a"),
      launch(OMPI_COMM_WORLD_RANK="0", OMPI_COMM_WORLD_SIZE="2", OMPI_MCA_ess_base_jobid="9"), launch(PMI_RANK="1", PMI_SIZE="2", PMI_JOBID="k", MPI_LOCALNRANKS="2", MPI_LOCALRANKID="1"),
      launch(**slurm), launch(**slurm, PMI_RANK="0", PMI_SIZE="2"), launch(**slurm, SLURM_PTY_PORT="1"), launch(**{**slurm, "SLURM_STEP_ID": "4294967291"}),
      launch(**{**slurm, "SLURM_STEP_NODELIST": "n[1-"}, SLURM_RESTART_COUNT="2", SLURM_LOCALID="0"), launch(**{**slurm, "SLURM_STEP_NODELIST": "n]"}), launch(JOB_COMPLETION_INDEX="0", WORLD_SIZE="2", MASTER_ADDR="m"),
      launch(**torch, **comm), launch(**torch, **comm, CLTRAIN_COMM_SECURITY="none", CLTRAIN_COMM_CHANNELS="4", CLTRAIN_COMM_ALGORITHMS="ring", CLTRAIN_COMM_PORTS="1-2", CLTRAIN_COMM_JOB="j", CLTRAIN_COMM_INTERFACE="lo"),
      launch(**torch, **comm, CLTRAIN_COMM_GENERATION="3", CLTRAIN_COMM_STORE_SERVED="1", CLTRAIN_COMM_SECURITY="auth"), launch(**torch, **comm, CLTRAIN_COMM_SECURITY="x"), launch(**torch, **comm, CLTRAIN_COMM_CHANNELS="99"),
      launch(**torch, CLTRAIN_COMM_STORE="tcp://h:1", CLTRAIN_COMM_CERTIFICATE="c", CLTRAIN_COMM_KEY="k", CLTRAIN_COMM_AUTHORITY="a"), launch(**torch, CLTRAIN_COMM_STORE="file:///x"), "0\nn[a]\n0n[1,]\n0[[\n0n m\n0a,b\n0[1-2]x\n0" + "n" * 80,
      launch(**torch, **comm, CLTRAIN_COMM_ALGORITHMS="ring,none"))
write("membership", "\x03\1\2\n4:0\n4:0\n4:0\n1\n4:f\n", "\x03\0\n\n", "\x03\1\n\n\n\n0\n4:7\n", "\x03\1\n0\n4:d\n", "\x03\1\n0\n4:g\n", "\x03\1\n9\n\n4:f\n", "\x03\1\nx\n\nx\n\n4:2\n", "\x07\2\1\0\3\n2\n8:00\n8:00\n8:00\n8:04\n8:00\n8:00\n8:00\n\n",
      "\x02\1\0\2\n1\n\n\n\n", "\0\0\n\n", "\x3f\5\n5\n" + "64:0000000000000000\n" * 64 + "\n", "\x03\1\n1\n4:2\n4:4\n4:1\n4:8\n", "\x03\1\n1\n4:e\n4:e\n4:e\n4:e\n")

write("addresses", "\x00127.0.0.1:80", "\0[::1]:65535", "\0h", "\0h:0", "\0h:65536", "\0h:1x", "\0[h", "\0[]:1", "\0[a]b", "\0::1", "\0:1", "\0" + "h" * 62 + ":1", "\0" + "h" * 70, "\0a\0b:1", "\0",
      "\x000 137", "\x00299 -9", "\x00300 1", "\x001 1", "\0+2 1", "\x002 1 ", "\x002  1", "\x002 --1", "\x002 1\0", "\x002", "\x002 99999999999", "\x002 2147483648",
      "\x0129600-29699\n127.0.0.1\n", "\x0180\nlo\n", "\x01\n::1\n", "\x019-8\n0.0.0.0\n", "\x010\n::\n", "\x01123456-7\nnone\n", "\x011-\n\nhost", "\x01-1\n\nhost:9", "\x01+1\n\n[h]:1", "\x01\n\nh:x",
      "\x01\nfe80::1%lo\n", "\x01" + "\n\n" + "h" * 300)

# ---- tools ----
write("launchers", "\x01\n2 0123456789abcdef\n3 x\n\ndone 0 -1\n", "\x81\nfailed 3 1\n\n1 other\nfailed 9 0\n\n2 x\n3 y\n\n\nfailed 1 1\n", "\xc1\n\n2 0123456789abcdef\n3 x\n", "\x05\n4096 a\n1 b\nfailed 137 3\n\n\nstopped 0 0\n", "\x01\n4097 x\n", "\x01\n2\n", "\x01\n+2 x\n", "\x01\n 2 x\n", "\x01\n0 x\n", "\x012 other\n",
      "\x01\n2 a\n2 b\ndone 256 -1\n", "\x01\n2 a\n2 b\n\n\nfailed -1 0\n", "\x02\n1 a\n1 b\n1 c\n\n\n\n\n\n\n", "\0failed 1 99999999999\nlost 0 0\ndone 1 2 3\ndone  1 2\nfailed 1 -2\nstopped 1 2147483647\ndone\ndone 1",
      "\x11\n2 a\n2 b\n", "\x01", "\x01\n" + "9" * 20 + " x\n")
specs = ["digits", "digits:x", "idx:/d", "idx:", "cifar10:/d", "csv:f.csv", "csv:f,label=y,skip=2,header=1,regression=0,separator=;", "csv:f,separator=tab", "csv:f,separator=xx", "csv:f,skip=-1",
         "csv:f,header=2", "csv:", "npy:x,y", "npy:x", "npy:x,y,z", "npy:x,layout=nhwc", "x.csv", "x.tsv", "x.npy", "csv:f,drop=a,b,label=c", "csv:f,drop=", "csv:f,drop=" + "d" * 1100, "synthetic:3x32x32,classes=4,n=100", "synthetic:0x3", "synthetic:1x1x1x1x1x1x1x1x1", "synthetic-regression:100x4,noise=0.5", "synthetic-regression:4",
         "csv:f,label=", "nothing:", "synthetic:3,n=x", "csv:" + "p" * 4200, "synthetic-regression:9x9,noise=-1", "csv:f,label=" + "l" * 300, "csv:f,regression=1", "csv:f,unknown=1"]
compress = ["f16", "int8", "topk,ratio=0.1,values=f32", "topk,ratio=2", "topk,values=x", "powersgd,rank=4", "powersgd,rank=0", "onebit,x=1", "topk,ratio", "x" * 200, "1e400", "1e-60", "3x4x5", "mlp:256,128", "-5", "999", "nan", "mlp:", "topk,ratio=1e-60"]
words = [["convnet", "--data", "digits", "-e", "3", "--lr=0.1", "-v", "-v", "--json"], ["mlp:64,32", "-d", "csv:f,label=y", "--optimizer", "sgd", "--momentum", "0.9", "--nesterov", "--seed", "5"],
         ["--help"], ["-V"], ["--list-devices"], ["convnet", "--data"], ["convnet", "--dat", "x"], ["convnet", "x"], ["--epochs", "-1"], ["--lr", "0"], ["--lr", "1e60"], ["--momentum", "1"], ["--optimizer", "x"],
         ["--json=1"], ["--profile", "x"], ["--profile=f", "-q", "-v", "convnet", "-d", "digits"], ["--save-every", "3", "linear", "-d", "digits"], ["--steps", "1", "--stop-after", "1", "linear", "-d", "digits"], ["--", "-x"], ["-z"], ["linear", "-d", "synthetic-regression:9x9", "--compress", "topk,ratio=0.5"], ["resnet18"], ["transformer", "-d", "digits"], ["--predict", "x.csv", "--from", "m"], ["--predict", "x.npy", "--from", "m", "--output", "o"], ["--test", "x.npy", "--from", "m"],
         ["--test", "npy:x,y", "--from", "m", "--json"], ["--predict", "x.csv"], ["--from", "m", "mlp", "-d", "digits"], ["--predict", "x.csv", "--test", "x.csv", "--from", "m"], ["--predict", "x.csv", "--from", "m", "--save", "s"]]
write("options", *(s + "\n" for s in specs + compress), *("cltrain-train\n" + "\n".join(w) + "\n" for w in words))
write("shapes", "convnet\n# shapes\nforward 1 " + problems[0] + "\n\n  update 2 " + problems[13] + "\r\n", "mlp,x\nforward 1 " + problems[0], "convnet\nforward x y\n", "\nother 1 " + problems[0] + "\n", "\nforward 0 x\n",
      "convnet\nforward 1 " + "x" * 600 + "\n", "convnet\nforward 1 nothing\n", "convnet,\nforward 1 " + problems[0] + "\nforward 1 " + problems[0] + "\n", "convnet\nforward 1 " + "x" * 400 + "\n",
      "convnet\n" + "".join(f"forward 1 matmul {i}x4 16x4^T -> {i}x16\n" for i in range(1, 70)))


def bench(*results, **changes):
    return json.dumps({"schema": "cltrain-probe/1", "kind": "bench", "complete": True, "host": {"cpu": "c"}, "devices": [{"id": "d", "name": "n", "platform": "p", "driver": "1"}],
                       "results": list(results), **changes}).encode()


def result(key, us, status="ok", passes=4, **more):
    return {"key": key, "kind": "limit" if key.startswith("limit") else "op", "status": status, "reason": None,
            "samples_us": [[us * (1 + 0.01 * i + 0.003 * p) for i in range(3)] for p in range(passes)], **more}


plain = [result("limit copy", 10), result("limit fma", 5), result("limit read", 7), *(result(f"op {i}", 3 + i) for i in range(3))]
slower = [*plain[:3], *(result(f"op {i}", 9 + 3 * i) for i in range(3)), result("op new", 3)]
broken = [*plain[:3], result("op 0", 3, "crashed"), result("op 1", 3, "timeout", 0, reason="no time was left"), result("op 2", 5, passes=2)]


drifted = [result(r["key"], 1.3 * r["samples_us"][0][0]) for r in plain]
tripled = [result(r["key"], 3 * r["samples_us"][0][0]) for r in plain]
suspects = [*plain[:1], *({**r, "status": "suspect", "reason": "above the roofline"} for r in plain[1:])]


def times(us, count=12):
    return {"p10": 0.9 * us, "p50": us, "p90": 1.2 * us, "count": count}


def measured(key, us, count=12, **more):
    return result(key, us, time_us=times(us, count), model="m", phase="forward", count=2, problem=key[3:] + " 4x4 4x4 -> 4x4", backend="native#2", parameters="A=1", flops=2e6, bytes=4e6,
                  check={"nmse": 1e-9, "nmse_after": 1e-9, "limit": 1e-7}, other_backends=[{"backend": "reference", "status": "ok", "reason": None, "row": "reference", "time_us": times(2 * us)},
                                                                                        {"backend": "clblast", "status": "crashed", "reason": "signal 6", "time_us": None}], **more)


whole = [{**result("limit copy", 1e5), "time_us": times(1e5)}, {**result("limit fma_f32", 1e4), "time_us": times(1e4, 2)}, result("limit launch_waited", 9, "suspect", reason="x"),
         measured("op matmul", 30, roof={"bound": "compute", "least_us": 20.0, "fraction": 0.6}), measured("op conv2d", 9, 1, roof={"bound": "cache"}),
         measured("op adam", 20, roof={"bound": "memory", "least_us": 100.0, "fraction": 5.0}), measured("op reduce", -1, -7, roof={"bound": 7})]


def pair(a, b, how=0):
    return bytes([how]) + piece(a) + b


write("compare", pair(bench(*plain), bench(*slower)), pair(bench(*slower), bench(*plain), 2), pair(bench(*plain), bench(*broken), 4), pair(bench(*broken), bench(*plain), 2), pair(bench(*plain), b"", 1),
      pair(bench(*plain), bench(*plain, schema="x")), pair(bench(*plain), bench(*plain, kind="list")), pair(bench(*plain), bench(*plain, complete=False)), pair(bench(*plain), bench()),
      pair(bench(*plain), bench(*plain, devices=[])), pair(bench(*plain), bench(*plain, devices=[{"id": "e"}])), pair(bench(*plain), bench(*plain, host={"cpu": "e"})), pair(bench(*plain), bench(*plain)[:200]),
      pair(bench(*plain), bench(plain[0], plain[0])), pair(bench(*plain), bench({"key": ""})), pair(bench(*plain), bench({**plain[0], "samples_us": [[-1]]})), pair(bench(*plain), bench({**plain[0], "samples_us": 3})),
      pair(bench(*plain), bench({**plain[0], "samples_us": [[1] * 300]})), pair(bench(*plain), bench({**plain[0], "samples_us": [[1]] * 70})), pair(b"{", b""), pair(bench(*plain), bench({**plain[0], "samples_us": [[1e308, 1e-308]] * 4}), 2),
      pair(bench(*plain), bench(*drifted)), pair(bench(*plain), bench(*tripled)), pair(bench(*plain), bench(*suspects)), pair(bench(*suspects), bench(*plain)),
      pair(bench(*whole[:6]), bench(*whole[:6]), 8), pair(bench(*plain), bench(*slower, whole[3], whole[4], whole[5]), 8), pair(bench(*whole), b"", 9),
      pair(bench(*plain), bench({**plain[0], "time_us": times(30)})), pair(bench(*plain), bench({**plain[0], "check": {"nmse": 1, "limit": 1e-7}})))
device = {"id": "d", "name": "n", "vendor": "v", "platform": "p", "driver": "1", "cl_version": "OpenCL 3.0 x", "unusable": "", "compute_units": 2, "clock_mhz": 1000, "memory_bytes": 1 << 30,
          "max_buffer_bytes": 1 << 28, "local_memory_bytes": 1 << 16, "max_work_group_size": 4096, "type": "cpu", "unified_memory": True, "has_compiler": True}


def told(how, *objects):
    return bytes([how]) + "".join((o if isinstance(o, str) else json.dumps(o)) + "\n" for o in objects).encode()


write("survey", told(8, {"device": device}, {"listed": True}, {"begin": 0, "what": "opening it"}, {"probed": 0, "status": "ok", "reason": None, "capabilities": {}}), told(10, {"device": device}, {"device": device}, {"listed": True}, {"begin": 0, "what": "x"}),
      told(2, {"none": "nothing"}), told(9, {"device": {}}, {"device": {**device, "memory_bytes": -1}}, {"device": {**device, "cl_version": "x", "clock_mhz": 1 << 40, "compute_units": 0, "name": ""}}, {"probed": 7}, {"begin": 9}),
      told(3, "no JSON", "[]", "3", {"device": device}, {"listed": 1}, {"device": device}), told(11, {"listed": 1}, {"begin": -1}), told(8, {"begin": "x", "what": 3}, {"probed": "x"}, {"none": 3}),
      told(12, {"device": device}, {"listed": 1}, {"probed": 0, "status": 3}, {"begin": 1 << 40}))
write("bench", told(0, {"opened": 1}, {"peaks": {"fma": 1e11, "copy": 1e10}, "cache": 1 << 20}, {"begin": 0}, {"done": 0, "status": "ok", "us": [1, 2, 3], "amount": 1e9, "flops": 1e6, "bytes": 1e5, "nmse": 0, "nmse_after": 0, "problem": "x", "backend": "native", "parameters": ""}, {"finished": 1}),
      told(8, {"opened": 1}, {"begin": 1}), told(16, {"begin": 99}), told(16, {"begin": -5}, {"done": -1}, {"done": 99}), told(9, {"closed": "no device"}), told(1, {"done": 0, "us": [1] * 9, "status": "x" * 99}, "no JSON", "[]", {"peaks": 3}),
      told(24, {"begin": 2147483648}), told(33, {"opened": 1}, {"done": 0, "us": "x", "amount": "x", "reason": 3}))

# ---- what data are ----

of_table = {"dtype": "f32", "shape": [2], "features": ["a", "b"], "mean": [1.5, -2], "deviation": [1, 2e-3], "label": "kind", "classes": ["x", "y"]}
write("preprocessing", *(json.dumps(one) for one in (
    of_table, {**of_table, "classes": 3}, {"dtype": "f32", "shape": [3, 8, 8], "mean": [0.1, 0.2, 0.3], "deviation": [1, 1, 1], "classes": 10},
    {"dtype": "i32", "shape": [256]}, {"dtype": "f32", "shape": [4], "target": [2]},
    {"dtype": "f32", "shape": [1], "target": [2], "target_mean": 3e5, "target_deviation": 2.5}, {"dtype": "f32", "shape": [1], "target": [1], "target_mean": 1}, {"dtype": "u8", "shape": []}, {**of_table, "shape": [3]},
    {**of_table, "mean": [1]}, {**of_table, "deviation": [1, 0]}, {**of_table, "features": ["a", 1]}, {**of_table, "label": 1}, {**of_table, "classes": -1},
    {**of_table, "shape": [0]}, {**of_table, "shape": [65536, 65536]}, {**of_table, "target": "x"}, {**of_table, "dtype": "f16"}, {}, [])),
      json.dumps(of_table)[:50], "", "[[[[[[[[")


# ---- an index of files of weights ----

whole = {"x": "a.safetensors", "y": "a.safetensors", "z": "b.safetensors", "w": "b.safetensors"}
write("index", *(json.dumps({"metadata": {"total_size": 24}, "weight_map": one}) for one in (
    whole, {"x": "a.safetensors", "y": "a.safetensors"}, {**whole, "v": "a.safetensors"}, {**whole, "x": "b.safetensors"}, {"x": "a.safetensors"},
    {**whole, "x": "../a.safetensors"}, {**whole, "x": "none.safetensors"}, {**whole, "x": 1}, {**whole, "x": ""}, {}, [], 3)),
      "{", "[[[[", "{}", json.dumps({"weight_map": whole})[:50], '{"weight_map": {"x": "a.safetensors", "x": "a.safetensors"}}')


# ---- config.json of a language model ----

gpt2 = {"model_type": "gpt2", "vocab_size": 20, "n_embd": 8, "n_layer": 2, "n_head": 2, "n_positions": 64, "n_inner": 40, "eos_token_id": 19,
        "layer_norm_epsilon": 1e-6, "activation_function": "gelu_new", "scale_attn_weights": True, "tie_word_embeddings": True}
llama = {"model_type": "llama", "vocab_size": 20, "hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 2, "num_attention_heads": 4,
         "num_key_value_heads": 2, "rope_theta": 5e5, "rope_scaling": None, "eos_token_id": [3, 4], "head_dim": 4, "hidden_act": "silu", "mlp_bias": False}
write("config", *(json.dumps(one) for one in (
    gpt2, llama, {**llama, "rope_parameters": {"rope_type": "default", "rope_theta": 2}}, {**llama, "rope_theta": None, "tie_word_embeddings": True},
    {**gpt2, "n_inner": None}, {**gpt2, "n_head": 3}, {**gpt2, "activation_function": "relu"}, {**gpt2, "scale_attn_weights": False}, {**gpt2, "eos_token_id": 20},
    {**gpt2, "n_embd": 9 * 10**18}, {**gpt2, "vocab_size": "20"}, {**gpt2, "layer_norm_epsilon": 0}, {**gpt2, "layer_norm_epsilon": "x"}, {**gpt2, "model_type": "bert"},
    {**llama, "rope_scaling": {"factor": 8}}, {**llama, "rope_parameters": 3}, {**llama, "num_key_value_heads": 3}, {**llama, "head_dim": 5}, {"model_type": "llama"}, {}, [])),
      "[", json.dumps(gpt2)[:60])


# ---- a folder of PEFT ----

def adapter(rank=2, a="fc.lora_A.weight", b="fc.lora_B.weight", **changes):
    config = {"peft_type": "LORA", "r": rank, "lora_alpha": 4, "lora_dropout": 0.1, "target_modules": ["fc"], "bias": "none", **changes}
    ends = 12 * rank, 12 * rank + 16 * rank
    header = {f"base_model.model.{a}": {"dtype": "F32", "shape": [rank, 3], "data_offsets": [0, ends[0]]},
              f"base_model.model.{b}": {"dtype": "F32", "shape": [4, rank], "data_offsets": [ends[0], ends[1]]}}
    return piece(json.dumps(config).encode()) + safetensors(header, bytes(ends[1]))


write("lora", adapter(), adapter(1), adapter(7), adapter(lora_alpha=None), adapter(rank_pattern={}), adapter(rank_pattern={"fc": 3}), adapter(use_dora=True),
      adapter(r=3), adapter(r=0), adapter(lora_alpha=1e300), adapter(lora_dropout=1), adapter(peft_type="IA3"), adapter(a="fc.lora_embedding_A"),
      adapter(a="*.lora_A.weight"), adapter(a="fc.bias.lora_A.weight"), adapter(a="x.lora_A.weight"), adapter(a=".lora_A.weight"), adapter(a="fc.x.lora_B.weight"),
      piece(b"{}"), piece(b"[" * 99), adapter()[:-9], adapter()[:200])


# ---- tokenizer.json ----

BYTE_LEVEL = {"type": "ByteLevel", "add_prefix_space": False}
LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
          r"|\s+(?!\S)|\s+")
vocabulary = {chr(c): i for i, c in enumerate([*range(33, 127), *range(0xa1, 0xad), *range(0xae, 0x144)])}
vocabulary.update({"ab": 300, "abc": 301})
bpe = {"type": "BPE", "vocab": vocabulary, "merges": ["a b", ["ab", "c"]]}


def tokenizer(model=None, **changes):
    return json.dumps({"model": {**bpe, **(model or {})}, "pre_tokenizer": BYTE_LEVEL, **changes})


write("tokenizer",
      tokenizer(), tokenizer(added_tokens=[{"id": 302, "content": "<x>", "special": True}]),
      tokenizer(pre_tokenizer={"type": "Sequence", "pretokenizers": [
          {"type": "Split", "pattern": {"Regex": LLAMA3}, "behavior": "Isolated", "invert": False}, {**BYTE_LEVEL, "use_regex": False}]}),
      tokenizer({"ignore_merges": True}), tokenizer({"vocab": {"a": 99999999}}), tokenizer({"vocab": {"a": -1}}),
      tokenizer({"vocab": {"a": 1, "b": 1}}), tokenizer({"merges": ["a"]}), tokenizer({"merges": [["a", "b", "c"]]}), tokenizer({"merges": {}}),
      tokenizer({"vocab": []}), tokenizer(added_tokens=[{"id": 5, "content": ""}]), tokenizer(added_tokens=[{"id": 5, "content": "<y>"}]),
      tokenizer(normalizer={"type": "NFC"}), tokenizer(pre_tokenizer={**BYTE_LEVEL, "add_prefix_space": True}),
      json.dumps({"model": {"type": "WordLevel", "vocab": {"a": 0, "b": 1, " ": 2}, "unk_token": "<unk>"},
                  "pre_tokenizer": {"type": "Split", "pattern": {"Regex": r"[\s\S]"}, "behavior": "Isolated", "invert": False}}),
      tokenizer()[:200], "{}", "[]", "")

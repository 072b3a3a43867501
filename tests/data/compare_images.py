"""Images of a folder beside what Pillow makes of the same files, as torchvision's Resize and CenterCrop call it.

    compare_images.py LIBCLTRAIN

Exit status 77: there is no Pillow.
"""
import ctypes
import io
import os
import random
import sys
import tarfile
import tempfile

try:
    from PIL import Image
except ImportError:
    sys.exit(77)


class Options(ctypes.Structure):
    _fields_ = [("size", ctypes.c_int), ("resize", ctypes.c_int), ("augment", ctypes.c_bool), ("jitter", ctypes.c_float), ("erase", ctypes.c_float),
                ("floats", ctypes.c_bool), ("exact", ctypes.c_bool), ("like", ctypes.c_void_p), ("no_label", ctypes.c_bool)]


class Sample(ctypes.Structure):
    _fields_ = [("index", ctypes.c_int64), ("seed", ctypes.c_uint64), ("epoch", ctypes.c_int64)]


LIBRARY = ctypes.CDLL(sys.argv[1])
LIBRARY.clt_error_detail.restype = ctypes.c_char_p
LIBRARY.clt_dataset_sample_name.restype = ctypes.c_char_p
LIBRARY.clt_dataset_sample_name.argtypes = [ctypes.c_void_p, ctypes.c_int64]
LIBRARY.clt_dataset_samples.restype = ctypes.c_int64
SIZE = 96


def photo(draw, width, height):
    """Smooth colours with a little noise."""
    small = Image.frombytes("RGB", (width // 8 + 2, height // 8 + 2), draw.randbytes(3 * (width // 8 + 2) * (height // 8 + 2)))
    noise = Image.frombytes("RGB", (width, height), draw.randbytes(3 * width * height))
    return Image.blend(small.resize((width, height), Image.BICUBIC), noise, 0.05)


def write_files(folder):
    """Files of every kind that is read; their names."""
    draw = random.Random(3)
    os.makedirs(os.path.join(folder, "one"))
    for i in range(24):
        image = photo(draw, draw.randint(20, 500), draw.randint(20, 500))
        image.save(os.path.join(folder, "one", f"{i:02}.jpg"), quality=draw.randint(40, 98), progressive=i % 2 == 1, subsampling=i % 3)
    image = photo(draw, 210, 170)
    for mode in ("L", "RGB", "RGBA", "P", "1", "LA"):
        image.convert(mode).save(os.path.join(folder, "one", f"{mode}.png"))
    image.convert("L").save(os.path.join(folder, "one", "gray.jpeg"))
    image.convert("CMYK").save(os.path.join(folder, "one", "ink.JPG"))


def as_torchvision(image):
    """Resize to 8/7 of the size on the shorter side, then CenterCrop."""
    shorter = SIZE * 256 // 224
    width, height = image.size
    if width <= height:
        image = image.resize((shorter, int(shorter * height / width)), Image.BILINEAR)
    else:
        image = image.resize((int(shorter * width / height), shorter), Image.BILINEAR)
    left, top = round((image.width - SIZE) / 2), round((image.height - SIZE) / 2)
    return image.crop((left, top, left + SIZE, top + SIZE))


def planes(image):
    return b"".join(channel.tobytes() for channel in image.split())


def fetch(dataset, index):
    pixels, label = ctypes.create_string_buffer(3 * SIZE * SIZE), ctypes.c_int32()
    fields = (ctypes.c_void_p * 2)(ctypes.addressof(pixels), ctypes.addressof(label))
    status = LIBRARY.clt_dataset_fetch(dataset, ctypes.byref(Sample(index)), fields)
    assert status == 0, LIBRARY.clt_error_detail()
    return pixels.raw


def differences(folder, exact):
    """The largest and the mean difference of each file."""
    dataset = ctypes.c_void_p()
    status = LIBRARY.clt_dataset_image_folder(ctypes.byref(dataset), folder.encode(), ctypes.byref(Options(size=SIZE, exact=exact)))
    assert status == 0, LIBRARY.clt_error_detail()
    found = {}
    for index in range(LIBRARY.clt_dataset_samples(dataset)):
        name = LIBRARY.clt_dataset_sample_name(dataset, index).decode()
        with Image.open(os.path.join(folder, name)) as image:
            wanted = planes(as_torchvision(image.convert("RGB")))
        apart = [abs(a - b) for a, b in zip(wanted, fetch(dataset, index))]
        found[name] = max(apart), sum(apart) / len(apart)
    LIBRARY.clt_dataset_destroy(dataset)
    return found


def pixels_of(dataset):
    return [fetch(dataset, i) for i in range(LIBRARY.clt_dataset_samples(dataset))]


def compare_archives(folder):
    """The same files in tar archives of every format, split in two, have the same pixels."""
    files = sorted(os.listdir(os.path.join(folder, "one")))
    dataset = ctypes.c_void_p()
    assert LIBRARY.clt_dataset_image_folder(ctypes.byref(dataset), folder.encode(), ctypes.byref(Options(size=SIZE))) == 0
    wanted = pixels_of(dataset)
    LIBRARY.clt_dataset_destroy(dataset)
    for kind, directory in (tarfile.USTAR_FORMAT, "a"), (tarfile.GNU_FORMAT, "b" * 120), (tarfile.PAX_FORMAT, "\u00e9" * 90):
        paths = []
        for part in range(2):
            paths.append(os.path.join(folder, f"{kind}-{part}.tar"))
            with tarfile.open(paths[-1], "w", format=kind) as archive:
                for i in range(part, len(files), 2):
                    key = f"{directory}/{i:04}"
                    archive.add(os.path.join(folder, "one", files[i]), key + os.path.splitext(files[i])[1])
                    label = tarfile.TarInfo(key + ".cls")
                    label.size = 1
                    archive.addfile(label, io.BytesIO(b"%d" % (i % 3)))
        names = (ctypes.c_char_p * 2)(*(path.encode() for path in paths))
        assert LIBRARY.clt_dataset_image_tar(ctypes.byref(dataset), names, 2, ctypes.byref(Options(size=SIZE))) == 0, LIBRARY.clt_error_detail()
        assert pixels_of(dataset) == wanted[0::2] + wanted[1::2], kind
        assert LIBRARY.clt_dataset_classes(dataset) == 3
        LIBRARY.clt_dataset_destroy(dataset)


def main():
    with tempfile.TemporaryDirectory() as folder:
        write_files(folder)
        exact, scaled = differences(folder, True), differences(folder, False)
        compare_archives(folder)
    assert len(exact) == 32, exact
    # Pillow may have been built with another libjpeg, whose rounding is not this one's.
    wrong = {name: apart for name, apart in exact.items() if apart[0] > (0 if name.endswith(".png") else 3)}
    assert not wrong, wrong
    wrong = {name: apart for name, apart in scaled.items() if apart[1] > 4}
    assert not wrong, wrong
    print(f"{len(exact)} images; the largest difference is {max(a for a, _ in exact.values())}, of smaller decoding {max(m for _, m in scaled.values()):.2f} on average")


main()

#!/bin/sh
# test_images.sh PROGRAM PYTHON README: training on folders of images. Exit status 77: Python has no Pillow.
program=$1 python=$2 readme=$3 name=images
. "$(dirname "$0")/common.sh"
"$python" -c 'import PIL' 2>/dev/null || exit 77
cd "$folder" || exit 1

# Two classes that are easily told apart: stripes that lie, and stripes that stand.
cat >make.py <<'END'
import os, random, sys
from PIL import Image
draw = random.Random(1)
def stripes(path, stand, width, height):
    period, first = draw.randint(10, 16), draw.randint(0, 10)
    colours = [bytes(draw.randint(0, 255) for _ in range(3)) for _ in range(2)]
    pixels = b"".join(colours[((x if stand else y) + first) // (period // 2) % 2] for y in range(height) for x in range(width))
    Image.frombytes("RGB", (width, height), pixels).save(path, quality=90)
def make(folder, count, classes=("lie", "stand")):
    for stand, name in enumerate(classes):
        os.makedirs(os.path.join(folder, name), exist_ok=True)
        for i in range(count):
            stripes(os.path.join(folder, name, f"{i}.{('jpg', 'png', 'jpeg')[i % 3]}"), stand, draw.randint(60, 120), draw.randint(60, 120))
make("flowers", 30), make("split/train", 30), make("split/val", 10), make("new", 3), make("three", 2, ("lie", "roll", "stand"))
END
"$python" make.py

# A part is held out, and not augmented.
expect 0 "images [channels, height, width] = [3, 32, 32], 2 classes (lie, stand)" convnet --data folder:flowers,size=32 --epochs 15 --batch 16 --save a.safetensors --json
"$python" - "$out" >"$folder/why" 2>&1 <<'END' || fail "training: $(cat "$folder/why")"
import json, sys
r = json.load(open(sys.argv[1]))
assert r["train_samples"] == 48 and r["test_samples"] == 12 and r["test_accuracy"] >= 0.9, r
assert r["broken_samples"] == 0 and r["data_wait_seconds"] >= 0, r
END

# Threads, ranks and a stop in between change nothing.
train="convnet --data folder:flowers,size=32 --batch 16 --epochs 4 --device cpu"
for threads in 1 3; do expect 0 "" $train --data-threads $threads --export threads_$threads.safetensors; done
cmp -s threads_1.safetensors threads_3.safetensors || fail "the number of threads changes the weights"
expect 0 "" $train --workers 2 --stop-after 2 --save half.safetensors
expect 0 "Resumed" $train --num-workers 4 --resume half.safetensors --export resumed.safetensors
cmp -s threads_1.safetensors resumed.safetensors || fail "a stop in between changes the weights"
"$(dirname "$program")/cltrain-run" -q -n 2 -- "$program" convnet --data folder:flowers,size=32 --batch 8 --epochs 4 --json >"$out" 2>"$err" || fail "two ranks"
grep -q '"train_samples": 48' "$out" || fail "two ranks have other data"
expect 0 "" $train --data folder:flowers,size=32,augment=0 --export plain.safetensors
cmp -s threads_1.safetensors plain.safetensors && fail "augment=0 changes nothing"

# Parts that the folders bring, and what was trained on them.
expect 0 "" convnet --data folder:split,size=32,jitter=0.2,erase=0.1 --epochs 12 --batch 16 --save b.safetensors --json
grep -q '"test_samples": 20' "$out" || fail "val/ is not the test"
cp "$out" said.json
expect 0 "" --test folder:split/val --from b.safetensors --json
"$python" -c 'import json, sys
a, b = (json.load(open(path)) for path in sys.argv[1:])
assert abs(a["test_loss"] - b["test_loss"]) < 1e-4 and a["test_accuracy"] == b["test_accuracy"], (a, b)' said.json "$out" || fail "--test gives other results than training"
expect 0 "" --predict folder:new --from b.safetensors --output p.csv
[ "$(head -n 1 p.csv)" = "file,prediction,probability_lie,probability_stand" ] || fail "the header: $(head -n 1 p.csv)"
[ "$(wc -l <p.csv)" -eq 7 ] || fail "not a line for each image"
[ "$(grep -c '^lie/.*,lie,' p.csv)" -ge 2 ] && [ "$(grep -c '^stand/.*,stand,' p.csv)" -ge 2 ] || fail "predictions: $(cat p.csv)"
expect 0 "" --predict folder:new/lie --from b.safetensors --output p.npy
"$python" -c 'import struct; d = open("p.npy", "rb").read(); assert b"(3, 2)" in d, d' || fail "an array of predictions"
expect 1 "class 'roll': the classes of the model are lie, stand" --test folder:three --from b.safetensors

# The same files in archives: the first two thirds of the samples, and the rest.
cat >pack.py <<'END'
import io, os, tarfile
def pack(path, folder, of=lambda i: True):
    with tarfile.open(path, "w") as archive:
        for label, kind in enumerate(sorted(os.listdir(folder))):
            for i, name in enumerate(sorted(os.listdir(f"{folder}/{kind}"))):
                if not of(i): continue
                stem, ending = os.path.splitext(name)
                archive.add(f"{folder}/{kind}/{name}", f"{kind}-{stem}{ending}")
                member = tarfile.TarInfo(f"{kind}-{stem}.cls")
                member.size = 1
                archive.addfile(member, io.BytesIO(b"%d" % label))
for part in range(3): pack(f"train-{part:03}.tar", "split/train", lambda i: i % 3 == part)
pack("val.tar", "split/val"), pack("new.tar", "new")
END
"$python" pack.py
expect 0 "[3, 32, 32], 2 classes" convnet --data 'tar:train-{000..002}.tar,test=val.tar,size=32' --epochs 12 --batch 16 --save tar.safetensors --json
"$python" -c 'import json, sys; o = json.load(open(sys.argv[1])); assert (o["train_samples"], o["test_samples"]) == (60, 20) and o["test_accuracy"] >= 0.9, o' "$out" || fail "training on archives"
cp "$out" trained.json
expect 0 "" convnet --data tar:val.tar,size=32 --epochs 1 --json
grep -q '"test_samples": 4' "$out" || fail "no fifth of an archive is held out"
expect 0 "" --test tar:val.tar --from tar.safetensors --json
"$python" -c 'import json, sys; a, b = (json.load(open(p)) for p in sys.argv[1:]); assert a["test_accuracy"] == b["test_accuracy"], (a, b)' trained.json "$out" || fail "--test of an archive gives other results than training"
expect 1 "trained on the classes 0, 1, ..., and the data have lie, stand" --test folder:split/val --from tar.safetensors
expect 0 "" --predict tar:new.tar --from tar.safetensors --output t.csv
[ "$(wc -l <t.csv)" -eq 7 ] || fail "not a line for each image of an archive: $(cat t.csv)"
head -c 5000 val.tar >cut.tar
expect 1 "cut.tar" convnet --data tar:cut.tar,size=32
expect 1 "train-003.tar" convnet --data 'tar:train-{000..003}.tar,size=32'
expect 1 "make.py" convnet --data tar:make.py
refuse "expected tar:FILE.tar[,test=FILE.tar]" convnet --data tar:val.tar,turn=1

# What cannot be read is named, or skipped and counted.
head -c 300 flowers/lie/3.jpg >flowers/lie/3x.jpg
expect 1 "flowers/lie/3x.jpg: damaged JPEG data" convnet --data folder:flowers,size=32 --epochs 3
expect 0 "flowers/lie/3x.jpg: damaged JPEG data: Invalid JPEG file structure: missing SOS marker; the next sample takes its place" \
    convnet --data folder:flowers,size=32 --epochs 3 --seed 1 --broken-samples skip --json
grep -q '"broken_samples": [1-9]' "$out" || fail "broken samples are not counted"
rm flowers/lie/3x.jpg
# Tests and predictions are without them; ranks count together.
for i in 1 2 3; do head -c 300 flowers/lie/3.jpg >split/val/lie/broken$i.jpg; done
head -c 300 flowers/lie/3.jpg >split/train/stand/broken.jpg
expect 0 "" logistic --data folder:split,size=32 --epochs 2 --batch 61 --broken-samples skip --save skip.safetensors --json
json "$out" '(o["broken_samples"], o["test_broken_samples"]) == (2, 3) and sum(map(sum, o["test_confusion"])) == 20 and len(o["test_worst"]) == 10'
json "$out" 'not any("broken" in w["name"] for w in o["test_worst"])'
cp "$out" alone.json
"$(dirname "$program")/cltrain-run" -q -n 2 -- "$program" logistic --data folder:split,size=32 --epochs 2 --shares 31,30 --broken-samples skip --json >"$out" 2>"$err" || fail "two ranks that skip"
"$python" -c 'import json, sys
a, b = (json.load(open(p)) for p in sys.argv[1:])
for key in ("broken_samples", "test_broken_samples"): assert a[key] == b[key], (key, a[key], b[key])
assert sum(map(sum, b["test_confusion"])) == 20, b' alone.json "$out" 2>why || fail "ranks that skip: $(tail -n 1 why)"
expect 1 "broken1.jpg: damaged JPEG data" --test folder:split/val --from skip.safetensors
expect 0 "" --test folder:split/val --from skip.safetensors --broken-samples skip --json
json "$out" 'o["test_samples"] == 20 and o["test_broken_samples"] == 3 and sum(map(sum, o["test_confusion"])) == 20 and o["classes"] == ["lie", "stand"]'
expect 0 "3 samples could not be read, and have no prediction" --predict folder:split/val --from skip.safetensors --broken-samples skip --output skip.csv
[ "$(wc -l <skip.csv)" -eq 21 ] || fail "predictions of what cannot be read"
[ "$(grep -c 'damaged JPEG' "$err")" -eq 3 ] || fail "a warning each, once"
grep -q broken skip.csv && fail "a prediction of what cannot be read"
expect 0 "" --predict folder:split/val --from skip.safetensors --broken-samples skip --output skip.npy
"$python" -c 'import struct; d = open("skip.npy", "rb").read(); assert b"(23, 2)" in d; v = struct.unpack("<46f", d[128:]); assert sum(x != x for x in v) == 6, v' || fail "an array with gaps"
rm split/val/lie/broken?.jpg split/train/stand/broken.jpg
for kind in lie stand; do mkdir -p all/train/$kind all/val/$kind; cp flowers/$kind/3.jpg all/train/$kind; head -c 300 flowers/lie/3.jpg >all/val/$kind/x.jpg; done
expect 1 "none of the 2 samples could be read" logistic --data folder:all,size=32 --epochs 1 --batch 2 --broken-samples skip
expect 1 "nowhere" convnet --data folder:nowhere
mkdir -p none/class
expect 1 "none: class 'class' has no image" convnet --data folder:none
ln -s /etc/hostname none/class/link.jpg
expect 1 "class/link.jpg: a link that leads out of the folder" convnet --data folder:none
refuse "expected folder:DIR[,size=N]" convnet --data folder:flowers,size=0
refuse "expected folder:DIR[,size=N]" convnet --data folder:flowers,size=100,resize=50
refuse "expected folder:DIR[,size=N]" convnet --data folder:flowers,jitter=2
refuse "expected folder:DIR[,size=N]" convnet --data folder:flowers,turn=1

# The README's lines.
sed -n '/run by tests\/tools\/test_images.sh/,/^```$/p' "$readme" | grep '^cltrain-' | sed 's/resnet18/convnet/' >lines
[ "$(wc -l <lines)" -eq 2 ] || fail "the README has $(wc -l <lines) lines on folders of images"
while read -r line; do
    # shellcheck disable=SC2086
    set -- $line
    program=$(dirname "$program")/$1
    shift
    expect 0 "" "$@"
done <lines
[ "$(wc -l <predicted.csv)" -eq 7 ] || fail "the README's predictions"

[ "$failures" -eq 0 ] && echo "all passed"
[ "$failures" -eq 0 ]

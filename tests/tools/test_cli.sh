#!/bin/sh
# cltrain-train's command line: option parsing, exit codes, messages, files and JSON.
#
#     test_cli.sh PROGRAM [PYTHON3]
#
# Without Python the JSON is looked at by its keys alone.
program=$1
python=${2-}
name=cli
. "$(dirname "$0")/common.sh"

same() {
    cmp "$1" "$2" >"$out" 2>&1 || fail "$3"
}

# ---- the command line ----

"$program" --help >"$out" 2>"$err" || fail "--help gave $?"
for word in MODEL SPEC --epochs --steps --batch --optimizer --lr --schedule --momentum --weight-decay \
            --clip-norm --clip-value --seed --device --save --resume --log --profile --json --list-devices --version; do
    grep -qF -- "$word" "$out" || fail "--help does not name $word"
done
awk 'length > 80 { exit 1 }' "$out" || fail "--help has lines of more than 80 characters"
"$program" --version >"$out" 2>"$err" || fail "--version gave $?"
grep -Eq '^cltrain-train [0-9]+\.[0-9]+\.[0-9]+$' "$out" || fail "--version"

refuse "no MODEL given"
refuse "no --data SPEC given" convnet
refuse "one MODEL expected" convnet mlp --data digits
refuse "unknown model 'convnett': expected linear, logistic, mlp" convnett --data digits
refuse "layer sizes of at least 1" mlp:12,x --data digits
for method in none f17 topk,ratio=0 topk,ratio=1.5 topk,ratio topk,rank=2 topk,values=f16 powersgd,rank=33 powersgd,rank=x int8,; do
    refuse "--compress $method: expected f16" mlp --data digits --compress "$method"
done
refuse "layer sizes of at least 1" mlp: --data digits
refuse "layer sizes of at least 1" mlp:0 --data digits
refuse "takes nothing after it" convnet:3 --data digits

refuse "did you mean --epochs?" convnet --data digits --epoch 3
refuse "did you mean --batch?" convnet --data digits --batchsize 3
refuse "--batch-size '0': expected a whole number from 1" convnet --data digits --batch-size 0
refuse "--batch_size '0': expected a whole number from 1" convnet --data digits --batch_size=0
refuse "--batch '0': expected a whole number from 1" convnet --data digits -b0
refuse "--learning-rate '0': expected a number above 0" convnet --data digits --learning-rate 0
refuse "--lr '0': expected a number above 0" convnet --data digits -lr 0
refuse "unknown option '--frobnicate'" convnet --data digits --frobnicate
refuse "unknown option '-x'" convnet --data digits -x
refuse "unknown option '-vx'" convnet --data digits -vx
refuse "unknown option '-vb'" convnet --data digits -vb 3
"$program" linear --data synthetic-regression:64x3 --steps 1 -vv >"$out" 2>"$err" || fail "-vv gave $?"
grep -q "^debug: " "$err" || fail "-vv is not -v -v"
refuse "--epochs '3.5': expected a whole number" convnet --data digits --epochs 3.5
refuse "--epochs '-1': expected a whole number" convnet --data digits --epochs -1
refuse "--epochs ' 3': expected a whole number" convnet --data digits --epochs ' 3'
refuse "--epochs '99999999999999999999'" convnet --data digits --epochs=99999999999999999999
refuse "--batch '0': expected a whole number from 1" convnet --data digits --batch 0
refuse "--lr 'abc': expected a number above 0" convnet --data digits --lr=abc
refuse "--lr '0': expected a number above 0" convnet --data digits --lr 0
refuse "--lr 'nan': expected a number" convnet --data digits --lr nan
refuse "--lr '1e999': expected at most 3.4e+38" convnet --data digits --lr 1e999
refuse "--momentum '1': expected a number from 0 to below 1" resnet18 --data digits --momentum 1
refuse "--seed '-1'" convnet --data digits --seed -1
refuse "--seed needs a value" convnet --data digits --seed
refuse "--save needs a value" convnet --data digits --save --json
refuse "--quiet takes no value" convnet --data digits --quiet=1
refuse "--optimizer 'lion': expected sgd, adam or adamw" convnet --data digits --optimizer lion
refuse "--schedule 'linear': expected constant, step or cosine" convnet --data digits --schedule linear
refuse "--momentum is of --optimizer sgd" convnet --data digits --optimizer adam --momentum 0.9
refuse "--nesterov needs --momentum" convnet --data digits --optimizer sgd --nesterov
refuse "--min-lr needs --schedule cosine" convnet --data digits --min-lr 0.1
refuse "--decay-steps and --decay-factor need --schedule step" convnet --data digits --decay-steps 5
refuse "leaves no step" convnet --data digits --schedule cosine --steps 5 --warmup 5
refuse "--accumulate 50" convnet --data digits --accumulate 50
refuse "--save-every needs --save" convnet --data digits --save-every 5

refuse "expected digits, idx:DIR" convnet --data digitz
refuse "expected digits and nothing after it" convnet --data digits:3
refuse "expected idx:DIR" convnet --data idx
refuse "expected idx:DIR" convnet --data idx:
refuse "expected csv:FILE" logistic --data csv:
refuse "expected csv:FILE" logistic --data csv:a.csv,skip=-1
refuse "expected csv:FILE" logistic --data csv:a.csv,header=2
refuse "expected csv:FILE" logistic --data csv:a.csv,lable=3
refuse "cltrain-run starts several processes" mlp --data digits --nproc_per_node 2
expect 0 "Model   mlp" -m mlp --data digits --epochs 0
refuse "expected npy:X.npy,Y.npy" mlp --data npy:x.npy
refuse "expected npy:X.npy,Y.npy" mlp --data npy:x.npy,y.npy,z.npy
refuse "expected npy:X.npy,Y.npy[,layout=nchw|nhwc]" mlp --data npy:x.npy,y.npy,layout=hwc
refuse "expected synthetic:SHAPE" convnet --data synthetic:3x32x
refuse "expected synthetic:SHAPE" convnet --data synthetic:3x0x32
refuse "expected synthetic:SHAPE" convnet --data synthetic:3x32x32,classes=1
refuse "expected synthetic-regression:NxD" linear --data synthetic-regression:100
refuse "expected synthetic-regression:NxD" linear --data synthetic-regression:100x3,noise=-1

# Model and data that do not go together.
refuse "linear predicts numbers" linear --data digits
refuse "logistic predicts classes" logistic --data synthetic-regression:100x3
refuse "convnet needs images" convnet --data synthetic-regression:100x3
refuse "does not fit the samples [1, 2, 2]" convnet --data synthetic:1x2x2,n=100

# ---- runs that fail ----

expect 1 "/nonexistent.csv" logistic --data csv:/nonexistent.csv
expect 1 "train-images-idx3-ubyte" convnet --data "idx:$folder"
expect 1 "data_batch_1.bin" convnet --data "cifar10:$folder"
expect 1 "no such device" logistic --data digits --device "no such device"
printf '1,2,0\n3,four,1\n' >"$folder/text.csv"
expect 1 "line 2" logistic --data "csv:$folder/text.csv"
printf '1,2,0\n3,4,1\n' >"$folder/two.csv"
expect 1 "at least 5 are needed" logistic --data "csv:$folder/two.csv"
# Before the first step.
for option in save export profile; do
    expect 1 "--$option: $folder/nowhere/model cannot be written: No such file" logistic --data digits --epochs 1 "--$option=$folder/nowhere/model"
    grep -q "epoch 1/1" "$err" && fail "--$option: what cannot be written is found out after training"
    expect 1 "--$option: $folder cannot be written: not a regular file" logistic --data digits --epochs 1 "--$option=$folder"
done
expect 0 "warning: --warmup 1000 is longer than the run's" logistic --data digits --epochs 1 --schedule constant --warmup 1000
expect 0 "warning: --balance does nothing" logistic --data digits --epochs 1 --balance --compress int8
grep -q "warning: --compress does nothing" "$err" || fail "--compress of one rank is taken in silence"
# The object in a file, which appears when it is whole; stdout stays empty.
expect 0 "" logistic --data digits --epochs 1 -q "--json=$folder/result.json"
[ ! -s "$out" ] && grep -q '"test_accuracy"' "$folder/result.json" || fail "--json=FILE"
expect 1 "nowhere" logistic --data digits --epochs 1 -q "--json=$folder/nowhere/result.json"
refuse "are the same file" logistic --data digits --epochs 1 "--json=$folder/one" "--save=$folder/one"
expect 0 "" --list-devices "--json=$folder/devices.json"
grep -q '"devices"' "$folder/devices.json" || fail "--list-devices --json=FILE"

# Nobody's table is replaced by a slip of the pen; an empty file, and what such a run has written, are.
printf 'a,b\n1,2\n' >"$folder/table.csv"
for option in "--save=$folder/table.csv" "--export=$folder/table.csv" "--profile=$folder/table.csv" "--log=$folder/table.csv"; do
    expect 1 "it is not replaced" logistic --data digits --epochs 1 "$option"
done
expect 1 "is not JSON: it is not replaced" logistic --data digits --epochs 1 "--json=$folder/table.csv"
cp "$folder/table.csv" "$folder/table.onnx"
expect 1 "is not an ONNX file: it is not replaced" logistic --data digits --epochs 1 "--export=$folder/table.onnx"
[ "$(head -n 1 "$folder/table.csv")" = a,b ] || fail "a table was replaced"
: >"$folder/empty"
for i in 1 2; do
    expect 0 "" logistic --data digits --epochs 1 --save "$folder/again" --export "$folder/empty" --log "$folder/again.log" "--profile=$folder/again.json"
done
if [ "$(id -u)" -ne 0 ]; then
    mkdir "$folder/closed"
    chmod a-w "$folder/closed"
    expect 1 "cannot be written: Permission denied" logistic --data digits --epochs 1 --export "$folder/closed/model"
    grep -q "epoch 1/1" "$err" && fail "a folder that is read-only is found out after training"
fi
expect 1 "nowhere" logistic --data digits --epochs 1 --log "$folder/nowhere/log"
echo '{"event":"start"}' >"$folder/busy"
(flock 9 && expect 1 "another run writes it" logistic --data digits --epochs 1 --log "$folder/busy"; [ $failures -eq 0 ]) 9>>"$folder/busy" || failures=1
[ "$(cat "$folder/busy")" = '{"event":"start"}' ] || fail "a log that another run writes was changed"
expect 1 "garbage" logistic --data digits --epochs 1 --resume "$folder/garbage"
echo "this is no checkpoint" >"$folder/garbage"
expect 1 "garbage" logistic --data digits --epochs 1 --resume "$folder/garbage"
expect 1 "diverged" mlp --data digits --optimizer sgd --lr 1e30 --epochs 2 --save "$folder/diverged"
[ -e "$folder/diverged" ] && fail "a run that diverged was saved"
diverging="mlp --data digits --optimizer sgd --lr 1e30 --epochs"
expect 1 "gradients are NaN or infinite; parameters" $diverging 1
expect 1 "loss is" $diverging 1 --on-nonfinite ignore
expect 1 "The first such value: " $diverging 1 --locate-nan
grep -qE "(forward|backward), by [a-z]+: [0-9]+ of [0-9]+ values" "$err" || fail "--locate-nan names no op"
expect 1 "loss is" $diverging 2 --on-nonfinite skip
refuse "--locate-nan and --on-nonfinite ignore" $diverging 1 --locate-nan --on-nonfinite ignore
refuse "--on-nonfinite" $diverging 1 --on-nonfinite maybe

# ---- runs ----

expect 1 "updates were left out. Training diverged" $diverging 1 --on-nonfinite skip --json --log "$folder/skips"
grep -q "steps skipped" "$err" || fail "the epoch's line tells of no step that was skipped"
json "$out" '0 < o["skipped_steps"] < o["steps"] and o["train_loss"] > 0'
tail -n 1 "$folder/skips" >"$folder/skips.end"
json "$folder/skips.end" 'o["skipped_steps"] > 0'

expect 0 "epoch 2/2" logistic --data digits --epochs 2 --seed 1 --json --log "$folder/log" \
    --save "$folder/two" --export "$folder/weights"
json "$out" 'o["model"] == "logistic" and o["epochs"] == 2 and o["steps"] == 178 and o["parameters"] == 650'
json "$out" 'all(o[k] > 0 for k in ("train_loss", "test_loss", "samples_per_second", "epoch_seconds", "first_step_seconds",
    "peak_device_bytes")) and 0.5 < o["test_accuracy"] <= 1 and isinstance(o["device"], str)'
json "$out" 'o["train_samples"] == 1438 and o["test_samples"] == 359 and not o["interrupted"]'
[ -s "$folder/weights" ] || fail "--export wrote nothing"
grep -qF "digits, 1438 training and 359 test samples" "$err" || fail "no word of how many samples there are"
grep -qF "images [channels, height, width] = [1, 8, 8], 10 classes" "$err" || fail "no word of what a sample is"
grep -q "^Preparing kernels" "$err" && grep -q "^First step done after [0-9.]* s" "$err" || fail "no word of kernels that are built"
for epoch in 1 2; do
    grep "\"event\":\"epoch\",\"epoch\":$epoch" "$folder/log" >"$folder/epoch"
    json "$folder/epoch" 'abs(o["samples_per_second"] * o["epoch_seconds"] / (89 * 16) - 1) < 1e-6' # an epoch of 89 batches of 16
done
json "$out" '0 <= o["kernel_seconds"] < o["first_step_seconds"]'
# Of an epoch that is the first step alone there is no rate, and the next one has its own.
expect 0 "" logistic --data digits --epochs 2 --batch 1438 --quiet --log "$folder/single"
grep '"event":"epoch","epoch":1' "$folder/single" >"$folder/epoch"
json "$folder/epoch" 'o["samples_per_second"] is None and o["epoch_seconds"] is None'
grep '"event":"epoch","epoch":2' "$folder/single" >"$folder/epoch"
json "$folder/epoch" 'abs(o["samples_per_second"] * o["epoch_seconds"] / 1438 - 1) < 1e-6'
tail -n 1 "$folder/log" >"$folder/end"
json "$folder/end" 'o["event"] == "end" and o["epochs"] == 2'
[ "$(wc -l <"$folder/log")" -ge 4 ] || fail "--log has fewer lines than start, two epochs and end"

# A log goes on behind what a run that was killed left of a line.
printf '{"event":"start"}\n{"event":"prog' >"$folder/torn"
expect 0 "Resumed" logistic --data digits --epochs 2 --seed 1 --resume "$folder/two" --log "$folder/torn"
sed -n 2p "$folder/torn" | grep -qx '{"event":"prog' || fail "--log goes on within a torn line"
sed -n 3p "$folder/torn" | grep -q '^{"event":"start",' || fail "--log does not go on in a line of its own"
expect 0 "Resumed" logistic --data digits --epochs 2 --seed 1 --resume "$folder/two" --log "$folder/torn"
grep -q '^$' "$folder/torn" && fail "--log: an empty line after a whole one"

# Nobody reads it; and where a link leads another file may be.
mkfifo "$folder/fifo"
timeout 60 "$program" logistic --data digits --epochs 1 --log "$folder/fifo" >"$out" 2>"$err"
got=$?
[ $got -eq 1 ] || fail "a --log that nobody reads gave $got"
grep -q "no process reads from this pipe" "$err" || fail "a --log that nobody reads: no reason"
ln -s "$folder/unmade" "$folder/dangling"
expect 1 "it is a link to nothing" logistic --data digits --epochs 1 --log "$folder/dangling" --save "$folder/unmade"

# ---- one file for two options: refused before anything is written; but a checkpoint goes on in its own ----

shared="$folder/shared"
mkdir "$shared"
ln -s . "$shared/self"
for i in 1 2 3 4 5 6 7 8 9 10; do echo "$i,1,$((i % 2))"; done >"$shared/y.csv"
for file in two.st train-images-idx3-ubyte t10k-labels-idx1-ubyte.gz data_batch_2.bin test_batch.bin x.npy y.npy; do
    cp "$folder/two" "$shared/$file"
done
ln -s two.st "$shared/link.st"
cp -a "$shared" "$folder/shared.before"

# twice OPTION FILE OPTION FILE ARGUMENT...: refused in these words.
twice() {
    words="$1 $2 and $3 $4 are the same file"
    shift 4
    refuse "$words" logistic --epochs 3 --seed 1 "$@"
}

for option in log export profile; do
    for path in two.st self/two.st link.st; do
        twice --$option "$shared/$path" --resume "$shared/two.st" --data digits "--$option=$shared/$path" --resume "$shared/two.st"
    done
done
for option in log save export profile; do
    twice --$option "$shared/self/y.csv" --data "$shared/y.csv" --data "csv:$shared/y.csv,label=2" "--$option=$shared/self/y.csv"
    for file in x y; do
        twice --$option "$shared/$file.npy" --data "$shared/$file.npy" --data "npy:$shared/x.npy,$shared/y.npy" "--$option=$shared/$file.npy"
    done
    for file in train-images-idx3-ubyte t10k-labels-idx1-ubyte.gz; do
        twice --$option "$shared/$file" --data "$shared/$file" --data "idx:$shared" "--$option=$shared/$file"
    done
    for file in data_batch_2.bin test_batch.bin; do
        twice --$option "$shared/$file" --data "$shared/$file" --data "cifar10:$shared" "--$option=$shared/$file"
    done
done
for path in new.st two.st; do
    for other in $path self/$path; do
        twice --save "$shared/$path" --export "$shared/$other" --data digits --save "$shared/$path" --export "$shared/$other"
        twice --save "$shared/$path" --log "$shared/$other" --data digits --save "$shared/$path" --log "$shared/$other"
        twice --log "$shared/$path" --profile "$shared/$other" --data digits --log "$shared/$path" --profile="$shared/$other"
    done
done
twice --save "$shared/two.st" --export "$shared/link.st" --data digits --save "$shared/two.st" --export "$shared/link.st"
diff -r --no-dereference "$folder/shared.before" "$shared" >"$out" || fail "options that are refused changed a file"
expect 0 "Resumed" logistic --data digits --epochs 3 --seed 1 --save "$shared/two.st" --resume "$shared/self/two.st" --log /dev/null

# As many epochs in one run as in two, and the same again.
expect 0 "Resumed" logistic --data digits --epochs 4 --seed 1 --resume "$folder/two" --export "$folder/a"
expect 0 "epoch 4/4" logistic --data digits --epochs 4 --seed 1 --export "$folder/b"
expect 0 "epoch 4/4" logistic --data digits --epochs 4 --seed 1 --export "$folder/c"
same "$folder/a" "$folder/b" "2 + 2 epochs give other weights than 4"
same "$folder/b" "$folder/c" "the same seed gives other weights"
expect 0 "epoch 4/4" logistic --data digits --epochs 4 --seed 2 --export "$folder/c"
cmp -s "$folder/a" "$folder/c" && fail "another seed gives the same weights"

# In the midst of an epoch, and with a schedule as long as the whole run.
schedule="--optimizer sgd --momentum 0.9 --schedule cosine --accumulate 2 --warmup 4"
expect 0 "epoch 2/2" mlp:16 --data digits --epochs 2 $schedule --stop-after 2 --export "$folder/a"
expect 0 "epoch 1/1" mlp:16 --data digits --epochs 2 $schedule --stop-after 1 --save "$folder/half"
expect 0 "Resumed" mlp:16 --data digits --epochs 2 $schedule --resume "$folder/half" --export "$folder/b"
same "$folder/a" "$folder/b" "--stop-after and --resume give other weights"
expect 0 "" mlp:16 --data digits --steps 7 --accumulate 2 --save "$folder/seven"
expect 0 "Resumed" mlp:16 --data digits --steps 30 --accumulate 2 --resume "$folder/seven" --export "$folder/a"
expect 0 "" mlp:16 --data digits --steps 30 --accumulate 2 --export "$folder/b"
same "$folder/a" "$folder/b" "--steps 7 and 23 more give other weights than --steps 30"

# A checkpoint of another model.
expect 1 "--resume" mlp:17 --data digits --steps 30 --accumulate 2 --resume "$folder/seven"

expect 1 "trained with --seed 1" logistic --data digits --epochs 4 --seed 3 --resume "$folder/two"

# Evaluation alone; regression; a table; nothing on stderr when quiet.
expect 0 "" logistic --data digits --seed 1 --epochs 0 --resume "$folder/two" --json
json "$out" 'o["steps"] == 178 and o["samples_per_second"] is None and o["train_loss"] is None and o["test_accuracy"] > 0.5'
cp "$out" "$folder/resumed.json"
expect 0 "" logistic --data digits --seed 1 --evaluate "$folder/two" --json
"$python" -c '
import json, sys
a, b = (json.load(open(p)) for p in sys.argv[1:])
assert [b[k] for k in b if k.startswith("test_")] == [a[k] for k in a if k.startswith("test_")] and "test_f1" in b and b["storage"] == "f32", (a, b)' "$folder/resumed.json" "$out" || fail "--evaluate gives other figures than --resume without epochs"
expect 1 "cltrain-train: --evaluate: " logistic --data digits --evaluate "$folder/nowhere"
refuse "--evaluate and --save exclude each other" logistic --data digits --evaluate "$folder/two" --save "$folder/none"
expect 0 "" linear --data synthetic-regression:5000x3,noise=0.1 --json --quiet
json "$out" '0.008 < o["test_mse"] < 0.0125 and abs(o["test_mse"] - o["test_loss"]) < 1e-6 and "test_accuracy" not in o'
[ -s "$err" ] && fail "--quiet says something"
awk 'BEGIN { for (i = 0; i < 200; i++) print i % 7 "," 100 * (i % 2) + i % 3 ",5," i % 2 }' >"$folder/table.csv"
expect 0 "" logistic --data "csv:$folder/table.csv,label=3" --json
json "$out" 'o["test_accuracy"] == 1 and o["standardized"] and o["test_samples"] == 40'
expect 0 "" mlp --data "csv:$folder/table.csv,label=0,regression=1" --epochs 1
grep -q "mean squared error" "$out" || fail "a regression's summary"

# Weights alone are first values, for any seed.
expect 0 "Resumed" logistic --data digits --epochs 1 --seed 5 --resume "$folder/weights" --json
json "$out" 'o["epochs"] == 1 and o["seed"] == 5 and o["test_accuracy"] > 0.5'

# ---- folders of files: the label is told by the brightest row ----

if [ -n "$python" ]; then
    "$python" - "$folder" >"$out" 2>"$err" <<'END' || fail "making the files"
import gzip, os, random, struct, sys

random.seed(1)
folder = sys.argv[1]
os.makedirs(folder + "/idx")
os.makedirs(folder + "/cifar")

def image(label, rows, columns):
    return bytes(200 if row == label else random.randrange(40) for row in range(rows) for _ in range(columns))

def write_idx(part, count, opener, suffix):
    labels = [random.randrange(4) for _ in range(count)]
    with opener(f"{folder}/idx/{part}-images-idx3-ubyte{suffix}", "wb") as file:
        file.write(struct.pack(">4I", 0x803, count, 8, 6) + b"".join(image(n, 8, 6) for n in labels))
    with opener(f"{folder}/idx/{part}-labels-idx1-ubyte{suffix}", "wb") as file:
        file.write(struct.pack(">2I", 0x801, count) + bytes(labels))

def write_cifar(name, count):
    with open(f"{folder}/cifar/{name}.bin", "wb") as file:
        for _ in range(count):
            label = random.randrange(10)
            file.write(bytes([label]) + b"".join(image(label, 32, 32) for _ in range(3)))

def write_npy(name, kind, shape, values):
    header = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}"
    header += " " * (-(len(header) + 11) % 64) + "\n"
    with open(f"{folder}/{name}.npy", "wb") as file:
        file.write(b"\x93NUMPY\1\0" + struct.pack("<H", len(header)) + header.encode() + values)

write_idx("train", 400, gzip.open, ".gz")
write_idx("t10k", 90, open, "")
write_cifar("data_batch_1", 60)
write_cifar("data_batch_2", 40)
write_cifar("test_batch", 30)
# One image of 8 x 8 pixels in 3 channels, by place: last channels, or first.
labels = [random.randrange(2) for _ in range(40)]
pixel = lambda i, c, p: labels[i] * (c + 1) + p / 64 + random.random() / 8
images = [[[pixel(i, c, p) for p in range(64)] for c in range(3)] for i in range(40)]
write_npy("last", "<f4", (40, 8, 8, 3), b"".join(struct.pack("<f", i[c][p]) for i in images for p in range(64) for c in range(3)))
write_npy("first", "<f4", (40, 3, 8, 8), b"".join(struct.pack("<f", v) for i in images for c in i for v in c))
write_npy("labels", "<i4", (40,), struct.pack("<40i", *labels))
write_npy("far", "<i4", (40,), struct.pack("<40i", *(1000000 * label for label in labels)))
write_npy("gaps", "<i4", (40,), struct.pack("<40i", *(7 * label for label in labels)))
xs = [(random.random(), random.random()) for _ in range(500)]
write_npy("x", "<f4", (500, 2), b"".join(struct.pack("<2f", *x) for x in xs))
write_npy("y", "<f8", (500,), b"".join(struct.pack("<d", 3 * a - b + 1) for a, b in xs))
END
    expect 0 "epoch 8/8" convnet --data "idx:$folder/idx" --epochs 8 --json
    json "$out" 'o["train_samples"] == 400 and o["test_samples"] == 90 and o["test_accuracy"] > 0.95'
    expect 0 "epoch 1/1" logistic --data "cifar10:$folder/cifar" --epochs 1 --json
    json "$out" 'o["train_samples"] == 100 and o["test_samples"] == 30 and o["parameters"] == 30730'
    cp "$folder/cifar/data_batch_1.bin" "$folder/cifar/data_batch_4.bin"
    expect 1 "data_batch_3.bin cannot be read" logistic --data "cifar10:$folder/cifar" --epochs 1
    mkdir "$folder/cifar100"
    "$python" -c 'import sys; data = open(sys.argv[1] + "/cifar/data_batch_1.bin", "rb").read()
for name, count in ("train", 300), ("test", 100):
    open(f"{sys.argv[1]}/cifar100/{name}.bin", "wb").write(b"".join(bytes([7, i % 100]) + data[1:3073] for i in range(count)))' "$folder"
    expect 0 "" logistic --data "cifar100:$folder/cifar100" --epochs 1 --json
    json "$out" 'o["train_samples"] == 300 and o["test_samples"] == 100 and o["parameters"] == 307300'
    refuse "has a test part of its own" logistic --data "cifar100:$folder/cifar100" --fold 1/5
    rm "$folder/cifar100/train.bin"
    expect 1 "train.bin cannot be read" logistic --data "cifar100:$folder/cifar100"
    rm "$folder/cifar/data_batch_1.bin"
    expect 1 "data_batch_1.bin cannot be read" logistic --data "cifar10:$folder/cifar" --epochs 1
    expect 0 "" linear --data "npy:$folder/x.npy,$folder/y.npy" --epochs 30 --json
    json "$out" 'o["train_samples"] == 400 and o["standardized"] and o["test_mse"] < 1e-3'
    # Images with their channels last are not taken for others; turned, they are those with their channels first.
    refuse "8 x 8 x 3, which looks like images [height, width, channels]" convnet --data "npy:$folder/last.npy,$folder/labels.npy"
    grep -qF "transpose(0, 3, 1, 2)" "$err" || fail "no word of how NumPy turns them"
    expect 0 "" convnet --data "npy:$folder/last.npy,$folder/labels.npy,layout=nhwc" --epochs 2 --json
    cp "$out" "$folder/turned"
    expect 0 "" convnet --data "npy:$folder/first.npy,$folder/labels.npy" --epochs 2 --json
    losses() { sed -n 's/.*"\(t[a-z]*_loss\)": \([0-9.e-]*\).*/\1 \2/p' "$1"; }
    [ -n "$(losses "$out")" ] && [ "$(losses "$out")" = "$(losses "$folder/turned")" ] || fail "images that were turned train otherwise"
    expect 0 "" mlp --data "npy:$folder/last.npy,$folder/labels.npy,layout=nchw" --epochs 1
    expect 1 "expected 3: [height, width, channels]" linear --data "npy:$folder/x.npy,$folder/y.npy,layout=nhwc"
    # Labels that are no classes.
    refuse "labels up to 1000000, but only 40 samples" mlp --data "npy:$folder/first.npy,$folder/far.npy"
    grep -qF "stored as floats" "$err" || fail "no word of what numbers to predict are"
    refuse "6 of 8 classes have no sample, class 1 for one" mlp --data "npy:$folder/first.npy,$folder/gaps.npy"
    { echo size,price; for i in 1 2 3 4 5 6 7 8; do echo "$i,$((i * 1000))"; done; } >"$folder/house.csv"
    refuse "add regression=1 to --data" mlp --data "csv:$folder/house.csv"
    expect 0 "1 feature (size), 1 target" mlp --data "csv:$folder/house.csv,regression=1" --epochs 1
    rm "$folder/idx/t10k-labels-idx1-ubyte"
    expect 1 "t10k-labels-idx1-ubyte" convnet --data "idx:$folder/idx"
fi

[ $failures -eq 0 ] || { echo "$failures failed"; exit 1; }
echo "all passed"

#!/bin/sh
# test_finetune.sh PROGRAM PYTHON: training that begins from other weights, leaves some as they are, and ends when it gets no better.
program=$1 python=$2 name=finetune
. "$(dirname "$0")/common.sh"
cd "$folder" || exit 1

cat >tensors.py <<'END'
import json, struct, sys
def read(path):
    data = open(path, "rb").read()
    length = struct.unpack_from("<Q", data)[0]
    header = json.loads(data[8:8 + length])
    header.pop("__metadata__", None)
    return {name: data[8 + length + f["data_offsets"][0]:8 + length + f["data_offsets"][1]] for name, f in header.items()}
END

# ---- the values of another training ----

expect 0 "" convnet --data digits --epochs 2 --export first.safetensors --json
trained=$(grep '"test_' "$out")
expect 0 "" convnet --data digits --epochs 0 --init first.safetensors --json
[ "$(grep '"test_' "$out")" = "$trained" ] || fail "the weights of --init give another test"

expect 0 " of them trained) on digits" convnet --data digits --epochs 1 --init first.safetensors --freeze 'conv?.*,fc1.bias' --export second.safetensors --json
"$python" - "$out" >"$folder/why" 2>&1 <<'END' || fail "what is frozen: $(cat "$folder/why")"
import json, sys
sys.path.insert(0, ".")
from tensors import read
a, b = read("first.safetensors"), read("second.safetensors")
same = {name for name in a if a[name] == b[name]}
assert same == {"conv1.weight", "conv1.bias", "conv2.weight", "conv2.bias", "fc1.bias"}, same
told = json.load(open(sys.argv[1]))
frozen = sum(len(a[name]) // 4 for name in same)
assert told["parameters"] - told["trained_parameters"] == frozen, told
END

# ---- another head ----

expect 0 "" mlp:32 --data digits --epochs 0 --export plain.safetensors

expect 1 "was trained on 10 classes, and the data have 3. --init-matching takes the tensors that fit" \
    convnet --data synthetic:1x8x8,classes=3,n=200 --epochs 0 --init first.safetensors
expect 1 "\"fc2.weight\" is F32 [10, 32]; the model has F32 [32, 32]. --init-matching takes the tensors that fit" mlp:32,32 --data digits --epochs 0 --init plain.safetensors
expect 0 "--init: fc2.weight keeps its first values: first.safetensors: \"fc2.weight\" is F32 [10, 128]" \
    convnet --data synthetic:1x8x8,classes=3,n=200 --epochs 0 --init first.safetensors --init-matching --export third.safetensors
"$python" -c '
from tensors import read
a, b = read("first.safetensors"), read("third.safetensors")
assert all((a[name] == b[name]) == (not name.startswith("fc2")) for name in a), [name for name in a if a[name] == b[name]]' 2>"$folder/why" ||
    fail "another head: $(cat "$folder/why")"
expect 1 "has no tensor with a name, shape and type of the model's" mlp:7 --data synthetic:5,classes=3,n=200 --epochs 0 --init first.safetensors --init-matching
expect 1 "nowhere.safetensors" convnet --data digits --init nowhere.safetensors
head -c 5000 first.safetensors >cut.safetensors
expect 1 "cut.safetensors" convnet --data digits --init cut.safetensors --init-matching

refuse "--freeze: no parameter's name matches \"conv9*\"" convnet --data digits --freeze 'conv9*'
refuse "no parameter is left to train" convnet --data digits --freeze '*'
refuse "expected patterns of names with commas between" convnet --data digits --freeze 'conv1.*,,fc1.*'
refuse "--init and --resume exclude each other" convnet --data digits --init first.safetensors --resume first.safetensors
refuse "--init-matching needs --init FILE" convnet --data digits --init-matching
refuse "--freeze is of training: it does not go with --test" --test table.csv --from first.safetensors --freeze 'conv*'
refuse "--export" convnet --data digits --init first.safetensors --export first.safetensors

# ---- an end when it gets no better ----

refuse "--patience counts epochs" mlp --data digits --patience 2 --steps 100
expect 0 "" mlp:64 --data digits --epochs 300 --patience 2 --lr 0.02 --export best.safetensors --save last.safetensors --log run.jsonl --json
cp "$out" told.json
expect 0 "" mlp:64 --data digits --epochs 0 --init best.safetensors --json
"$python" - "$out" >"$folder/why" 2>&1 <<'END' || fail "patience: $(cat "$folder/why")"
import json, sys
told, again = json.load(open("told.json")), json.load(open(sys.argv[1]))
losses = [line["test_loss"] for line in map(json.loads, open("run.jsonl")) if line["event"] == "epoch"]
best = losses.index(min(losses)) + 1
assert told["stopped_early"] and told["best_epoch"] == best and told["epochs"] == len(losses) == best + 2 < 300, (told, losses)
assert abs(again["test_loss"] / min(losses) - 1) < 1e-6, (again, losses)
END
expect 0 "" mlp:16 --data digits --epochs 2 --patience 5
says "; the best was epoch "
says " with a loss of "

# The lowest loss is known to the file, and to who goes on from it: here all that follows is worse, at a rate that is far too large.
expect 0 "" mlp:64 --data digits --epochs 3 --patience 9 --export kept.safetensors --save part.safetensors --json
cp "$out" before.json
cp kept.safetensors kept.before
expect 0 "" mlp:64 --data digits --epochs 9 --patience 9 --lr 50 --resume part.safetensors --export kept.safetensors --json
cmp -s kept.safetensors kept.before || fail "a worse epoch behind --resume has taken the place of the best one's weights"
"$python" -c '
import json, sys
a, b = (json.load(open(path)) for path in sys.argv[1:])
assert a["best_epoch"] == b["best_epoch"] == 3 and a["best_loss"] == b["best_loss"] > 0 and b["epochs"] == 9, (a, b)' before.json "$out" 2>"$folder/why" ||
    fail "the lowest loss behind --resume: $(cat "$folder/why")"

# Nothing better came: another --export has nothing to hold, and the summary does not name it.
expect 0 "--export: other.safetensors is not written: epoch 3, of the run before, is still the best" mlp:64 --data digits --epochs 5 --patience 9 --lr 50 \
    --resume part.safetensors --export other.safetensors --save later.safetensors
grep -q "^  weights" "$out" && fail "the summary names weights that are not written"
[ -e other.safetensors ] && fail "weights that are not the best were exported"
# Who goes on without --patience keeps what the file knows.
expect 0 "" mlp:64 --data digits --epochs 6 --lr 50 --resume later.safetensors --save later.safetensors
expect 0 "" mlp:64 --data digits --epochs 7 --lr 50 --patience 9 --resume later.safetensors --json
"$python" -c 'import json, sys; o = json.load(open(sys.argv[1])); assert o["best_epoch"] == 3, o' "$out" 2>"$folder/why" || fail "the lowest loss behind a run without --patience: $(cat "$folder/why")"
# An epoch that the file cannot have is no memory.
"$python" - <<'END'
import json, struct
data = open("part.safetensors", "rb").read()
length = struct.unpack_from("<Q", data)[0]
header = json.loads(data[8:8 + length])
header["__metadata__"]["cltrain.note"] = json.dumps({"best_epoch": 1000000, "best_loss": -5})
text = json.dumps(header).encode()
text += b" " * (-len(text) % 8)
open("hostile.safetensors", "wb").write(struct.pack("<Q", len(text)) + text + data[8 + length:])
END
expect 0 "" mlp:64 --data digits --epochs 4 --patience 9 --resume hostile.safetensors --json
"$python" -c 'import json, sys; o = json.load(open(sys.argv[1])); assert o["best_epoch"] == 4, o' "$out" 2>"$folder/why" || fail "a note of nonsense: $(cat "$folder/why")"

# ---- tables ----

"$python" - <<'END'
import random
random.seed(1)
def write(path, names, classes, shift):
    with open(path, "w") as file:
        file.write(",".join(names) + ",kind\n")
        for i in range(120):
            c = i % len(classes)
            row = {"a": random.gauss(c, 0.3), "b": random.gauss(-c, 0.3), "c": random.gauss(0, 1)}
            file.write(",".join(f"{row[n] + shift:.6f}" for n in names) + f",{classes[c]}\n")
write("one.csv", "abc", ["cat", "dog"], 0)
write("shifted.csv", "cab", ["cat", "dog"], 3)
write("others.csv", "bac", ["cow", "pig"], 0)
write("numbered.csv", "abc", [1, 2], 0)
END
expect 0 "" logistic --data csv:one.csv --epochs 20 --lr 0.1 --export one.safetensors --save one.st
# Columns are found by their names, and the mean is the model's: data that are shifted by 3 are not the same.
expect 0 "" logistic --data csv:shifted.csv --epochs 0 --init one.safetensors --json
cp "$out" init.json
expect 0 "" logistic --data csv:shifted.csv --epochs 0 --resume one.st --json
"$python" -c '
import json, sys
a, b = (json.load(open(path)) for path in sys.argv[1:])
assert a["test_loss"] == b["test_loss"] > 0, (a, b)' init.json "$out" 2>"$folder/why" || fail "--init reads a table otherwise than --resume: $(cat "$folder/why")"
expect 1 "--init-matching reads them by themselves" logistic --data csv:others.csv --epochs 0 --init one.safetensors
expect 0 "warning: --init-matching: feature 0 is b, and in the training of one.safetensors it was a" logistic --data csv:others.csv --epochs 0 --init one.safetensors --init-matching
grep -q "warning: --init-matching: class 0 is cow, and in the training of one.safetensors it was cat" "$err" || fail "no word of classes of other names"
expect 2 "for classes that have other numbers, as 1 and 2, texts=COLUMN" logistic --data csv:numbered.csv --epochs 1
expect 0 "" logistic --data csv:numbered.csv,texts=kind --epochs 1
expect 1 "--freeze has to be what it was when the file was saved" logistic --data csv:one.csv --epochs 30 --resume one.st --freeze '*bias'

[ "$failures" -eq 0 ] || exit 1

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
def with_note(path, note, new):
    data = open(path, "rb").read()
    length = struct.unpack_from("<Q", data)[0]
    header = json.loads(data[8:8 + length])
    header["__metadata__"]["cltrain.note"] = json.dumps(note)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    open(new, "wb").write(struct.pack("<Q", len(text)) + text + data[8 + length:])
END

# ---- the values of another training ----

expect 0 "" convnet --data digits --epochs 2 --export first.safetensors --json
trained=$(grep '"test_' "$out")
expect 0 "" convnet --data digits --epochs 0 --init first.safetensors --json
[ "$(grep '"test_' "$out")" = "$trained" ] || fail "the weights of --init give another test"

expect 0 " of them trained" convnet --data digits --epochs 1 --init first.safetensors --freeze 'conv?.*,fc1.bias' --export second.safetensors --json
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
expect 0 "" mlp:32,32 --data digits --epochs 1 --seed 1 --export two.safetensors

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
says "best         epoch "
says ", with loss "

# The lowest loss is known to the file, and to who goes on from it: here all that follows is worse, at a rate that is far too large.
expect 0 "" mlp:64 --data digits --epochs 3 --patience 9 --export kept.safetensors --save part.safetensors --json
cp "$out" before.json
cp kept.safetensors kept.before
expect 0 "" mlp:64 --data digits --epochs 9 --patience 9 --lr 50 --resume part.safetensors --export kept.safetensors --json
cmp -s kept.safetensors kept.before || fail "a worse epoch after --resume has taken the place of the best one's weights"
"$python" -c '
import json, sys
a, b = (json.load(open(path)) for path in sys.argv[1:])
assert a["best_epoch"] == b["best_epoch"] == 3 and a["best_loss"] == b["best_loss"] > 0 and b["epochs"] == 9, (a, b)' before.json "$out" 2>"$folder/why" ||
    fail "the lowest loss after --resume: $(cat "$folder/why")"

# Nothing better came: another --export has nothing to hold, and the summary does not name it.
expect 0 "--export: other.safetensors is not written: epoch 3, of the run before, is still the best" mlp:64 --data digits --epochs 5 --patience 9 --lr 50 \
    --resume part.safetensors --export other.safetensors --save later.safetensors
grep -q "^  weights" "$out" && fail "the summary names weights that are not written"
[ -e other.safetensors ] && fail "weights that are not the best were exported"
# Who goes on without --patience keeps what the file knows.
expect 0 "" mlp:64 --data digits --epochs 6 --lr 50 --resume later.safetensors --save later.safetensors
expect 0 "" mlp:64 --data digits --epochs 7 --lr 50 --patience 9 --resume later.safetensors --json
"$python" -c 'import json, sys; o = json.load(open(sys.argv[1])); assert o["best_epoch"] == 3, o' "$out" 2>"$folder/why" || fail "the lowest loss after a run without --patience: $(cat "$folder/why")"
# An epoch that the file cannot have is no memory.
"$python" - <<'END'
from tensors import with_note
with_note("part.safetensors", {"best_epoch": 1000000, "best_loss": -5}, "hostile.safetensors")
END
expect 0 "" mlp:64 --data digits --epochs 4 --patience 9 --resume hostile.safetensors --json
"$python" -c 'import json, sys; o = json.load(open(sys.argv[1])); assert o["best_epoch"] == 4, o' "$out" 2>"$folder/why" || fail "a note of nonsense: $(cat "$folder/why")"

# Notes that tell no loss are no memory either; a first test that is not a number is not the best.
"$python" - <<'END'
from tensors import with_note
for i, note in enumerate(({"best_epoch": 1}, {"best_epoch": 1, "best_loss": "x"})):
    with_note("part.safetensors", note, f"odd{i}.safetensors")
with open("huge.csv", "w") as table:
    table.write("x,y\n" + "".join(f"{i},{2 * i}\n" for i in range(60)) + "1e30,1\n" * 40)
END
for i in 0 1; do
    expect 0 "" mlp:64 --data digits --epochs 4 --patience 9 --resume odd$i.safetensors --json
    "$python" -c 'import json, sys; o = json.load(open(sys.argv[1])); assert o["best_epoch"] == 4, o' "$out" 2>"$folder/why" || fail "a note without a loss: $(cat "$folder/why")"
done
"$program" linear --data csv:huge.csv,regression=1 --no-standardize --on-nonfinite skip --epochs 4 --patience 2 >"$out" 2>"$err"
grep -q "cannot be opened" "$err" && fail "a loss that is not a number is told as another error: $(cat "$err")"

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
expect 1 "--freeze and --lora have to be what they were when the file was saved" logistic --data csv:one.csv --epochs 30 --resume one.st --freeze '*bias'

# ---- a moving average ----

expect 0 "" mlp:32 --data digits --epochs 2 --ema 0.9 --lr 0.02 --export mean.safetensors --save mean.st --json
cp "$out" mean.json
grep -q '"ema": 0.9' mean.json || fail "the report does not tell the average"
expect 0 "" mlp:32 --data digits --epochs 0 --init mean.safetensors --json
[ "$(grep '"test_' "$out")" = "$(grep '"test_' mean.json)" ] || fail "the test is not of what is exported"
expect 0 "" mlp:32 --data digits --epochs 2 --lr 0.02 --export last.safetensors
"$python" -c '
from tensors import read
a, b, c = read("mean.safetensors"), read("mean.st"), read("last.safetensors")
assert all(b[name] == c[name] != a[name] for name in a), "the parameters themselves are those of a run without --ema"
assert all(b["cltrain.optimizer.average." + name] == a[name] for name in a), "the checkpoint has the average"' 2>"$folder/why" || fail "--ema: $(cat "$folder/why")"
expect 0 "" mlp:32 --data digits --epochs 0 --init mean.st --json
[ "$(grep '"test_' "$out")" = "$(grep '"test_' mean.json)" ] || fail "the weights of the checkpoint are not the average's"
expect 0 "" mlp:32 --data digits --epochs 4 --ema 0.9 --lr 0.02 --export whole.safetensors
expect 0 "" mlp:32 --data digits --epochs 4 --ema 0.9 --lr 0.02 --resume mean.st --export again.safetensors
cmp -s whole.safetensors again.safetensors || fail "a run that goes on has another average"
expect 1 "--ema has to be what it was when the file was saved" mlp:32 --data digits --epochs 4 --resume mean.st
# Both ranks test with the average, each on a half.
run="$(dirname "$program")/cltrain-run"
if [ -x "$run" ]; then
    two="mlp:32 --data digits --ema 0.9 --lr 0.02"
    for part in "--epochs 4" "--epochs 2 --save ranks.st" "--epochs 4 --resume ranks.st"; do
        # shellcheck disable=SC2086
        "$run" -q -n 2 -- "$program" $two $part --json >ranks.out 2>"$err" || fail "two ranks with --ema: $(tail -n 3 "$err")"
        [ -e whole.out ] || cp ranks.out whole.out
    done
    [ "$(grep '"test_' ranks.out)" = "$(grep '"test_' whole.out)" ] || fail "ranks that go on have another average: $(grep '"test_' ranks.out whole.out)"
fi
expect 0 "" mlp:32 --data digits --epochs 1 --save plain.st
expect 1 "--ema has to be what it was when the file was saved" mlp:32 --data digits --epochs 4 --resume plain.st --ema 0.9
refuse "--ema and --shard exclude each other" mlp --data digits --ema 0.9 --shard optimizer
refuse "--ema '1'" mlp --data digits --ema 1

# ---- adapters ----

expect 0 " parameters, and 1616 of adapters, which are trained" mlp:32,32 --data digits --epochs 3 --init two.safetensors --seed 1 \
    --lora rank=8,alpha=16,dropout=0.1,targets=fc1,f?2,fc3 --export merged.safetensors --export-lora made/adapter --save lora.st --json
cp "$out" adapted.json
"$python" - >"$folder/why" 2>&1 <<'END' || fail "adapters: $(cat "$folder/why")"
import json, os, struct
from tensors import read
told = json.load(open("adapted.json"))
a, b, c = read("two.safetensors"), read("merged.safetensors"), read("made/adapter/adapter_model.safetensors")
assert a.keys() == b.keys() and {name for name in a if a[name] != b[name]} == {"fc1.weight", "fc2.weight", "fc3.weight"}, "what is merged"
assert set(c) == {f"base_model.model.fc{i}.lora_{m}.weight" for i in (1, 2, 3) for m in "AB"}, c.keys()
config = json.load(open("made/adapter/adapter_config.json"))
assert (config["peft_type"], config["r"], config["lora_alpha"], config["bias"], config["fan_in_fan_out"]) == ("LORA", 8, 16, "none", False), config
assert config["target_modules"] == ["fc1", "fc2", "fc3"] and abs(config["lora_dropout"] - 0.1) < 1e-6, config
numbers = lambda data: struct.unpack(f"<{len(data) // 4}f", data)
w, made, m, n = numbers(a["fc3.weight"]), numbers(b["fc3.weight"]), numbers(c["base_model.model.fc3.lora_A.weight"]), numbers(c["base_model.model.fc3.lora_B.weight"])
for o in range(10):
    for i in range(32):
        assert abs(made[o * 32 + i] - w[o * 32 + i] - 2 * sum(n[o * 8 + r] * m[r * 32 + i] for r in range(8))) < 1e-6
assert told["trained_parameters"] == 8 * (64 + 32 + 32 + 32 + 32 + 10) == sum(len(v) // 4 for v in c.values()), told
END
# The model with the adapters merged, from the folder, and from the checkpoint: the same test.
trained=$(grep '"test_accuracy' adapted.json)
expect 0 "" mlp:32,32 --data digits --epochs 0 --seed 1 --init merged.safetensors --json
[ "$(grep '"test_accuracy' "$out")" = "$trained" ] || fail "the merged model gives another test"
expect 0 "" mlp:32,32 --data digits --epochs 0 --seed 1 --init two.safetensors --lora made/adapter --json
[ "$(grep '"test_accuracy' "$out")" = "$trained" ] || fail "the folder of adapters gives another test"
expect 0 "" mlp:32,32 --data digits --epochs 3 --seed 1 --resume lora.st --lora rank=8,alpha=16,dropout=0.1,targets=fc1,f?2,fc3 --json
[ "$(grep '"test_accuracy' "$out")" = "$trained" ] || fail "the checkpoint gives another test"
if "$python" -c 'import numpy' 2>/dev/null; then # the checkpoint alone tells its adapters
    "$python" -c 'import numpy as np; np.save("digits.npy", np.random.default_rng(0).random((5, 1, 8, 8)).astype("f4"))'
    expect 0 "" --predict digits.npy --from lora.st --output lora.csv
    expect 0 "" --predict digits.npy --from merged.safetensors --output merged.csv
    "$python" -c '
import csv
a, b = (list(csv.reader(open(name)))[1:] for name in ("lora.csv", "merged.csv"))
assert len(a) == 5 and all(abs(float(x) - float(y)) < 1e-4 for r, s in zip(a, b) for x, y in zip(r[1:], s[1:])), (a[0], b[0])' 2>"$err" || fail "adapters of a checkpoint predict otherwise: $(tail -1 "$err")"
fi
expect 1 "--freeze and --lora have to be what they were when the file was saved" mlp:32,32 --data digits --epochs 4 --seed 1 --resume lora.st --lora rank=8,targets=fc1
expect 1 "--freeze and --lora have to be what they were when the file was saved" mlp:32,32 --data digits --epochs 4 --seed 1 --resume lora.st
for given in "--epochs 4 --resume" "--epochs 0 --resume" "--epochs 1 --init"; do
    # shellcheck disable=SC2086
    expect 1 "was trained with adapters of alpha 16, not 9" mlp:32,32 --data digits --seed 1 $given lora.st --lora rank=8,alpha=9,dropout=0.1,targets=fc1,f?2,fc3
done
refuse "no linear layer is \"conv1\"" convnet --data digits --lora targets=conv1
refuse "no linear layer is \"fc9\", or ends with \".fc9\"" mlp --data digits --lora rank=4,targets=fc1,fc9
expect 1 "\"fc1.weight\" is adapted already" mlp --data digits --lora rank=4,targets=fc1,fc1
for spec in rank=4 rank=0,targets=fc1 alpha=0,targets=fc1 alpha=x,targets=fc1 dropout=1,targets=fc1 size=3,targets=fc1 rank=4,fc1; do
    refuse "expected rank=N[,alpha=X][,dropout=X],targets=LAYER,..." mlp --data digits --lora "$spec"
done
refuse "targets= names no layer" mlp --data digits --lora targets=
refuse "--lora and --freeze exclude each other" mlp --data digits --lora targets=fc1 --freeze 'fc1*'
refuse "--export-lora needs --lora" mlp --data digits --export-lora x
expect 1 "nowhere/adapter_config.json" mlp --data digits --lora nowhere
: >file
expect 1 "--export-lora" mlp --data digits --lora targets=fc1 --export-lora file

[ "$failures" -eq 0 ] || exit 1

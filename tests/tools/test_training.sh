#!/bin/sh
# test_training.sh PROGRAM PYTHON: what of cltrain-train chooses rates, epochs and samples, and what becomes of files that are there.
program=$1 python=$2 name=training
. "$(dirname "$0")/common.sh"
cd "$folder" || exit 1

# ---- which learning rate ----

expect 0 "" mlp:16 --data digits --optimizer sgd --lr-find
grep -q "^The loss falls fastest at --lr" "$out" || fail "--lr-find suggests nothing"
expect 0 "" mlp:16 --data digits --optimizer sgd --lr-find --json
json "$out" '1e-2 < o["suggested_lr"] < 5 and len(o["lr"]) == len(o["loss"]) > 50 and o["lr"][0] == 1e-7 and max(o["loss"][-3:]) > min(o["loss"])'
expect 0 "" mlp:16 --data digits --optimizer sgd --lr-find --json=found.json
[ -s found.json ] && [ ! -s "$out" ] || fail "--lr-find --json=FILE"
for other in "--save x" "--export x" "--log x" "--schedule cosine"; do
    # shellcheck disable=SC2086
    refuse "--lr-find and ${other% *} exclude each other" mlp:16 --data digits --lr-find $other
done

# ---- which epoch is the best ----

"$python" - <<'END'
import random
random.seed(1)
with open("rare.csv", "w") as table:
    table.write("a,b,kind\n")
    for i in range(600):
        rare = i % 12 == 0
        table.write(f"{random.gauss(1.5 if rare else 0, 1):.3f},{random.gauss(0, 1):.3f},{'rare' if rare else 'usual'}\n")
with open("numbers.csv", "w") as table:
    table.write("a,b,y\n")
    for i in range(200):
        a, b = random.gauss(0, 1), random.gauss(0, 1)
        table.write(f"{a:.3f},{b:.3f},{2 * a - b + random.gauss(0, 0.1):.3f}\n")
END
rare="mlp:8 --data csv:rare.csv,label=kind --lr 0.05 --batch 32 --epochs 30"
# shellcheck disable=SC2086
expect 0 "" $rare --patience 4 --monitor f1 --log f1.jsonl --save f1.safetensors --export best.safetensors --json
json "$out" 'o["stopped_early"] and 0 < o["best_f1"] <= 1 and "best_loss" not in o'
cp "$out" f1.json
"$python" - >why 2>&1 <<'END' || fail "--monitor f1: $(tail -n 1 why)"
import json
epochs = [o for o in map(json.loads, open("f1.jsonl")) if o["event"] == "epoch"]
end, f1 = json.load(open("f1.json")), [o["test_f1"] for o in epochs]
assert end["best_f1"] == max(f1) and end["best_epoch"] == 1 + f1.index(max(f1)) and len(f1) == end["best_epoch"] + 4, (end, f1)
END
expect 0 "" --test csv:rare.csv,label=kind --from best.safetensors --json
# A run that has stopped stays so, however often it is begun again; several ranks test it with any batch.
# shellcheck disable=SC2086
expect 0 "Nothing is left to train" $rare --patience 4 --monitor f1 --resume f1.safetensors --json
"$python" -c 'import json, sys; a, b = (json.load(open(p)) for p in sys.argv[1:]); assert (a["epochs"], a["best_f1"], a["test_loss"]) == (b["epochs"], b["best_f1"], b["test_loss"]), (a, b)' f1.json "$out" 2>why ||
    fail "a run that has stopped: $(tail -n 1 why)"
"$(dirname "$program")/cltrain-run" -q -n 2 -- "$program" mlp:8 --data csv:rare.csv,label=kind --evaluate f1.safetensors --batch 21 --json >"$out" 2>"$err" || fail "two ranks test a checkpoint"
"$python" -c 'import json, sys; a, b = (json.load(open(p)) for p in sys.argv[1:]); assert abs(a["test_loss"] - b["test_loss"]) < 1e-6, (a, b)
worst = [[(w["sample"], w["line"], w["truth"]) for w in o["test_worst"]] for o in (a, b)]
lines = open("rare.csv").read().split("\n")
assert worst[0] == worst[1] and all(lines[line - 1].endswith("," + kind) and line == sample + 2 for sample, line, kind in worst[0]), worst' f1.json "$out" 2>why || fail "what two ranks test: $(tail -n 1 why)"
(head -n 1 rare.csv; sed 1d rare.csv | sort) >moved.csv
expect 0 "if some were moved or replaced, the test sees samples that were trained on" mlp:8 --data csv:moved.csv,label=kind --evaluate f1.safetensors
expect 0 "" mlp:8 --data csv:rare.csv,label=kind --evaluate f1.safetensors
grep -q "were moved" "$err" && fail "the same lines are said to be others"
sed 's/^\(-*[0-9.]*\),\([^,]*\),usual/\2,\1,usual/' rare.csv >turned.csv # the same labels
expect 0 "if some were moved or replaced" mlp:8 --data csv:turned.csv,label=kind --evaluate f1.safetensors
# shellcheck disable=SC2086
expect 0 "Resumed" $rare --patience 6 --monitor f1 --resume f1.safetensors --json
"$python" -c 'import json, sys; a, b = (json.load(open(p)) for p in sys.argv[1:]); assert b["best_f1"] >= a["best_f1"] and b["epochs"] > a["epochs"]' f1.json "$out" ||
    fail "the best F1 is forgotten where a run goes on"
expect 0 "" linear --data csv:numbers.csv,regression=1 --epochs 5 --patience 5 --monitor r2 --save r2.st
says ", with r2 0.9"
expect 0 "" linear --data csv:numbers.csv,regression=1 --evaluate r2.st
grep -q "moved or replaced" "$err" && fail "the same numbers are said to be others"
(head -n 1 numbers.csv; sed 1d numbers.csv | sort) >moved.csv
expect 0 "if some were moved or replaced" linear --data csv:moved.csv,regression=1 --evaluate r2.st
# Epochs that were not compared are none without a better test.
slow="mlp:8 --data csv:rare.csv,label=kind --lr 0.0005 --batch 32 --seed 4 --save slow.st"
# shellcheck disable=SC2086
expect 0 "" $slow --epochs 2 --patience 2
# shellcheck disable=SC2086
expect 0 "Resumed" $slow --epochs 6 --resume slow.st
# shellcheck disable=SC2086
expect 0 "epoch 8/8" $slow --epochs 8 --resume slow.st --patience 2
# What gives no number is the worst of all.
printf '3e38,-3e38,3e38,3e38,0\n' >none.csv
for i in 1 2 3 4 5 6 7 8 9; do printf '%s,%s,1,1,1\n0.%s,0.5,1,1,0\n' "$i" "$i" "$i"; done >>none.csv
expect 0 "" mlp:64 --data csv:none.csv,header=0 --no-standardize --lr 1e-9 --epochs 1 --seed 1 --fold 1/2 --json
json "$out" 'o["test_loss"] is None and o["test_worst"][0] == {"sample": 0, "line": 1, "truth": 0, "predicted": None, "loss": None} and o["test_worst"][1]["loss"] > 0'
refuse "--monitor f1: there is none" linear --data csv:numbers.csv,regression=1 --epochs 5 --patience 5 --monitor f1
refuse "--monitor needs --patience" mlp --data digits --monitor f1
refuse "--monitor 'f2'" mlp --data digits --monitor f2 --patience 1

# The best weights of a run that is gone on with are there, or missed.
# shellcheck disable=SC2086
{
    best="$rare --monitor f1 --patience 30 --seed 5"
    expect 0 "" $best --stop-after 20 --save half.safetensors --export kept.safetensors --json
    expect 0 "" $best --epochs 21 --save half.safetensors --export kept.safetensors --resume auto
    rm -f kept.safetensors
    expect 0 "" $best --epochs 22 --save half.safetensors --export kept.safetensors --resume auto --json
    [ -e kept.safetensors ] || grep -q "kept.safetensors is not written: epoch" "$err" || fail "no word of weights that are not there"
}
expect 0 "" mlp:8 --data csv:rare.csv,label=kind --epochs 2 --patience 2 --monitor calibration_error --json
json "$out" 'o["best_calibration_error"] >= 0'

# ---- which samples are held out ----

for seed in 1 2 3 4 5; do
    expect 0 "" logistic --data csv:rare.csv,label=kind --epochs 1 --seed $seed --stratify --json
    json "$out" 'o["test_samples"] == 120 and sum(o["test_confusion"][o["classes"].index("rare")]) == 10'
done

expect 0 "" logistic --data csv:rare.csv,label=kind --epochs 1 --fold 2/6 --stratify --json
json "$out" 'o["test_samples"] == 100 and o["train_samples"] == 500'
# A model that has seen them is not tested on them.
expect 0 "" logistic --data csv:rare.csv,label=kind --epochs 1 --fold 2/6 --stratify --save fold.safetensors
expect 0 "" logistic --data csv:rare.csv,label=kind --epochs 2 --fold 2/6 --stratify --resume fold.safetensors
expect 2 "fold.safetensors was trained with another split of the data: --fold 2/6 --stratify, not --fold 3/6 --stratify" \
    logistic --data csv:rare.csv,label=kind --epochs 2 --fold 3/6 --stratify --resume fold.safetensors
expect 2 "another split of the data" logistic --data csv:rare.csv,label=kind --epochs 0 --batch 100 --fold 3/6 --stratify --resume fold.safetensors
expect 2 "another split of the data: --fold 2/6 --stratify, not --fold 2/6" logistic --data csv:rare.csv,label=kind --fold 2/6 --evaluate fold.safetensors
# What is exported tells its seed, too.
expect 0 "" logistic --data csv:rare.csv,label=kind --epochs 1 --seed 3 --export seed.safetensors
expect 0 "" logistic --data csv:rare.csv,label=kind --seed 3 --evaluate seed.safetensors
expect 2 "seed.safetensors was trained with --seed 3, not 4, which holds out other samples" logistic --data csv:rare.csv,label=kind --seed 4 --evaluate seed.safetensors
# So does the number of samples: of others, others are held out.
head -n 500 rare.csv >fewer.csv
expect 2 "seed.safetensors was trained where the data had 600 samples, not 499" logistic --data csv:fewer.csv,label=kind --seed 3 --evaluate seed.safetensors
refuse "--fold '6/5': expected I/K" logistic --data csv:rare.csv,label=kind --fold 6/5
for fold in 0/5 1/1 1 /5 1/ x/5 1/5x; do refuse "--fold '$fold': expected I/K" logistic --data digits --fold $fold; done

# Those of a patient are alike: a model that knows some of them knows the others.
"$python" - <<'END'
import random
random.seed(1)
with open("patients.csv", "w") as table:
    table.write("patient,a,b,c,d,sick\n")
    for patient in range(60):
        about = [random.gauss(0, 3) for _ in range(4)]
        for i in range(10):
            table.write(f"p{patient}," + ",".join(f"{random.gauss(x, 0.1):.3f}" for x in about) + f",{patient * 7 % 2}\n")
END
expect 0 "4 features (a, b, c, d)" mlp:64,64 --data csv:patients.csv,group=patient --epochs 60 --lr 0.01 --json
json "$out" 'o["test_samples"] == 120 and o["test_accuracy"] < 0.8 < o["train_accuracy"]'
expect 0 "" mlp:64,64 --data csv:patients.csv,drop=patient --epochs 60 --lr 0.01 --json
json "$out" 'o["test_accuracy"] > 0.9'
expect 1 "stratified cannot be made" mlp:64,64 --data csv:patients.csv,group=patient --stratify

for stream in 0 1; do
    expect 0 "" mlp:16 --data csv:patients.csv,group=patient,stream=$stream --epochs 4 --json=csv_$stream.json
done
"$python" -c 'import json; a, b = (json.load(open(f"csv_{i}.json")) for i in (0, 1)); assert abs(a["test_loss"] - b["test_loss"]) < 1e-4 and a["test_samples"] == b["test_samples"], (a, b)' 2>why ||
    fail "a table that is streamed: $(tail -n 1 why)"
grep -q "patients.csv is kept in a file in .*, and read batch by batch" "$err" || fail "no word of the file that a table is kept in"

# ---- a part for decisions, and one for the end ----

expect 0 "400 training, 100 validation and 100 test samples" mlp:16 --data csv:rare.csv,label=kind --fold 1/6 --validation 0.2 --epochs 12 --patience 3 --log parts.jsonl --json
json "$out" 'o["validation_samples"] == 100 and o["test_samples"] == 100 and sum(map(sum, o["test_confusion"])) == 100 and o["validation_loss"] != o["test_loss"]'
cp "$out" parts.json
"$python" - >why 2>&1 <<'END' || fail "--validation: $(tail -n 1 why)"
import json
events, end = list(map(json.loads, open("parts.jsonl"))), json.load(open("parts.json"))
epochs = [o for o in events if o["event"] == "epoch"]
losses = [o["validation_loss"] for o in epochs]
assert all("test_loss" not in o for o in epochs) and losses[-1] == end["validation_loss"], epochs[-1]
assert end["best_loss"] == min(losses) and "test_loss" in events[-1]
END
expect 0 "" mlp:16 --data digits --validation 0.1 --epochs 2
says "validation   loss"
says "test         loss"
if "$python" -c 'import numpy' 2>/dev/null; then
    "$python" -c 'import numpy as np
rng = np.random.default_rng(0)
y = rng.normal(size=(100, 1)) * 50 + 1000
np.save("xr.npy", np.hstack([y * 3 + 7, rng.normal(size=(100, 1))]).astype("f4")), np.save("yr.npy", y.astype("f4"))'
    expect 0 "" linear --data npy:xr.npy,yr.npy --validation 0.2 --epochs 60 --json
    json "$out" 'o["validation_mse"] < 100 and o["test_mse"] < 100'
fi
refuse "--validation '1': expected a number from 0 to below 1" mlp:16 --data digits --validation 1

# ---- what a model is made of ----

expect 0 "" convnet --data digits --summary --batch 64
grep -Eq '^conv1 +conv2d +\[64, 32, 8, 8\] +320 ' "$out" || fail "no line for conv1"
awk 'length > 80 { exit 1 }' "$out" || fail "--summary has lines of more than 80 characters"
says "A training step of 64 samples takes"
expect 0 "" convnet --data digits --summary --batch 64 --freeze 'conv1.*' --json
json "$out" 'o["layers"][0] == {"name": "conv1", "op": "conv2d", "shape": [64, 32, 8, 8], "parameters": 320, "trained_parameters": 0, "flops": o["layers"][0]["flops"]}'
json "$out" 'o["parameters"] == sum(l["parameters"] for l in o["layers"]) == o["trained_parameters"] + 320 and o["flops"] > sum(l["flops"] for l in o["layers"])'
json "$out" 'o["memory_bytes"]["total"] >= o["memory_bytes"]["activations"] + o["memory_bytes"]["states"] > 3 * 4 * o["trained_parameters"]'

# ---- rare classes ----

weights="logistic --data csv:rare.csv,label=kind --epochs 20 --lr 0.05 --batch 32"
# of CLASS: the part of it that is recognized.
recall() {
    "$python" -c 'import json, sys; o = json.load(open(sys.argv[1])); c = o["classes"].index("rare"); row = o["test_confusion"][c]; print(row[c] / sum(row))' "$out"
}
# shellcheck disable=SC2086
{
    expect 0 "" $weights --json
    plain=$(recall)
    expect 0 "" $weights --class-weights balanced --json
    weighted=$(recall)
    expect 0 "" $weights --balanced-sampling --json
    sampled=$(recall)
    expect 0 "" $weights --class-weights 1,1 --export ones.safetensors
    expect 0 "" $weights --export none.safetensors
    cmp -s ones.safetensors none.safetensors || fail "weights of 1 change the result"
    # Only their ratio counts; and neither a test's batch nor ranks change a loss.
    expect 0 "" $weights --class-weights 2,6 --json=wide.json
    expect 0 "" $weights --class-weights 1,3 --accumulate 2 --batch 16 --json=split.json --export split.safetensors
    "$(dirname "$program")/cltrain-run" -q -n 2 -- "$program" $weights --class-weights 1,3 --batch 16 --json=ranks.json >"$out" 2>"$err" || fail "class weights of two ranks"
    "$python" -c 'import json
a, b, c = (json.load(open(f"{n}.json")) for n in ("wide", "split", "ranks"))
for key in ("train_loss", "test_loss"): assert abs(a[key] - b[key]) < 1e-5 > abs(a[key] - c[key]), (key, a[key], b[key], c[key])' 2>why || fail "class weights: $(tail -n 1 why)"
    refuse "the classes of all training samples have the weight 0" $weights --class-weights 0,0
    refuse "--class-weights '1': expected balanced, or 2 numbers" $weights --class-weights 1
    refuse "--class-weights '1,2,3': expected balanced, or 2 numbers" $weights --class-weights 1,2,3
    refuse "--class-weights '1,-2'" $weights --class-weights 1,-2
}
"$python" -c "assert $weighted > $plain + 0.2 and $sampled > $plain + 0.2, ($plain, $weighted, $sampled)" 2>why || fail "rare classes are not found oftener: $(tail -n 1 why)"
refuse "--class-weights is for classes" linear --data csv:numbers.csv,regression=1 --class-weights balanced
refuse "--balanced-sampling is for classes" linear --data csv:numbers.csv,regression=1 --balanced-sampling

# ---- mixtures ----

# shellcheck disable=SC2086
{
    expect 0 "" convnet --data digits --epochs 4 --mixup 0.2 --cutmix 1 --json
    json "$out" '0.5 < o["test_accuracy"] and o["train_accuracy"] < o["test_accuracy"]'
    mixed="mlp:32 --data digits --epochs 4 --seed 1 --batch 32 --mixup 0.4"
    expect 0 "" $mixed --export one.safetensors
    expect 0 "" $mixed --data-threads 3 --export three.safetensors
    cmp -s one.safetensors three.safetensors || fail "the number of threads changes mixtures"
    expect 0 "" $mixed --stop-after 2 --save half.safetensors
    expect 0 "Resumed" $mixed --resume half.safetensors --export resumed.safetensors
    cmp -s one.safetensors resumed.safetensors || fail "a stop in between changes mixtures"
}
expect 0 "" mlp:32 --data digits --epochs 4 --seed 1 --batch 32 --export without.safetensors
cmp -s one.safetensors without.safetensors && fail "--mixup changes nothing"
refuse "--mixup is for classes" linear --data csv:numbers.csv,regression=1 --mixup 0.2
refuse "--class-weights and --mixup exclude each other" logistic --data digits --mixup 0.2 --class-weights balanced
expect 1 "cutmix is for samples [channels, height, width]" mlp:8 --data csv:rare.csv,label=kind --cutmix 1

# ---- 16 bits ----

for precision in bf16 f16; do
    expect 0 "" mlp:16 --data digits --epochs 10 --seed 1 --lr 0.01 --precision $precision --export $precision.safetensors --json
    json "$out" 'o["storage"] in ("bf16", "f16") and o["test_accuracy"] > 0.6 and o.get("loss_scale", 65536) == 65536'
done
expect 0 "" mlp:16 --data digits --epochs 10 --seed 1 --lr 0.01 --export f32.safetensors --json
json "$out" 'o["storage"] == "f32" and "loss_scale" not in o'
cmp -s f32.safetensors bf16.safetensors && fail "--precision bf16 changes nothing"
cmp -s f16.safetensors bf16.safetensors && fail "f16 and bf16 are the same"
refuse "--precision f16 leaves out updates that overflow: it does not go with --on-nonfinite other than skip" mlp:16 --data digits --precision f16 --on-nonfinite stop
refuse "--precision 'f8'" mlp:16 --data digits --precision f8
# Who goes on in another precision is told.
expect 0 "" mlp:16 --data digits --steps 3 --seed 1 --precision bf16 --save half.safetensors
expect 0 "half.safetensors was trained in bf16, and goes on in f32" mlp:16 --data digits --steps 5 --seed 1 --resume half.safetensors
expect 0 "" mlp:16 --data digits --steps 5 --seed 1 --precision bf16 --resume half.safetensors
grep -q "was trained in" "$err" && fail "the same precision is told of"

# ---- tests between ----

expect 0 "step 5/89  loss" logistic --data digits --epochs 1 --test-every 5 --log tests.jsonl
"$python" - >why 2>&1 <<'END' || fail "--test-every: $(tail -n 1 why)"
import json
events = list(map(json.loads, open("tests.jsonl")))
tests = [o for o in events if o["event"] == "test"]
assert [o["step"] for o in tests] == list(range(5, 89, 5)), tests
assert all(set(o) == {"event", "step", "test_loss", "test_accuracy"} for o in tests), tests
assert tests[-1]["test_loss"] < tests[0]["test_loss"]
END
expect 0 "" logistic --data digits --epochs 1 --test-every 5 --export with.safetensors
expect 0 "" logistic --data digits --epochs 1 --export without.safetensors
cmp -s with.safetensors without.safetensors || fail "tests change the training"

# ---- arrays that stay in their files ----

if "$python" -c 'import numpy' 2>/dev/null; then
    "$python" -c 'import numpy as np
rng = np.random.default_rng(0)
y = np.arange(300) % 3
np.save("x.npy", (rng.normal(size=(300, 5)) + 2 * np.eye(3, 5)[y]).astype("f4")), np.save("y.npy", y)'
    for stream in 0 1; do expect 0 "" mlp:8 --data npy:x.npy,y.npy,stream=$stream --epochs 4 --seed 2 --export stream_$stream.safetensors; done
    cmp -s stream_0.safetensors stream_1.safetensors || fail "what is streamed gives other weights"
    grep -q "x.npy is read batch by batch" "$err" || fail "no word of reading by batches"
    refuse "expected npy:X.npy,Y.npy[,layout=nchw|nhwc][,stream=0|1]" mlp --data npy:x.npy,y.npy,stream=2
    head -c 2000 x.npy >short.npy
    expect 1 "short.npy" mlp --data npy:short.npy,y.npy,stream=1
fi

# ---- files that are there ----

short="mlp:8 --data digits --epochs 1"
# shellcheck disable=SC2086
expect 0 "" $short --save a.safetensors --resume auto
cp a.safetensors first.safetensors
expect 0 "Resumed" mlp:8 --data digits --epochs 2 --save a.safetensors --resume auto
expect 0 "" mlp:8 --data digits --epochs 2 --save whole.safetensors
cmp -s a.safetensors whole.safetensors || fail "--resume auto gives other weights than one run"
refuse "--resume auto needs --save" mlp:8 --data digits --epochs 2 --resume auto
expect 0 "a.safetensors held another model (mlp:8), and is replaced" logistic --data digits --epochs 1 --save a.safetensors
"$python" - <<'END'
import json, struct
header = json.dumps({"w": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}).encode()
open("theirs.safetensors", "wb").write(struct.pack("<Q", len(header)) + header + bytes(4))
END
cp theirs.safetensors kept.safetensors
# shellcheck disable=SC2086
expect 1 "theirs.safetensors is there, and does not tell which model it is of: it is not replaced" $short --save theirs.safetensors
cmp -s theirs.safetensors kept.safetensors || fail "a file of another program was replaced"

# Of two runs with one file the second one to save finds that, and takes another name: but where both save at the same moment, which is tried again. timeout in the foreground hands SIGTERM
# on once, which is to save; a second one ends the program at once.
for try in 1 2 3; do
    rm -f both.safetensors*
    timeout --foreground 120 "$program" mlp:8 --data digits --epochs 1000000 --save both.safetensors --save-every 20000 >one.out 2>one.err </dev/null &
    child=$!
    await grep -qs "^epoch 3/" one.err || fail "no third epoch"
    # shellcheck disable=SC2086
    timeout 60 "$program" $short --save both.safetensors >"$out" 2>two.err </dev/null || fail "the second run fails"
    cp two.err "$err"
    await grep -qs "another program has written both.safetensors" one.err two.err && break
    kill $child
    wait $child
done
kill $child 2>/dev/null
wait $child
[ $try -le 3 ] && grep -q "is left as it is, and this run saves both.safetensors.[0-9]" one.err two.err || fail "two runs write one file"
[ "$(ls both.safetensors* | wc -l)" -eq 2 ] || fail "not a file for each of two runs: $(ls both.safetensors*)"
for file in both.safetensors*; do expect 0 "" mlp:8 --data digits --epochs 0 --resume "$file"; done

# What is there and is not a run's is not replaced.
for text in '{"name": "mine"}' '[1, 2]' "a,b"; do
    echo "$text" >mine.json
    expect 1 "mine.json' cannot be opened for writing: it is there, and is not the log of an earlier run" mlp:8 --data digits --epochs 1 --log mine.json
    [ "$(cat mine.json)" = "$text" ] || fail "--log replaces $text"
done
expect 0 "" mlp:8 --data digits --epochs 1 --log again.jsonl
expect 0 "again.jsonl was the log of an earlier run, and is replaced" mlp:8 --data digits --epochs 1 --log again.jsonl
cp kept.safetensors theirs.safetensors
expect 1 "theirs.safetensors is there, and does not tell which model" mlp:8 --data digits --epochs 1 --export theirs.safetensors

# One grammar: familiar names, and one model.
expect 0 "" mlp:8 --data digits --epochs 1 --json x.json
[ -s x.json ] || fail "--json FILE writes nothing"
refuse "one MODEL expected, but there are 'mlp:8' and --model 'convnet'" mlp:8 --model convnet --data digits
expect 0 "--clip-norm 0 clips nothing" mlp:8 --data digits --epochs 1 --clip-norm 0
refuse "--data 'rare.csv': did you mean csv:rare.csv?" mlp:8 --data rare.csv
expect 0 "" mlp:8 --data digits --epochs 1 --batch 32 --save batch.safetensors
expect 1 "was trained with 44 batches an epoch, not 205: expected as many samples and the same batch size; of these samples --batch 32 makes as many" \
    mlp:8 --data digits --epochs 2 --batch 7 --resume batch.safetensors
refuse "unknown option '--arch'" mlp:8 --data digits --arch x
grep -q "did you mean" "$err" && fail "--arch is taken for something else"
expect 1 "not a safetensors file but text" mlp:8 --data digits --resume rare.csv
if "$python" -c 'import numpy' 2>/dev/null; then
    "$python" -c 'import numpy as np; x = np.load("x.npy"); x[17, 2] = np.nan; np.save("holes.npy", x)'
    for how in "" --no-standardize; do
        # shellcheck disable=SC2086
        expect 1 "holes.npy: sample 17 (from 0), element 2 is nan: expected finite numbers" mlp:8 --data npy:holes.npy,y.npy,stream=1 --epochs 1 $how
    done
fi
# Lines of epochs fit a terminal, whatever they tell.
expect 0 "" mlp:8 --data csv:rare.csv,label=kind --epochs 12 --patience 9 --monitor average_precision
awk '/^epoch/ && length > 80 { exit 1 }' "$err" || fail "lines of epochs have more than 80 characters"
awk '!/^  device / && length > 80 { exit 1 }' "$out" || fail "the report has lines of more than 80 characters" # drivers name devices as they like
# A limit of memory is kept, and changes no bit; what does not fit tells what would.
expect 0 "" mlp:64 --data digits --batch 16 --steps 3 --seed 1 --save free.safetensors --json=free.json
expect 0 "" mlp:64 --data digits --batch 16 --steps 3 --seed 1 --memory-limit 100K --save tight.safetensors --json=tight.json
cmp free.safetensors tight.safetensors || fail "--memory-limit changes what is trained"
"$python" - <<'END' || fail "--memory-limit is not kept"
import json
free, tight = (json.load(open(f"{name}.json"))["peak_device_bytes"] for name in ("free", "tight"))
assert tight <= 100 * 1024 < free, (tight, free)
END
expect 1 "Less is needed with a smaller model, or a larger --memory-limit than 64K" mlp:64 --data digits --memory-limit 64K
small="convnet --data synthetic:3x32x32,classes=10,n=256 --optimizer adamw --memory-limit"
expect 1 "a training step of 64 samples takes" $small 18M --batch 64
fits=$(sed -n 's/.*with a --batch of \([0-9]*\), of which --accumulate.*larger --memory-limit than 18M$/\1/p' "$err")
expect 0 "" $small 18M --batch "${fits:-256}" --steps 2
expect 1 "a training step of 64 samples takes" $small 18M --batch 64 --summary
expect 0 "" $small 18M --batch "${fits:-256}" --summary --json
json "$out" '0 < o["memory_bytes"]["total"] <= 18 << 20 and o["memory_bytes"]["host"] > 0'
expect 1 "--offload auto" mlp:300,300 --data digits --batch 16 --steps 1 --offload none --memory-limit 1600K
# Ranks offload alike: what has no room on one of them.
"$(dirname "$program")/cltrain-run" -q -n 2 -- "$program" convnet --data digits --batch 16 --steps 2 --memory-limit 1100K --json=ranks.json >"$out" 2>"$err" || fail "two ranks within a limit"
"$python" -c 'import json; assert json.load(open("ranks.json"))["peak_device_bytes"] <= 1100 << 10' || fail "two ranks go beyond a limit"
# An average takes the parameters' place where there is no room for a third.
expect 0 "" mlp:300,300 --data digits --batch 16 --steps 3 --seed 1 --ema 0.9 --json=free.json --export free.safetensors
expect 0 "" mlp:300,300 --data digits --batch 16 --steps 3 --seed 1 --ema 0.9 --memory-limit 2500K --json=tight.json --export tight.safetensors
cmp free.safetensors tight.safetensors || fail "--memory-limit changes the average"
"$python" -c 'import json; assert json.load(open("tight.json"))["peak_device_bytes"] <= 2500 << 10' || fail "--ema goes beyond --memory-limit"
refuse "--memory-limit 2X" mlp:8 --data digits --memory-limit 2X
[ "$failures" -eq 0 ]

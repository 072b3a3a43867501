#!/bin/sh
# test_config.sh PROGRAM PYTHON: cltrain-train --config FILE: the same as on the command line, which goes over it.
program=$1 python=$2 name=config
. "$(dirname "$0")/common.sh"
cd "$folder" || exit 1

cat >all.json <<'END'
{"model": "mlp:16", "data": "digits", "epochs": 2, "learning-rate": 0.02, "optimizer": "sgd", "momentum": 0.9, "nesterov": true,
 "quiet": false, "device": null, "seed": 3, "export": "by_file.safetensors"}
END
expect 0 "epoch 2/2" --config all.json
expect 0 "epoch 2/2" mlp:16 --data digits --epochs 2 --lr 0.02 --optimizer sgd --momentum 0.9 --nesterov --seed 3 --export by_line.safetensors
cmp -s by_file.safetensors by_line.safetensors || fail "a file of options gives other weights than the options"
expect 0 "epoch 1/1" --config=all.json -e 1
expect 0 "epoch 1/1" logistic --epochs=1 --config all.json --json
"$python" -c 'import json, sys; o = json.load(open(sys.argv[1])); assert o["model"] == "logistic" and o["momentum"] == 0.9, o' "$out" || fail "the command line does not go over the file"
refuse "one MODEL expected" logistic mlp --config all.json

# The log of a run has its options, and those of the file: it can be repeated.
expect 0 "" --config all.json --epochs 3 --export first.safetensors --log run.jsonl
echo '{"model": "linear"}' >all.json # which was changed since
expect 0 "epoch 3/3" --config run.jsonl --export again.safetensors --log again.jsonl
cmp -s first.safetensors again.safetensors || fail "a run that is repeated by its log gives other weights"
"$python" -c 'import json, sys
a, b = (json.loads(open(f"{n}.jsonl").readline())["config"] for n in ("run", "again"))
assert a.pop("export") == "first.safetensors" and b.pop("export") == "again.safetensors" and a.pop("log") == "run.jsonl" and b.pop("log") == "again.jsonl"
assert a == b and a["epochs"] == 3 and a["lr"] == 0.02 and a["nesterov"] is True and "device" not in a and "config" not in a, a' 2>why || fail "the options in a log: $(tail -n 1 why)"
# Of a run in two parts it is the whole that is repeated: from the first values to the last step.
two="mlp:16 --data digits --batch 64 --seed 3 --log two.jsonl --save two.st"
# shellcheck disable=SC2086
expect 0 "" $two --steps 10
# shellcheck disable=SC2086
expect 0 "Resumed" $two --steps 30 --resume two.st --export first.safetensors
# The metrics of the epoch are those of all of it.
expect 0 "" --config two.jsonl --log once.jsonl --save once.st --export again.safetensors
says "1 epoch, 30 steps"
grep -q Resumed "$err" && fail "a run that is repeated begins anew"
cmp -s first.safetensors again.safetensors || fail "a run in two parts that is repeated gives other weights"
"$python" -c 'import json, sys
a, b = ([o for o in map(json.loads, open(f"{n}.jsonl")) if o["event"] == "epoch"] for n in ("two", "once"))
assert len(a) == len(b) == 1 and abs(a[0]["train_loss"] / b[0]["train_loss"] - 1) < 1e-6 and a[0]["train_accuracy"] == b[0]["train_accuracy"], (a, b)' 2>why || fail "an epoch in two parts: $(tail -n 1 why)"
# What the parts have otherwise cannot be repeated; nor can what began with a file that is another one now.
# shellcheck disable=SC2086
expect 0 "Resumed" $two --steps 35 --resume two.st --lr 0.5
refuse 'two.jsonl: the parts of the run differ in "lr"' --config two.jsonl
# shellcheck disable=SC2086
expect 0 "Resumed" ${two%% --log*} --log late.jsonl --save two.st --steps 40 --resume two.st
refuse "the run went on from a file that it has saved over" --config late.jsonl
expect 0 "" mlp:16 --data digits --init first.safetensors --steps 2 --log of_init.jsonl --save of_init.st
expect 0 "Resumed" mlp:16 --data digits --resume auto --steps 4 --log of_init.jsonl --save of_init.st --export first_init.safetensors
expect 0 "" --config of_init.jsonl --log again.jsonl --save again.st --export again_init.safetensors
cmp -s first_init.safetensors again_init.safetensors || fail "a run with --init that is repeated gives other weights"
printf '{"event":"start",' >half.jsonl
refuse "half.jsonl" --config half.jsonl

# bad TEXT WORDS
bad() {
    printf '%s' "$1" >bad.json
    refuse "$2" --config bad.json
}
bad '{"epohcs": 2}' "unknown option '--epohcs=2': did you mean --epochs?"
bad '{"epohcs": 2}' 'bad.json: "epohcs": not an option, or not a value of it'
bad '{"epochs": "two"}' "--epochs 'two': expected a whole number"
bad '{"epochs": 2.5}' 'bad.json: "epochs"'
bad '{"data": ["digits"]}' '"data": expected a text, a number, true or false'
bad '{"nesterov": "yes"}' "--nesterov takes no value"
bad '{"config": "all.json"}' '"config": a file of options names no other'
bad '{"lr": 1, "lr": 2}' "bad.json, line 1"
bad '{"lr": 1' "bad.json, line 1"
bad '[1]' "expected a JSON object"
bad '' "bad.json"
bad '{"": 1}' "bad.json"
refuse "nowhere.json" --config nowhere.json
refuse "is not a regular file" --config .
truncate -s 2M large.json
refuse "larger than 1 MiB" --config large.json
refuse "--config needs a value" mlp --config
[ "$failures" -eq 0 ]

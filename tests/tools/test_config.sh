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

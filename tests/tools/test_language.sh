#!/bin/sh
# cltrain-train on text: a language model learns, its validation loss is reported, and what does not go together is refused.
#
#     test_language.sh PROGRAM PYTHON3
program=$1
python=$2
name=language
. "$(dirname "$0")/common.sh"

awk 'BEGIN { for (i = 0; i < 400; i++) printf "the cat sat on the mat, and so did the hat. " }' >"$folder/text.txt"

# value KEY: of the JSON on stdout.
value() {
    "$python" -c 'import json, sys; print(json.load(open(sys.argv[1]))[sys.argv[2]])' "$out" "$1"
}

expect 0 "" gpt2:2/2/32 --data "text:$folder/text.txt,tokenizer=chars,context=16" --steps 60 --lr 3e-3 --json --save "$folder/model.safetensors"
[ "$(value parameters)" -lt 40000 ] || fail "the vocabulary is not that of the characters: $(value parameters) parameters"
"$python" -c 'import sys; sys.exit(not 0 < float(sys.argv[1]) < 1.5)' "$(value validation_loss)" || fail "a validation loss of $(value validation_loss)"
"$python" -c 'import sys; sys.exit(not 0.4 < float(sys.argv[1]) <= 1)' "$(value validation_accuracy)" || fail "an accuracy of $(value validation_accuracy)"

# The same again from the checkpoint: nothing is left to train, and the loss is the same.
"$python" -c 'import math, sys; a, b = map(float, sys.argv[1:]); sys.exit(abs(math.exp(a) / b - 1) > 1e-6)' "$(value validation_loss)" "$(value validation_perplexity)" || fail "perplexity is not exp(loss)"
loss=$(value validation_loss)
expect 0 "" gpt2:2/2/32 --data "text:$folder/text.txt,tokenizer=chars,context=16" --steps 60 --lr 3e-3 --json --resume "$folder/model.safetensors"
[ "$(value validation_loss)" = "$loss" ] || fail "a resumed model's loss is $(value validation_loss), not $loss"

expect 0 "" gpt2:1/1/8 --data "text:$folder/text.txt,context=8" --epochs 2 --patience 2 --monitor perplexity
expect 0 "validation samples" gpt2:1/1/8 --data "text:$folder/text.txt,context=8" --steps 2
says "validation   loss"

expect 0 "" lstm:1/32 --data "text:$folder/text.txt,tokenizer=chars,context=8" --steps 60 --lr 1e-2 --json
"$python" -c 'import sys; sys.exit(not 0 < float(sys.argv[1]) < 1.8)' "$(value validation_loss)" || fail "a recurrent model's validation loss of $(value validation_loss)"

# As an ONNX file it goes on being a language model.
expect 0 "" gpt2:2/2/32 --data "text:$folder/text.txt,tokenizer=chars,context=16" --steps 20 --json --export "$folder/model.onnx"
loss=$(value validation_loss)
expect 0 "" "$folder/model.onnx" --data "text:$folder/text.txt,tokenizer=chars,context=16" --epochs 0 --json
"$python" -c 'import sys; a, b = map(float, sys.argv[1:]); sys.exit(abs(a / b - 1) > 1e-5)' "$(value validation_loss)" "$loss" || fail "an exported model's loss is $(value validation_loss), not $loss"
expect 0 "" "$folder/model.onnx" --data "text:$folder/text.txt,tokenizer=chars,context=16" --steps 40 --lr 3e-3 --json
"$python" -c 'import sys; a, b = map(float, sys.argv[1:]); sys.exit(not a < b)' "$(value validation_loss)" "$loss" || fail "an exported model does not learn: $(value validation_loss) after $loss"
expect 2 "model.onnx reads i32 [" "$folder/model.onnx" --data "text:$folder/text.txt,tokenizer=chars,context=8"
expect 1 "the model was trained on samples i32 [16]" "$folder/model.onnx" --data digits

# ---- what makes no sense ----

expect 2 "needs --data text:FILE" gpt2:nano --data digits
expect 2 "needs --data text:FILE" mlp --data "text:$folder/text.txt"
expect 2 "LAYERS/HEADS/WIDTH" gpt2:3/5/64 --data "text:$folder/text.txt"
expect 2 "LAYERS/WIDTH with up to 64 layers" lstm:3/5/64 --data "text:$folder/text.txt"
expect 2 "text:FILE" gpt2:nano --data "text:$folder/text.txt,context=0"
expect 2 "text:FILE" gpt2:nano --data "text:$folder/text.txt,words=3"
expect 1 "cannot" gpt2:nano --data "text:$folder/missing.txt"
expect 1 "at least 100001" gpt2:nano --data "text:$folder/text.txt,context=100000"
echo '{"model": {"type": "Unigram"}}' >"$folder/tokenizer.json"
expect 1 "model 'Unigram' is not supported" gpt2:nano --data "text:$folder/text.txt,tokenizer=$folder/tokenizer.json"
expect 1 "no tokenizer" gpt2:nano --data "text:$folder/text.txt,tokenizer=gpt2"

[ $failures -eq 0 ] || { echo "$failures failed"; exit 1; }
echo "all passed"

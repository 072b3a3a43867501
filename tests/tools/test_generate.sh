#!/bin/sh
# test_generate.sh GENERATE TRAIN PYTHON: a model that cltrain-train made goes on with a text, from its file and from a folder.
program=$1 train=$2 python=$3 name=generate
. "$(dirname "$0")/common.sh"
cd "$folder" || exit 1

"$python" -c 'print(("the quick brown fox jumps over the lazy dog. " * 8 + "\n") * 20, end="")' >text.txt
"$train" gpt2:2/2/32 --data text:text.txt,tokenizer=chars,context=48 --steps 200 --batch 4 --lr 6e-3 --export fox.safetensors -q --json >"$out" 2>"$err" ||
    fail "no model is trained"

expect 0 "fox.safetensors (" fox.safetensors --tokenizer chars:text.txt --prompt "the quick " --tokens 20 --temperature 0
[ "$(cat "$out")" = "the quick brown fox jumps over" ] || fail "another text"
expect 0 "" fox.safetensors --tokenizer chars:text.txt --prompt "the quick " --tokens 20 --temperature 0 --json
cp "$out" greedy.json
"$python" - <<'END' >"$folder/why" 2>&1 || fail "the JSON: $(cat "$folder/why")"
import json
o = json.load(open("greedy.json"))
assert o["text"] == "brown fox jumps over" and len(o["ids"]) == 20 and o["prompt_tokens"] == 10 and o["tokens_per_second"] > 0, o
letters = sorted(set(open("text.txt").read()))
assert "".join(letters[i] for i in o["ids"]) == o["text"]
open("ids", "w").write(",".join(str(letters.index(c)) for c in "the quick "))
open("made", "w").write(",".join(map(str, o["ids"])))
END

# The file has the tokenizer; what another program wrote may have none.
expect 0 "" fox.safetensors --prompt "the quick " --tokens 20 --temperature 0
[ "$(cat "$out")" = "the quick brown fox jumps over" ] || fail "another text by the tokenizer of the file"
"$python" - <<'END'
import json, struct
data = open("fox.safetensors", "rb").read()
length = struct.unpack_from("<Q", data)[0]
header = json.loads(data[8:8 + length])
del header["__metadata__"]["cltrain.tokenizer"]
text = json.dumps(header).encode()
open("bare.safetensors", "wb").write(struct.pack("<Q", len(text)) + text + data[8 + length:])
header["__metadata__"]["cltrain.tokenizer"] = "{\"model\": {\"type\": \"Unigram\"}}"
text = json.dumps(header).encode()
open("odd.safetensors", "wb").write(struct.pack("<Q", len(text)) + text + data[8 + length:])
END
expect 1 "odd.safetensors: metadata \"cltrain.tokenizer\"" odd.safetensors --prompt x

# As tokens alone; a seed's text is the same each time.
expect 0 "" bare.safetensors --prompt-ids "$(cat ids)" --tokens 20 --temperature 0 -q
[ "$(cat "$out")" = "$(cat made)" ] || fail "other tokens"
[ -s "$err" ] && fail "--quiet is not quiet"
for seed in 1 1 2; do
    expect 0 "" fox.safetensors --tokenizer chars:text.txt --prompt "t" --tokens 40 --temperature 2 --seed $seed
    cp "$out" "drawn$seed.$(ls | grep -c drawn)"
done
cmp -s drawn1.0 drawn1.1 || fail "the same seed gives another text"
cmp -s drawn1.0 drawn2.2 && fail "another seed gives the same text"
expect 0 "" fox.safetensors --tokenizer chars:text.txt --prompt "the quick " --tokens 20 --top-k 1
[ "$(cat "$out")" = "the quick brown fox jumps over" ] || fail "--top-k 1 is not the likeliest"

# The same weights as a folder of save_pretrained.
mkdir hf && cp bare.safetensors hf/model.safetensors
cat >hf/config.json <<'END'
{"model_type": "gpt2", "vocab_size": VOCABULARY, "n_positions": 48, "n_embd": 32, "n_layer": 2, "n_head": 2, "activation_function": "gelu_new", "eos_token_id": DOT}
END
"$python" - <<'END'
letters = sorted(set(open("text.txt").read()))
text = open("hf/config.json").read().replace("VOCABULARY", str(len(letters))).replace("DOT", str(letters.index(".")))
open("hf/config.json", "w").write(text)
END
expect 0 "" hf --prompt-ids "$(cat ids)" --tokens 20 --temperature 0
[ "$(cat "$out")" = "$(cat made)" ] || fail "the folder gives other tokens"
# The same in two files, of half the bits, without the names' heads.
"$python" - <<'END'
import json, os, shutil, struct
data = open("bare.safetensors", "rb").read()
length = struct.unpack_from("<Q", data)[0]
header = json.loads(data[8:8 + length])
header.pop("__metadata__", None)
def write(path, names, halves, head):
    facts, out = {}, b""
    for name in names:
        begin, end = header[name]["data_offsets"]
        values = data[8 + length + begin:8 + length + end]
        if halves: # bf16 by leaving bits out
            values = b"".join(values[i + 2:i + 4] for i in range(0, len(values), 4))
        facts[name[head:]] = {"dtype": "BF16" if halves else "F32", "shape": header[name]["shape"], "data_offsets": [len(out), len(out) + len(values)]}
        out += values
    text = json.dumps(facts).encode()
    open(path, "wb").write(struct.pack("<Q", len(text)) + text + out)
names = sorted(header)
for folder, halves, head in ("shards", False, 0), ("halves", True, len("transformer.")):
    os.mkdir(folder)
    shutil.copy("hf/config.json", folder)
    parts = names[::2], names[1::2]
    for i, part in enumerate(parts):
        write(f"{folder}/model-{i}.safetensors", part, halves, head)
    where = {name[head:]: f"model-{i}.safetensors" for i, part in enumerate(parts) for name in part}
    json.dump({"metadata": {"total_size": 0}, "weight_map": where}, open(f"{folder}/model.safetensors.index.json", "w"))
END
expect 0 "" shards --prompt-ids "$(cat ids)" --tokens 20 --temperature 0
[ "$(cat "$out")" = "$(cat made)" ] || fail "two files give other tokens"
expect 0 "" halves --tokenizer chars:text.txt --prompt "the quick " --tokens 9 --temperature 0
[ "$(cat "$out")" = "the quick brown fox" ] || fail "files of bf16 give another text"
head -c 3000 shards/model-1.safetensors >part && mv part shards/model-1.safetensors
expect 1 "shards/model-1.safetensors" shards --prompt-ids 1

expect 0 "" hf --tokenizer chars:text.txt --prompt "lazy " --tokens 30 --temperature 0 # up to its end
[ "$(cat "$out")" = "lazy dog" ] || fail "the end token does not end the text"

# A recurrent model, which has no positions to run out of.
"$train" lstm:1/64 --data text:text.txt,tokenizer=chars,context=24 --steps 150 --batch 8 --lr 2e-2 --export state.safetensors -q --json >"$out" 2>"$err" ||
    fail "no recurrent model is trained"
expect 0 "state.safetensors (" state.safetensors --prompt "the quick " --tokens 124 --temperature 0
grep -q positions "$err" && fail "positions of a recurrent model"
[ "$(cat "$out")" = "the quick brown fox jumps over the lazy dog. the quick brown fox jumps over the lazy dog. the quick brown fox jumps over the lazy dog." ] || fail "the state's text: $(cat "$out")"

# Adapters that learn another order of the same words, beside the model and merged into it.
"$python" -c 'print(("the lazy dog jumps over the quick brown fox. " * 8 + "\n") * 20, end="")' >other.txt
"$train" gpt2:2/2/32 --data text:other.txt,tokenizer=chars,context=48 --steps 60 --batch 4 --lr 2e-2 --init fox.safetensors --lora rank=8,targets=c_attn,c_proj,c_fc \
    --export dog.safetensors --export-lora dog -q --json >"$out" 2>"$err" || fail "no adapters are trained: $(cat "$err")"
for given in "fox.safetensors --lora dog" "hf --tokenizer chars:text.txt --lora dog" dog.safetensors; do
    # shellcheck disable=SC2086
    expect 0 "" $given --prompt "the lazy " --tokens 14 --temperature 0
    [ "$(cat "$out")" = "the lazy dog jumps over" ] || fail "$given: $(cat "$out")"
done
expect 0 "" fox.safetensors --prompt "over the " --tokens 8 --temperature 0
[ "$(cat "$out")" = "over the lazy dog" ] || fail "the model has changed, and not its adapters"
expect 1 "nowhere/adapter_config.json" fox.safetensors --lora nowhere --prompt x

# ---- what does not fit ----

refuse "no model given" --prompt x
refuse "expected --prompt TEXT or --prompt-ids" fox.safetensors
refuse "expected --prompt TEXT or --prompt-ids" fox.safetensors --prompt x --prompt-ids 1
refuse "--prompt needs a tokenizer: bare.safetensors has none" bare.safetensors --prompt x
refuse "--prompt-ids '1,x': expected tokens from 0 to" fox.safetensors --prompt-ids 1,x
refuse "--prompt-ids '1,99999': expected tokens from 0 to" fox.safetensors --prompt-ids 1,99999
refuse "--top-p" fox.safetensors --prompt-ids 1 --top-p 2
refuse "there are 'a' and 'b'" a b --prompt x
expect 1 "nowhere cannot be read" nowhere --prompt-ids 1
expect 1 "40 tokens after 10 are more than the model's 48 positions" fox.safetensors --prompt-ids "$(cat ids)" --tokens 40
expect 1 "the tokenizer has 256 tokens, the model" fox.safetensors --tokenizer bytes --prompt x
expect 1 "--prompt" fox.safetensors --tokenizer chars:text.txt --prompt "ZEBRA"
"$train" logistic --data digits --epochs 1 --export digits.safetensors -q >"$out" 2>"$err" || fail "logistic"
expect 1 "digits.safetensors holds logistic: expected a language model" digits.safetensors --prompt-ids 1
sed 's/gelu_new/relu/' hf/config.json >other && mkdir relu && mv other relu/config.json && cp fox.safetensors relu/model.safetensors
expect 1 "\"activation_function\" is \"relu\": expected gelu_new" relu --prompt-ids 1
sed 's/"n_embd": 32/"n_embd": 64/' hf/config.json >other && mkdir wide && mv other wide/config.json && cp fox.safetensors wide/model.safetensors
expect 1 "\"transformer.wte.weight\" is F32" wide --prompt-ids 1
mkdir empty
expect 1 "config.json" empty --prompt-ids 1
head -c 3000 fox.safetensors >cut.safetensors
expect 1 "cut.safetensors" cut.safetensors --prompt-ids 1
if [ -w /dev/full ]; then
    "$program" fox.safetensors --prompt-ids 1 --tokens 3 >/dev/full 2>"$err" && fail "a full disk is not told"
fi
expect 0 "" --help
says "Usage: cltrain-generate"
expect 0 "" --version
says "cltrain-generate "

[ "$failures" -eq 0 ] || exit 1

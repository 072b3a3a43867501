#!/bin/sh
# cltrain-probe's command line: commands, options, exit codes, tables, JSON, and what is kept between runs.
#
#     test_probe.sh PROGRAM [PYTHON3]
#
# Without Python the JSON is not read.
program=$1
python=${2-}
name=probe
. "$(dirname "$0")/common.sh"
export XDG_CACHE_HOME="$folder/cache"
export CLTRAIN_TUNE=quick
export POCL_CACHE_DIR="${POCL_CACHE_DIR:-$folder/pocl}" # else it would be below XDG_CACHE_HOME
mkdir -p "$POCL_CACHE_DIR"

# json EXPRESSION: what was printed last is one object o for which it holds.
json() {
    [ -z "$python" ] && return
    "$python" -c '
import json, sys
o = json.load(open(sys.argv[1], encoding="utf-8"))
assert eval(sys.argv[2]), o' "$out" "$1" 2>"$err" || fail "JSON: $1"
}

# ---- the command line ----

for command in "" list bench compare verify shapes tune backends comm; do
    # shellcheck disable=SC2086
    "$program" $command --help >"$out" 2>"$err" || fail "$command --help gave $?"
    says "Usage: cltrain-probe"
    awk 'length > 80 { exit 1 }' "$out" || fail "$command --help has lines of more than 80 characters"
done
for option in --budget --model --sample --batch --classes --device --json; do
    "$program" tune --help | grep -qF -- "$option" || fail "tune --help does not name $option"
done
"$program" --version >"$out" 2>"$err" || fail "--version gave $?"
grep -Eq '^cltrain-probe [0-9]+\.[0-9]+\.[0-9]+$' "$out" || fail "--version"

refuse "unknown command 'tuna'" tuna
refuse "unknown option '--model'" --model convnet
refuse "Try 'cltrain-probe list --help'." --model convnet
refuse "Try 'cltrain-probe bench --help'." bench --frobnicate
refuse "Try 'cltrain-probe --help'." tuna
refuse "unexpected word 'bench'" --json bench
refuse "did you mean --budget?" tune --budge 3
refuse "--budget '0': expected a number above 0" tune --budget 0
refuse "--budget '1e308': expected at most" tune --budget 1e308
refuse "--budget 'nan': expected a number above 0" tune --budget nan
refuse "--batch 'x': expected a whole number" tune --batch x
refuse "unexpected word 'convnet': the model is 'mlp'" tune mlp convnet
refuse "unexpected word 'convnet': the model is 'mlp'" shapes --model mlp convnet
refuse "unknown model 'vgg'" backends vgg
refuse "unknown model 'vgg'" tune --model vgg
refuse "--sample '3x': expected sizes" tune --sample 3x
refuse "convnet needs images" tune --model convnet --sample 784
refuse "does not fit" backends --model convnet --sample 1x1x1
refuse "unknown option '--frobnicate'" backends --frobnicate
expect 1 "matches none" tune --device no-such-device
expect 1 "matches none" backends --device no-such-device
refuse "no such op" backends --op conv3d
refuse "expected list, bench, compare, report, verify, model, recommend, shapes, tune, backends, simulate or comm" tuna

# ---- backends ----

shape="--model mlp:96 --sample 80 --batch 64"
# shellcheck disable=SC2086
{
    expect 0 "" backends $shape
    says "op                       backend        needs"
    says "matmul 64x80 96x80^T -> 64x96"
    says "only one"
    expect 0 "" backends $shape --op matmul
    grep -q softmax "$out" && fail "--op matmul shows others"
    CLTRAIN_BACKENDS=reference expect 0 "" backends --op matmul $shape
    CLTRAIN_BACKENDS=-native expect 0 "" backends --op matmul $shape
    says "masked by CLTRAIN_BACKENDS"
    expect 0 "" backends --json $shape
    CLTRAIN_BACKENDS=reference expect 0 "" backends --op conv2d convnet
    grep '^conv2d k3' "$out" | grep -q 'not .*: \(.*\); .*not .*: \1;' && fail "a reason is repeated"
    grep '^conv2d k3' "$out" | grep -q 'not [^:]*, [^:]*: ' || fail "rows refused for one reason are not together"
    expect 0 "" backends --json $shape
    json 'any(r["op"] == "matmul" and r["backend"] == "reference" for r in o["rows"])'
    json 'all(p["why"] in ("only one", "default", "shipped", "nearest shipped") for p in o["problems"])'
    json 'all(p["backend"] in [r["backend"] for r in p["rows"] if r["refusal"] is None] for p in o["problems"])'
}
[ -e "$folder/cache/cltrain/programs" ] && fail "looking built programs"

# ---- tune ----

# shellcheck disable=SC2086
{
    expect 0 "Tuning mlp:96 64x80" tune --budget 1000 $shape # enough for all on any machine
    says "default us"
    says "known before"
    # Where one row alone fits there is nothing to tune.
    if grep -q ' 0 measured' "$out"; then
        grep -q '^0 problems' "$out" || fail "problems, but none measured"
    else
        file=$(ls "$folder"/cache/cltrain/tune/*.jsonl)
        [ "$(head -n 1 "$file" | grep -c cltrain-tune)" -eq 1 ] || fail "no header in $file"
        grep -q '"effort": "full"' "$file" || fail "no tuning result in $file"
        expect 0 "" backends $shape --op matmul
        says "measured"
        expect 0 "" tune --json --budget 20 $shape
        json 'o["measured"] == 0 and o["known"] == len(o["problems"]) > 0'
        json 'all(p["nmse"] <= 1e-7 and p["best_us"] > 0 for p in o["problems"])'
        expect 0 "" backends --batch 80 --op matmul --model mlp:96 --sample 80
        says "nearest of matmul"
        echo garbage >"$file"
        expect 0 "" backends $shape --op matmul
        grep -q measured "$out" && fail "garbage was believed"
        expect 0 "" tune --budget 20 $shape
        grep -q '"effort": "full"' "$file" || fail "garbage was not replaced"
        # A full disk, where stdout is concerned.
        if [ -w /dev/full ]; then
            "$program" tune --budget 1 $shape >/dev/full 2>"$err"
            [ $? -eq 1 ] || fail "a full disk is no error"
        fi
    fi
    XDG_CACHE_HOME=/dev/null expect 1 "nothing could be kept: /dev/null/cltrain: the folder cannot be made" tune --budget 5 $shape
}

[ "$failures" -eq 0 ] || { echo "$failures failures"; exit 1; }
echo "all well"

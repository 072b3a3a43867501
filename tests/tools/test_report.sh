#!/bin/sh
# test_report.sh PROGRAM TRAIN SOURCES PYTHON: cltrain-report: pages of runs as a browser draws them, and files that are none.
program=$1 train=$2 sources=$3 python=$4 name=report
. "$(dirname "$0")/common.sh"
cd "$folder" || exit 1

# The policy of pages allows report.js alone: by the hash that browsers reckon.
hash=$("$python" -c 'import base64, hashlib, sys; print("sha256-" + base64.b64encode(hashlib.sha256(open(sys.argv[1], "rb").read()).digest()).decode())' \
    "$sources/tools/cltrain-report/report.js")
grep -qF "\"$hash\"" "$sources/tools/cltrain-report/main.c" || fail "report.js has another hash than main.c says: $hash"

# ---- runs ----

"$train" mlp:8 --data digits --epochs 3 --log a.jsonl -q >"$out" 2>"$err" || fail "training"
"$train" linear --data synthetic-regression:400x6 --epochs 4 --log numbers.jsonl -q >"$out" 2>"$err" || fail "training on numbers"
"$train" mlp:8 --data digits --epochs 2 --save half.safetensors --log broken.jsonl -q >"$out" 2>"$err" || fail "half of a training"
printf '{"event":"progress","step":1000,"train_loss":77}\n{"event":"prog' >>broken.jsonl
"$train" mlp:8 --data digits --epochs 4 --resume half.safetensors --log more.jsonl -q >"$out" 2>"$err" || fail "the other half"
sed '$d' broken.jsonl | cat - more.jsonl >resumed.jsonl
"$python" - <<'END'
import json
def write(path, *events):
    with open(path, "w") as file:
        for event in events: file.write(json.dumps(event) + "\n")
bad = "</script><script>window.hacked=1</script><img src=x onerror=window.hacked=1><!--"
start = {"event": "start", "model": bad, "data": bad, "device": bad, "steps": 0}
write("markup.jsonl", start, {"event": "epoch", "epoch": 1, "step": 5, "train_loss": 1, "test_loss": 2},
      {"event": "end", "test_confusion": [[1, 2], [3, 4]], "classes": [bad, "b" * 300], "broken_samples": 71, "test_broken_samples": 0})
write("odd.jsonl", {"event": "start", "model": 7, "data": ["x"], "steps": "no"}, {"event": "later", "x": 1},
      {"event": "epoch", "epoch": "one", "step": 1e300, "train_loss": -1e300, "test_loss": None}, {"event": "end", "test_confusion": [[1], "x", []], "classes": 3})
write("parts.jsonl", start, {"event": "epoch", "epoch": 1, "step": 5, "train_loss": 1, "validation_loss": 0.125}, {"event": "end", "steps": 5, "validation_loss": 0.125, "test_loss": 0.3125, "test_f1": 0.4375})
write("many.jsonl", start, *({"event": "progress", "step": i, "train_loss": 1e-6 * i + 1e-9, "lr": 0.1} for i in range(2000)))
write("none.jsonl", {"event": "epoch", "epoch": 1})
END

# page NAME WANTED...
page() {
    printf '%s' "$folder/$1.html" >>pages
    shift
    printf '\t%s' scripts=2 "$@" >>pages
    echo >>pages
}

expect 0 "" a.jsonl --html one.html
page one curves=5 "contains=A training run" "contains=mlp:8" "contains=a.jsonl: 3 epochs" "contains=is, predicted as" "contains=done" "contains=a.jsonl, test" "contains=Samples with the largest losses" "contains=--data digits --epochs 3"
sleep 1 # a page does not tell when it was made
expect 0 "" a.jsonl -o again.html
cmp -s one.html again.html || fail "the same run, and another page"
expect 0 "" a.jsonl
cmp -s "$out" one.html || fail "stdout has another page than the file"
grep -q 'src=\|href=' one.html && fail "a page fetches something"
expect 0 "" numbers.jsonl --html numbers.html
page numbers curves=5 "contains=Mean squared error" "contains=linear"
expect 0 "" a.jsonl numbers.jsonl --html two.html
page two curves=6 "contains=Training runs" "contains=numbers.jsonl, test"
expect 0 "" broken.jsonl --html broken.html
page broken "contains=done" "contains=broken.jsonl: 2 epochs"
expect 0 "" resumed.jsonl --html resumed.html
page resumed "contains=resumed.jsonl: 4 epochs"
grep -q '"train_loss": *77' resumed.html && fail "a step that was done again is told as it was before"
expect 0 "" markup.jsonl --html markup.html
page markup "contains=<script>window.hacked=1</script>" contains=broken_samples
grep -q '<dt>broken_samples' markup.html && ! grep -q '<dt>test_broken' markup.html || fail "samples that could not be read"
# The table has what decided on nothing.
expect 0 "" parts.jsonl --html parts.html
page parts contains=0.3125 contains=0.4375
expect 0 "" odd.jsonl --html odd.html
page odd "contains=odd.jsonl"
expect 0 "" many.jsonl --html many.html
page many curves=2 "contains=not over"

# ---- what is none ----

refuse "expected what cltrain-train --log writes" none.jsonl
echo '[1]' >list.jsonl
refuse "list.jsonl, line 1: no JSON object" list.jsonl
{ cat a.jsonl; echo '{"event"'; cat a.jsonl; } >cut.jsonl
refuse "cut.jsonl, line $(($(wc -l <a.jsonl) + 1)): no JSON object" cut.jsonl
: >empty.jsonl
refuse "empty.jsonl: no run" empty.jsonl
refuse "nowhere.jsonl cannot be opened" nowhere.jsonl
refuse "not a regular file" "$folder"
refuse "" # no run at all
refuse "at most 7 runs" a.jsonl a.jsonl a.jsonl a.jsonl a.jsonl a.jsonl a.jsonl a.jsonl
refuse "unknown option '--frobnicate'" a.jsonl --frobnicate
cp a.jsonl kept.jsonl
expect 2 "" a.jsonl --html a.jsonl
cmp -s a.jsonl kept.jsonl || fail "a log became a page"
expect 1 "cannot be written" a.jsonl --html /nonexistent/a.html
if [ -w /dev/full ]; then
    "$program" a.jsonl >/dev/full 2>"$err"
    [ $? -eq 1 ] || fail "a full disk is no error"
fi
ls | grep -q '\.part$' && fail "a temporary file was left"

# ---- pages ----

browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome)
if [ -n "$browser" ]; then
    "$python" "$sources/tests/tools/check_page.py" "$browser" <pages >"$out" 2>"$err" || fail "pages as they are drawn"
    says "9 pages looked at"
fi
[ "$failures" -eq 0 ]

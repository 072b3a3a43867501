#!/bin/sh
# cltrain-probe model and recommend: what they say of a model on this machine's devices, times that are kept, devices that fail, bad input.
. "$(dirname "$0")/probe_common.sh"

export XDG_CACHE_HOME="$folder/cache" CLTRAIN_TUNE=off
times=$folder/times.jsonl
small="mlp:24 --sample 40"

# ---- a prediction, from nothing to all that is known ----

expect 0 "" model $small --batch 32 --offline --times "$times" --json
cp "$out" "$folder/a.json"
valid "$folder/a.json"
json "$folder/a.json" 'o["kind"] == "model" and o["status"] == "ok" and o["measured"] is None and o["measured_at"] == []'
json "$folder/a.json" 'o["predicted"]["sources"]["others"] > 0.999 and o["predicted"]["error"] is None'
json "$folder/a.json" 'o["memory"]["total_bytes"] > 32 * 40 * 4 and o["largest_batch"] > 1000'
[ -e "$times" ] && fail "--offline wrote times"

# With the optimizer that cltrain-train has for the model: its state counts, 2 numbers a parameter for AdamW, none for plain SGD.
json "$folder/a.json" 'o["model"]["optimizer"] == "adamw"'
parameters=$((512 * 40 + 512 + 512 * 10 + 10))
expect 0 "" model mlp:512 --sample 40 --offline --times "$times" --json
cp "$out" "$folder/adamw.json"
expect 0 "" model mlp:512 --sample 40 --offline --optimizer sgd --times "$times" --json
json "$out" 'o["model"]["optimizer"] == "sgd"'
valid "$out"
[ -z "$python" ] || "$python" -c '
import json, sys
a, b = (json.load(open(f, encoding="utf-8"))["memory"]["states_bytes"] for f in sys.argv[1:3])
assert 8 * int(sys.argv[3]) <= a - b <= 8 * int(sys.argv[3]) + 16384, (a, b)' "$folder/adamw.json" "$out" $parameters 2>"$err" || fail "the state of AdamW"
expect 0 "" model $small --batch 32 --offline --times "$times"
says "mlp:24 32x40 with adamw on"
refuse "--optimizer" model $small --optimizer rmsprop
# Of ranks that each keep a part of more, each takes less; and what they train with is told.
for shard in none optimizer gradients parameters; do
    expect 0 "" model mlp:512,512 --sample 512 --batch 8 --optimizer adamw --ranks 4 --shard $shard --offline --times "$times" --json
    json "$out" 'o["model"]["ranks"] == 4 and o["model"]["shard"] == "'$shard'"'
    valid "$out"
    cp "$out" "$folder/$shard.json"
done
[ -z "$python" ] || "$python" -c '
import json, sys
m = [json.load(open(name))["memory"]["total_bytes"] for name in sys.argv[1:]]
assert m[0] > 1.3 * max(m[1], m[2]) and min(m[1], m[2]) > m[3], m' "$folder/none.json" "$folder/optimizer.json" "$folder/gradients.json" "$folder/parameters.json" 2>"$err" ||
    fail "parts of more take more"
refuse "--shard optimizer needs --ranks N, 2 or more" model $small --shard optimizer
refuse "--ranks: 64 at most" model $small --ranks 65
# A language model reads tokens, each with a label.
expect 0 "" model gpt2:1/1/8 --sample 6 --classes 11 --batch 4 --seconds 0.02 --measure --times "$folder/tokens.jsonl" --json
json "$out" 'o["measured"]["rounds"] >= 1 and o["predicted"]["sources"]["measured"] > 0.9'

expect 0 "Predicting mlp:24 32x40" model $small --batch 32 --seconds 0.2 --measure --times "$times" --json
cp "$out" "$folder/b.json"
valid "$folder/b.json"
json "$folder/b.json" 'o["measured_at"] == [32] and o["predicted"]["sources"]["measured"] > 0.999 and o["predicted"]["error"] >= 0'
json "$folder/b.json" 'abs(sum(p["us"] * p["count"] for p in o["predicted"]["problems"]) / o["predicted"]["step_us"] - 1) < 1e-6'
json "$folder/b.json" 'o["measured"]["rounds"] >= 1 and abs(o["predicted"]["step_us"] / o["measured"]["step_us"] / o["predicted_to_measured"] - 1) < 1e-6'
json "$folder/b.json" 'sum(p["problem"].startswith("matmul") for p in o["predicted"]["problems"]) >= 4'

# What is known is not measured again, but for times of a moment in which they differed much; a batch between two known ones is interpolated.
sed 's/"\(spread\|own\)": [0-9.e+-]*/"\1": 0.01/g' "$times" >"$folder/quiet.jsonl"
sed 's/"\(spread\|own\)": [0-9.e+-]*/"\1": 0.9/g' "$times" >"$folder/busy.jsonl"
expect 0 "" model $small --batch 32 --times "$folder/quiet.jsonl" --json
json "$out" 'o["measured_at"] == [] and o["predicted"]["sources"]["measured"] > 0.999 and o["predicted"]["error"] < 0.2'
expect 0 "" model $small --batch 32 --offline --times "$folder/busy.jsonl"
says "times as long"
expect 0 "" model $small --batch 32 --seconds 0.02 --times "$folder/busy.jsonl" --json
json "$out" 'o["measured_at"] == [32] and o["predicted"]["sources"]["measured"] > 0.999'
cp "$folder/quiet.jsonl" "$times" # of a busy machine they would be measured again
expect 0 "" model $small --batch 64 --at 128 --seconds 0.02 --times "$times" --json
json "$out" 'o["measured_at"] == [128] and 2 * sum(p["source"] == "batches" for p in o["predicted"]["problems"]) > len(o["predicted"]["problems"])'
expect 0 "" model $small --batch 64 --offline --times "$times" --problems
says "% batches"
says "ms if each op ran at the device's peaks"
grep -q "at least" "$out" && fail "a bound that is none"
says "largest batch"
says "matmul 64x40"
# One unit of memory; and where samples between the largest batch and the smallest that does not fit were left out, it says so.
expect 0 "" model convnet --batch 8 --offline --times "$times" --json
json "$out" '(" MiB of " in o["largest_reason"] or "largest buffer" in o["largest_reason"]) and ("between the two was not looked" in o["largest_reason"]) == (int(o["largest_reason"].split()[3].rstrip(":")) > o["largest_batch"] + 1)'
# Another model takes what coincides from it.
expect 0 "" model mlp:24,12 --sample 40 --batch 32 --offline --times "$times" --json
json "$out" 'len({p["source"] == "measured" for p in o["predicted"]["problems"]}) == 2 and o["predicted"]["sources"]["measured"] > 0'

# Progress is one line of a terminal.
[ -z "$python" ] || "$python" "$sources/tests/tools/narrow.py" 30 29 "$program" model $small --batch 32 --offline --times "$times" >"$out" 2>"$err" ||
    fail "progress on a terminal of 30 columns"

# A file that was cut off is as good as less of it.
head -c 700 "$times" >"$folder/cut.jsonl"
expect 0 "warning: 1 line of $folder/cut.jsonl is no times, and was left out" model $small --batch 32 --offline --times "$folder/cut.jsonl" --json
json "$out" 'o["status"] == "ok" and any(p["source"] != "measured" for p in o["predicted"]["problems"])'
# So are times that are none.
sed -e '2s/"us": [^,]*/"us": -1/' -e '3s/"us": [^,]*/"us": 1e14/' "$times" >"$folder/odd.jsonl"
expect 0 "warning: 2 lines of $folder/odd.jsonl are no times, and were left out" model $small --batch 32 --offline --times "$folder/odd.jsonl" --json
expect 0 "" model $small --batch 32 --offline --times "$times" --json
grep -q "left out" "$err" && fail "lines of a whole file are left out"
: >"$folder/none.jsonl"
expect 0 "" model $small --batch 32 --offline --times "$folder/none.jsonl" --json
json "$out" 'o["predicted"]["sources"]["others"] > 0.999'
# One of something else, or of another device, is left as it is.
head -c 3000 /dev/urandom >"$folder/other"
sed '1s/"id": "[0-9a-f]*"/"id": "0"/' "$times" >"$folder/device.jsonl"
sed '1s/cltrain-times/cltrain-tune/' "$times" >"$folder/tune.jsonl"
for file in other device.jsonl tune.jsonl; do
    cp "$folder/$file" "$folder/kept"
    expect 1 "$folder/$file: " model $small --batch 32 --seconds 0.02 --refresh --times "$folder/$file"
    cmp -s "$folder/$file" "$folder/kept" || fail "$file was written over"
done
grep -q "times of another device" "$err" && fail "a file of tuning results is taken for one of times"

# ---- no place for times: the device is not at fault ----

for place in "HOME= XDG_CACHE_HOME=" "XDG_CACHE_HOME=$folder/none.jsonl"; do
    why="neither XDG_CACHE_HOME nor HOME names a folder"
    [ "$place" = "HOME= XDG_CACHE_HOME=" ] || why="$folder/none.jsonl/cltrain: the folder cannot be made: "
    env $place "$program" model $small --batch 8 --seconds 0.02 --json >"$out" 2>"$err" || fail "without a place for times ($place): $?"
    grep -q "warning: the times cannot be kept: $why" "$err" || fail "no warning that times cannot be kept ($place)"
    valid "$out"
    json "$out" 'o["status"] == "ok" and o["reason"] is None and o["predicted"]["sources"]["measured"] > 0.999'
done
env HOME= XDG_CACHE_HOME= "$program" recommend $small --batch 8 --seconds 0.02 --json >"$out" 2>"$err" || fail "recommend without a place for times: $?"
[ "$(grep -c "warning: the times cannot be kept" "$err")" -eq 1 ] || fail "recommend does not warn once"
json "$out" 'any(c["status"] == "ok" for c in o["ranking"])'
# A file that was named is an error, after what was found.
expect 1 "--times: $folder/no/such/folder/t.jsonl: " model $small --batch 8 --seconds 0.02 --times "$folder/no/such/folder/t.jsonl" --json
json "$out" 'o["status"] == "ok" and o["predicted"]["sources"]["measured"] > 0.999'
expect 1 "--times: $folder/cache: " model $small --batch 8 --seconds 0.02 --times "$folder/cache" --json
[ -s "$out" ] && fail "a folder as a file of times is a status of the device"

# ---- what cannot be ----

expect 1 "the largest batch is" model $small --batch 50000000 --times "$times" --json
cp "$out" "$folder/c.json"
valid "$folder/c.json"
json "$folder/c.json" 'o["status"] == "unsupported" and o["predicted"] is None and 0 < o["largest_batch"] < 50000000'
expect 1 "cannot be" model $small --batch 32 --seconds 0.02 --refresh --times "$folder/no/such/folder/t.jsonl"
CLTRAIN_PROBE_TEST="crash timing launches" expect 1 "signal 6" model $small --batch 16 --seconds 0.02 --times "$times" --json
cp "$out" "$folder/d.json"
valid "$folder/d.json"
json "$folder/d.json" 'o["status"] == "crashed" and "timing launches at batch 16" in o["reason"] and o["memory"]["total_bytes"] > 0'
CLTRAIN_PROBE_TEST="hang preparing" expect 1 "3 s" model $small --batch 16 --seconds 0.02 --timeout 3 --times "$times" --json
json "$out" 'o["status"] == "timeout"'
expect 1 "matches none" model $small --device no-such-device
refuse "no model given" model
refuse "unknown model 'vgg'" model vgg
refuse "unexpected word 'convnet'" model mlp convnet
refuse "--at '32,x'" model mlp --at 32,x
refuse "--at '0'" model mlp --at 0
refuse "--at" model mlp --at 1,2,3,4,5,6,7,8,9
refuse "--offline measures nothing" model mlp --offline --measure
refuse "--batch '0'" model mlp --batch 0
refuse "needs images" model convnet --sample 40
refuse "unknown option '--frobnicate'" model mlp --frobnicate
mkdir "$folder/none"
OCL_ICD_VENDORS="$folder/none" expect 1 "no OpenCL driver" model mlp
OCL_ICD_VENDORS="$folder/none" expect 1 "no OpenCL driver" recommend mlp

# ---- recommend ----

expect 0 "" recommend $small --batch 48 --seconds 0.2 --json
cp "$out" "$folder/e.json"
valid "$folder/e.json"
json "$folder/e.json" 'o["kind"] == "recommend" and len(o["ranking"]) == len(o["devices"]) >= 1'
json "$folder/e.json" 'sum(c["share"] for c in o["ranking"]) == 48 == sum(map(int, o["together"]["shares"].split(",")))'
json "$folder/e.json" 'o["together"]["ranks"] == sum(c["share"] > 0 for c in o["ranking"])'
json "$folder/e.json" 'all(a["samples_per_second"] >= (b["samples_per_second"] or 0) for a, b in zip(o["ranking"], o["ranking"][1:]) if a["samples_per_second"])'
json "$folder/e.json" '"the fastest" in o["ranking"][0]["reasons"][0] and o["ranking"][0]["error"] >= 0'
# Two drivers that fail beside the ones that do not: rows with reasons.
mkdir "$folder/icds"
for fault in hang crash; do echo "$build/libfake_icd_$fault.so" >"$folder/icds/$fault.icd"; done
for icd in ${OCL_ICD_VENDORS:-/etc/OpenCL/vendors}/pocl.icd; do [ -e "$icd" ] && cp "$icd" "$folder/icds/"; done
OCL_ICD_VENDORS="$folder/icds" expect 0 "" recommend $small --batch 48 --seconds 0.02 --timeout "$(patience 4)"
# Devices that claim what none has, or compute nonsense, are not believed.
mkdir "$folder/false"
for fault in wrong nonsense; do echo "$build/libfake_icd_$fault.so" >"$folder/false/$fault.icd"; done
OCL_ICD_VENDORS="$folder/false" expect 1 "no device can train" recommend $small --batch 48 --seconds 0.02 --json
valid "$out"
json "$out" 'sorted(c["status"] for c in o["ranking"]) == ["suspect", "suspect", "wrong"] and "computed something else" in str(o["ranking"])'
OCL_ICD_VENDORS="$folder/false" expect 1 "computed something else" model $small --seconds 0.02
# Nor are steps that take less than a device can.
expect 0 "" model mlp:512 --sample 512 --batch 256 --seconds 0.02 --times "$folder/fast.jsonl" --json
"$python" -c '
import json, sys
lines = [json.loads(line) for line in open(sys.argv[1])]
for row in lines[1:]: row.update(us=row["us"] / 1000, gap_us=0.0)
open(sys.argv[1], "w").write("".join(json.dumps(line) + "\n" for line in lines))' "$folder/fast.jsonl"
expect 1 "is anything computed at all" model mlp:512 --sample 512 --batch 256 --offline --times "$folder/fast.jsonl"
says "suspect"
# Ctrl-C while drivers are asked.
mkdir "$folder/hangs"
echo "$build/libfake_icd_hang.so" >"$folder/hangs/hang.icd"
OCL_ICD_VENDORS="$folder/hangs"
export OCL_ICD_VENDORS
for command in "model $small" "recommend $small" "bench --models none" verify backends; do
    # shellcheck disable=SC2086
    interrupt 1 $command
    [ -s "$err" ] && fail "$command: a reason that is none, after Ctrl-C"
done
unset OCL_ICD_VENDORS
# The command that it prints runs as it is.
bin=$(dirname "$program")
# runs: what was printed of it, with a step in place of the whole run.
runs() {
    line=$(grep "^  $1 " "$out")
    [ -n "$line" ] || fail "no line that begins with $1"
    says "is made up: put your own --data there"
    PATH="$bin:$PATH" sh -c "$line --steps 1" >"$folder/run" 2>&1 || fail "'$line' gave $?: $(tail -n 3 "$folder/run")"
}
OCL_ICD_VENDORS="$folder/icds" expect 0 "" recommend $small --batch 48 --offline --timeout "$(patience 4)"
runs cltrain-train
expect 0 "" recommend linear --data 5x4 --batch 48 --offline
runs cltrain-train
expect 0 "" recommend logistic --sample 40 --classes 3 --offline
grep -q "synthetic:40,classes=3" "$out" || fail "the made up data are others than were asked for"
# What does not fit is made to fit by what costs least, as measured, unless that is ruled out; and so the command says.
heavy="mlp:4096,4096 --sample 64 --batch 8 --optimizer adam --offline"
CLTRAIN_MEMORY_LIMIT=230M
export CLTRAIN_MEMORY_LIMIT
expect 0 "" recommend $heavy --json
valid "$out"
json "$out" 'o["ranking"][0]["offload"] in ("optimizer", "all") and o["ranking"][0]["batch"] == 8 and "the batch fits with" in o["ranking"][0]["reasons"][0]'
expect 0 "" recommend $heavy
runs cltrain-train
grep -Eq "^  cltrain-train .* --offload (optimizer|all)" "$out" || fail "the command does not say what lets the batch fit"
expect 1 "no device can train" recommend $heavy --offload none
# The limit is used up; where it is too small for a batch, the largest that fits by any of the ways counts.
CLTRAIN_MEMORY_LIMIT=22M
expect 0 "" recommend convnet --batch 64 --offline
says "MiB of 22; batches of up to"
runs cltrain-train
CLTRAIN_MEMORY_LIMIT=18M
expect 1 "with --accumulate an update takes as many samples in smaller batches" recommend convnet --batch 64 --offline
says "the batch does not fit; with --recompute none --offload all one of"
expect 1 "" recommend convnet --batch 64 --offline --json
json "$out" '32 < o["ranking"][0]["batch"] == o["ranking"][0]["largest_batch"] < 64 and o["ranking"][0]["offload"] == "all"'
unset CLTRAIN_MEMORY_LIMIT
expect 0 "" model mobilenet_v2 --batch 8 --offline # whose batch norms want two values
says "largest batch"
expect 0 "" recommend gpt2:nano --sample 64 --batch 4 --offline
says "text:FILE,context=64: put a text of your own there"
# One processor under two drivers: the second is left out, unless it is taken as another processor.
mkdir "$folder/twice"
for icd in ${OCL_ICD_VENDORS:-/etc/OpenCL/vendors}/pocl.icd; do
    [ -e "$icd" ] && cp "$icd" "$folder/twice/a.icd" && cp "$icd" "$folder/twice/b.icd"
done
if [ -e "$folder/twice/b.icd" ]; then
    wide="mlp:256 --sample 512 --batch 512"
    OCL_ICD_VENDORS="$folder/twice" expect 0 "" recommend $wide --seconds 0.02 --json
    valid "$out"
    json "$out" 'o["together"]["ranks"] == 1 and o["together"]["shares"] == "512" and "the same processor as" in str(o["ranking"][1]["reasons"])'
    CLTRAIN_PROBE_TEST=apart OCL_ICD_VENDORS="$folder/twice" expect 0 "" recommend $wide --offline --json
    valid "$out"
    json "$out" 'o["together"]["ranks"] == 2 and o["together"]["devices"].count(",") == 1 and sum(map(int, o["together"]["shares"].split(","))) == 512'
    json "$out" 'all(128 <= c["share"] <= 384 for c in o["ranking"]) and o["together"]["gain"] > 1.2'
    CLTRAIN_PROBE_TEST=apart OCL_ICD_VENDORS="$folder/twice" expect 0 "" recommend $wide --offline
    says "cltrain-run -n 2 --devices"
    # A loader that sees both drivers sees one platform: both ranks take the first device.
    sed -i 's/#2//' "$out"
    runs cltrain-run
fi
CLTRAIN_PROBE_TEST="crash timing launches" expect 1 "no device can train" recommend $small --batch 48 --seconds 0.02 --json
cp "$out" "$folder/f.json"
valid "$folder/f.json"
json "$folder/f.json" 'o["together"] is None and all(c["status"] != "ok" and c["reasons"] for c in o["ranking"])'
# A tensor of more than 2^31 elements is no mistake of the caller; the device's memory decides.
expect 1 "it does not fit" model $small --batch 2000000000
refuse "no model given" recommend
refuse "unknown model 'vgg'" recommend vgg
refuse "--seconds '0'" recommend mlp --seconds 0

finish

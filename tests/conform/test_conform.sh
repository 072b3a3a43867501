#!/bin/sh
# test_conform.sh PROGRAM SOURCES BUILD [PYTHON3]: the command line of cltrain-conform, what it writes, and what it does when a driver dies.
program=$1
sources=$2
build=$3
python=${4-}
name=conform
. "$sources/tests/tools/common.sh"

# ---- what makes no sense ----

refuse "--quick or --full" --quick --full
refuse "--all or --device" --all --device pocl
refuse "'list' is not an option" list
refuse "--ops" --ops
refuse "--list or --json" --list --json x.json
refuse "--list or --html" --list --html x.html
refuse "no case is meant" --ops no-such-op
refuse "no case is meant" --case no/such/case
refuse "--case or --ops" --case neg/1031 --ops softmax
refuse "--case or --sample" --case neg/1031 --sample 2
refuse "--case or --sample" --case neg/1031 --sample-reference 2
refuse "--case or --dtype" --case neg/1031 --dtype i32
refuse "stdout is for one" --json - --junit -
expect 1 "cannot be written" --json "$folder/none/there.json" --ops neg
expect 1 "none" --device "no such device" --ops neg
(ulimit -n 20; expect 1 "20 files may be open" --ops neg; [ "$failures" -eq 0 ]) || fail "with 20 open files"
expect 0 "" --help
says "--junit"
grep -q . "$sources/docs/man/cltrain-conform.1" || fail "there is no man page"
for option in device all jobs timeout quick full sample sample-reference ops dtype case list json junit html verbose version help; do
    grep -q -- "\\\\-\\\\-$(echo "$option" | sed 's/-/\\\\-/g')" "$sources/docs/man/cltrain-conform.1" || fail "the man page does not tell of --$option"
done

# look NAME EXPRESSION: it holds of the document o in NAME.json and the suites in NAME.xml.
look() {
    [ -n "$python" ] || return
    "$python" "$sources/tests/tools/validate.py" "$sources/docs/cltrain-conform.schema.json" "$folder/$1.json" >"$out" 2>&1 || fail "$1: not of the schema"
    "$python" "$sources/tests/conform/look.py" "$folder/$1" "$2" >"$out" 2>&1 || fail "$1: $2"
}

# ---- the list: whole, and each case once ----

expect 0 "" --list --full
cp "$out" "$folder/list"
[ "$(cut -f1 "$folder/list" | sort | uniq -d | wc -l)" -eq 0 ] || fail "a case is there twice: $(cut -f1 "$folder/list" | sort | uniq -d)"
for builder in $(sed -n 's/^CLT_API clt_tensor \*\(clt_[a-z0-9_]*\)(.*/\1/p' "$sources/include/cltrain/ops.h"); do
    cut -f5 "$folder/list" | grep -qw "$builder" || fail "no case for $builder of <cltrain/ops.h>"
done
[ "$(sed -n 's/^CLT_API clt_tensor \*\(clt_[a-z0-9_]*\)(.*/\1/p' "$sources/include/cltrain/ops.h" | wc -l)" -gt 40 ] || fail "the builders were not found"

# ---- --json is stdout where no file follows ----

expect 0 "" --device 0 --ops neg --json --jobs 1
grep -q '"schema": "cltrain-conform/1"' "$out" || fail "--json without a file: nothing on stdout"

# ---- nothing is left behind, of ranks neither ----

mkdir "$folder/tmp"
TMPDIR="$folder/tmp" expect 0 "" --case "$(grep -m 1 '^ranks/' "$folder/list" | cut -f1)@reference"
says "1 passed"
[ -z "$(ls -A "$folder/tmp")" ] || fail "left behind: $(find "$folder/tmp" | head -n 3)"

# ---- a run, and its files ----

expect 0 "" --ops 'softmax' --json "$folder/a.json" --junit "$folder/a.xml"
says "0 failed"
if [ -n "$python" ]; then
    "$python" "$sources/tests/tools/validate.py" "$sources/docs/cltrain-conform.schema.json" "$folder/a.json" >"$out" 2>&1 || fail "not of the schema"
    "$python" - "$folder" >"$out" 2>&1 <<'END' || fail "the files do not say the same"
import json, sys, xml.etree.ElementTree as tree
o = json.load(open(sys.argv[1] + "/a.json", encoding="utf-8"))
results = [r for c in o["cases"] for r in c["results"]]
assert len(o["cases"]) >= 4 and {r["row"] for r in results} == set(o["devices"][0]["rows"]) > {"reference", "default"}, results
assert all(r[q] == "passed" for r in results for q in ("supported", "value", "repeat", "memory")), results
assert all(c["status"] == "passed" and c["reason"] is None for c in o["cases"]), o["cases"]
assert {r["gradient"] for r in results} <= {"passed", "not-asked"} and sum(r["gradient"] == "passed" for r in results) > 4, results
assert all(r["served"] and r["nmse"] < (1e-10 if c["dtype"] == "f32" else 1e-4) for c in o["cases"] for r in c["results"]), results
assert o["counts"]["passed"] == len(results) == int(sum(int(s.get("tests")) for s in tree.parse(sys.argv[1] + "/a.xml").getroot()))
END
fi

# ---- an output that cannot be written costs none of the others ----

# whole NAME...: these are there, and not cut off; what cannot be read as such is empty.
whole() {
    for file; do
        case $file in
        *.json) tail -c 3 "$folder/$file" 2>/dev/null | grep -q '}' ;;
        *.xml) tail -n 1 "$folder/$file" 2>/dev/null | grep -q '</testsuites>' ;;
        *.html) tail -n 1 "$folder/$file" 2>/dev/null | grep -q '</html>' ;;
        esac || fail "$file is not written"
        rm -f "$folder/$file"
    done
}
if [ -c /dev/full ]; then
    expect 1 "cannot be written" --case 'neg/1031@default' --json /dev/full --junit "$folder/j.xml" --html "$folder/h.html"
    says "1 passed, 0 skipped"
    whole j.xml h.html
    expect 1 "cannot be written" --case 'neg/1031@default' --json "$folder/p.json" --junit "$folder/j.xml" --html /dev/full
    says "1 passed, 0 skipped"
    whole p.json j.xml
    expect 1 "cannot be written" --case 'neg/1031@default' --json "$folder/p.json" --junit /dev/full --html "$folder/h.html"
    says "1 passed, 0 skipped"
    whole p.json h.html
    "$program" --case 'neg/1031@default' --json "$folder/p.json" --junit "$folder/j.xml" --html "$folder/h.html" >/dev/full 2>"$err"
    [ $? -eq 1 ] || fail "stdout that cannot be written is no error"
    whole p.json j.xml h.html
    "$program" --case 'neg/1031@default' --json - --junit "$folder/j.xml" >/dev/full 2>"$err"
    [ $? -eq 1 ] || fail "JSON on a stdout that cannot be written is no error"
    whole j.xml
fi
{
    "$program" --case 'neg/1031@default' --json "$folder/p.json" 2>"$err"
    echo $? >"$folder/code"
} | true
[ "$(cat "$folder/code")" -eq 1 ] || fail "a reader that is gone gives exit code $(cat "$folder/code"), not 1"
whole p.json

# ---- a row that is asked for by name, and is not there ----

refuse "has no row 'nosuchrow'; it has reference, default" --case neg/1031@nosuchrow
expect 1 "no case that is meant is run in the row 'reference'" --case 'resume/*@reference'
left=
[ -z "$python" ] || left=$("$python" -c '
import json, sys
for r in json.load(open(sys.argv[1], encoding="utf-8"))["devices"][0]["rows_left_out"]:
    if r["reason"] != "with --full": print(r["row"] + " " + r["reason"])' "$folder/a.json" | head -n 1)
if [ -n "$left" ]; then
    expect 1 "the row '${left%% *}' is left out on" --case "neg/1031@${left%% *}"
    grep -qF -- "${left#* }" "$err" || fail "why '${left%% *}' is left out is not told"
    [ -s "$out" ] && fail "a row that is left out gives results"
fi

# ---- a sample: all cases in the reference row, of each op the first and every third behind it in the others ----

expect 0 "" --ops concat --sample 3 --json "$folder/sample.json" --junit "$folder/sample.xml"
look sample 'o["sample"] == 3 and len(rows["reference"]) == len(o["cases"]) > 6'
look sample '[len(c["results"]) for c in o["cases"]] == [2 if k % 3 == 0 else 1 for k in range(len(o["cases"]))]'
expect 0 "" --ops concat --sample 3 --sample-reference 2 --json "$folder/both.json" --junit "$folder/both.xml"
look both '(o["sample"], o["sample_reference"]) == (3, 2) and [len(c["results"]) for c in o["cases"]] == [(k % 3 == 0) + (k % 2 == 0) for k in range(len(o["cases"]))]'

# ---- what is too large for a simulator is skipped, and told ----

export CLTRAIN_CONFORM_SMALL=1
expect 0 "" --case 'neg/*' --json "$folder/small.json" --junit "$folder/small.xml"
says "2 skipped: large: CLTRAIN_CONFORM_SMALL is set"
look small 'len(results) == 2 * len(o["cases"]) == len(tests) and counts["skipped"] == 2'
look small '{r["reason"] for r in results if r["status"] == "skipped"} == {"large: CLTRAIN_CONFORM_SMALL is set"}'
look small 'sum(t.find("skipped") is not None for t in tests) == 2'
for value in 0 ""; do
    export CLTRAIN_CONFORM_SMALL="$value"
    expect 0 "" --case 'neg/3x21863@default'
    says "1 passed, 0 skipped"
done
unset CLTRAIN_CONFORM_SMALL

# ---- work-groups of one item: what lanes add up together elsewhere is one long sum there ----

export POCL_MAX_WORK_GROUP_SIZE=1
expect 0 "" --case 'batch_norm/mean-1000/4x3x5x7*@reference'
says "1 passed, 0 skipped"
unset POCL_MAX_WORK_GROUP_SIZE

# ---- a kernel that is wrong: failed, and the line that runs it again does so ----

mkdir -p "$folder/cl/reference"
sed 's/value \* (g - sum)/value * g/' "$sources/cl/reference/softmax.cl" >"$folder/cl/reference/softmax.cl"
cmp -s "$sources/cl/reference/softmax.cl" "$folder/cl/reference/softmax.cl" && fail "the kernel was not changed"
export CLTRAIN_KERNEL_FOLDER="$folder/cl"
"$program" --case 'softmax/rows/5x7@reference' >"$out" 2>"$err"
[ $? -eq 1 ] || fail "a wrong gradient passes"
says "failed: softmax/rows/5x7@reference"
says "the gradient of operand 0"
again=$(grep -- "--case 'softmax/rows/5x7@reference'" "$out")
unset CLTRAIN_KERNEL_FOLDER
[ -n "$again" ] || fail "no line that runs it again"
PATH="$(dirname "$program"):$PATH" sh -c "$again" >"$out" 2>"$err" && fail "the line does not give the failure again"
says "failed: softmax/rows/5x7@reference"

# Several devices of one driver: told apart, and the line runs on the one that failed.
pocl_icd=/etc/OpenCL/vendors/pocl.icd
if [ -f "$pocl_icd" ]; then
    export CLTRAIN_KERNEL_FOLDER="$folder/cl" OCL_ICD_VENDORS="$pocl_icd" POCL_DEVICES="basic pthread" CLTRAIN_COMM_TOKEN="a secret"
    # CLTRAIN_ comes first, and leaves no room for all of it.
    CLTRAIN_CONFORM_NOTE=$(head -c 3000 /dev/zero | tr '\0' x) "$program" --all --case 'softmax/rows/5x7@reference' >"$out" 2>"$err"
    [ $? -eq 1 ] || fail "a wrong gradient passes on two devices"
    says " 0: basic-"
    says " 1: pthread-"
    says "failed: softmax/rows/5x7@reference on 0: basic-"
    says "# with CLTRAIN_CONFORM_NOTE as it was"
    grep -q "a secret" "$out" && fail "the line tells a secret"
    again=$(grep -- "--device 'portable-computing-language/basic" "$out")
    unset CLTRAIN_KERNEL_FOLDER POCL_DEVICES CLTRAIN_COMM_TOKEN
    PATH="$(dirname "$program"):$PATH" sh -c "$again" >"$out" 2>"$err" && fail "the line does not give the failure of that device again"
    says "failed: softmax/rows/5x7@reference on basic-"
    unset OCL_ICD_VENDORS
fi

# Seen by comparison alone: no row is right before the others, and the line runs all that were compared.
mkdir -p "$folder/norm/reference"
sed 's/1\.0f \/ sqrt(/1.02f \/ sqrt(/' "$sources/cl/reference/layer_norm.cl" >"$folder/norm/reference/layer_norm.cl"
cmp -s "$sources/cl/reference/layer_norm.cl" "$folder/norm/reference/layer_norm.cl" && fail "layer_norm.cl has no 1.0f / sqrt("
export CLTRAIN_KERNEL_FOLDER="$folder/norm"
"$program" --case 'train/mlp' >"$out" 2>"$err" && fail "rows that differ pass"
says "the loss of step 1 is"
says "one of them is wrong"
again=$(grep -- "--case 'train/mlp'" "$out" | head -n 1)
unset CLTRAIN_KERNEL_FOLDER
[ -n "$again" ] || fail "no line that runs what differs again"
PATH="$(dirname "$program"):$PATH" sh -c "$again" >"$out" 2>"$err" && fail "the line does not give the difference again"
says "one of them is wrong"

# Losses that are not numbers are nothing to hold others against, which are held against each other.
mkdir -p "$folder/nan/reference" "$folder/nan/native/gpu"
sed 's/CLT_STORE(c, at, .*/c[at] = NAN;/' "$sources/cl/reference/matmul.cl" >"$folder/nan/reference/matmul.cl"
sed 's/= left\[i\]\.s0 \* right\[j\]/= 1.05f * left[i].s0 * right[j]/' "$sources/cl/native/gpu/contract.cl" >"$folder/nan/native/gpu/contract.cl"
for file in reference/matmul.cl native/gpu/contract.cl; do
    cmp -s "$sources/cl/$file" "$folder/nan/$file" && fail "$file is not broken"
done
CLTRAIN_KERNEL_FOLDER="$folder/nan" "$program" --full --case 'train/mlp' >"$out" 2>"$err" && fail "losses that are NaN pass"
says "failed: train/mlp@reference"
says "failed: train/mlp@gpu-class"

# What is said to replace kernels does, or is an error; reports tell that there was something, and no secret.
mkdir -p "$folder/large/reference"
head -c 1100000 /dev/zero | tr '\0' ' ' >"$folder/large/reference/softmax.cl"
for broken in /nonexistent "$folder/large"; do
    CLTRAIN_KERNEL_FOLDER="$broken" "$program" --case 'neg/1031@reference' >"$out" 2>"$err" && fail "kernels of $broken are taken without a word"
    says "CLTRAIN_KERNEL_FOLDER: $broken"
done
odd=$(printf 'a\377\001\357\277\277')
CLTRAIN_KERNEL_FOLDER="$folder/cl" CLTRAIN_COMM_STORE="redis://user:hunter2@host:1/0" CLTRAIN_CONFORM_ODD="$odd" \
    "$program" --case 'softmax/rows/5x7@reference' --json "$folder/odd.json" --junit "$folder/odd.xml" --html "$folder/odd.html" >"$out" 2>"$err"
says "failed: softmax/rows/5x7@reference"
grep -q hunter2 "$out" "$folder/odd.json" "$folder/odd.xml" "$folder/odd.html" && fail "a password is told"
if [ -n "$python" ]; then
    "$python" -c '
import json, sys, xml.etree.ElementTree
xml.etree.ElementTree.parse(sys.argv[1])
assert json.load(open(sys.argv[2]))["environment"]["CLTRAIN_KERNEL_FOLDER"] == "(a path)"' "$folder/odd.xml" "$folder/odd.json" 2>"$out" || fail "reports of odd variables"
fi

# What a file held before is not what Oclgrind found.
echo "precious words" >"$folder/victim"
OCLGRIND_LOG="$folder/victim" "$program" --case 'sum/all/1031@reference' >"$out" 2>"$err" || fail "another log is taken for Oclgrind's"
[ "$(cat "$folder/victim")" = "precious words" ] || fail "another log is written to"

# A kernel that never ends costs its case alone; so does what kills the process.
sed 's/if (row >= rows) return;/volatile int forever = 1; while (forever) { }/' "$sources/cl/reference/softmax.cl" >"$folder/cl/reference/softmax.cl"
export CLTRAIN_KERNEL_FOLDER="$folder/cl"
limit=$(patience 8)
"$program" --case '[sc]*[xy]/[r3]*[sx][/1][05]*@reference' --timeout "$limit" >"$out" 2>"$err"
[ $? -eq 1 ] || fail "a hanging kernel passes"
says "timeout: softmax/rows/5x7@reference"
says "it said nothing for $limit s"
says "2 passed, 0 skipped, 0 failed, 0 crashed, 1 timed out"
unset CLTRAIN_KERNEL_FOLDER

# ---- told to stop: what was found by then is told and written ----

# Later where a busy machine has found nothing by then.
for seconds in 5 20 60; do
    interrupt $seconds --full --json "$folder/stopped.json" --html "$folder/stopped.html"
    grep -q ': [1-9][0-9]* passed' "$out" && break
done
says "stopped before the end"
grep -q "Stopped before the end" "$folder/stopped.html" || fail "the page does not say that it was stopped"
if [ -n "$python" ]; then
    "$python" "$sources/tests/tools/validate.py" "$sources/docs/cltrain-conform.schema.json" "$folder/stopped.json" >"$out" 2>&1 || fail "not of the schema"
    "$python" -c '
import json, sys
o = json.load(open(sys.argv[1], encoding="utf-8"))
assert o["complete"] is False and 0 < o["counts"]["passed"], o["counts"]
assert any(not c["results"] for c in o["cases"]), "all was run"' "$folder/stopped.json" >"$out" 2>&1 || fail "what was found is not written"
fi

# ---- devices that cannot be opened, and processes that end early ----

# shim CODE NAME VARIABLE=VALUE...: a run of some cases on a driver of which calls fail.
shim() {
    want=$1 label=$2 limit=$(patience 10)
    shift 2
    env OCL_ICD_VENDORS="$folder/shim" SHIM_DRIVER="$pocl" SHIM_NTH=1 SHIM_FOREVER=1 "$@" "$program" --case 'neg/[12]*' --timeout "$limit" \
        --json "$folder/$label.json" --junit "$folder/$label.xml" >"$out" 2>"$err"
    got=$?
    [ "$got" -eq "$want" ] || fail "$label gave exit code $got, not $want"
}

pocl=$(cat /etc/OpenCL/vendors/pocl.icd 2>/dev/null)
mkdir "$folder/shim"
echo "$build/../faults/shim_icd.so" >"$folder/shim/shim.icd"
if [ -n "$pocl" ] && [ -f "$build/../faults/shim_icd.so" ]; then
    shim 0 sound SHIM_ONLY=clCreateContext SHIM_WHEN=NO_SUCH_VARIABLE=1
    look sound 'devices[0]["status"] == "ok" and counts["passed"] == len(tests) == 6 and not bad'

    shim 1 context SHIM_ONLY=clCreateContext
    says "crashed: asking for its rows: "
    look context '[d["status"] for d in devices] == ["crashed"] and "making a context" in devices[0]["reason"]'
    look context 'list(bad) == [devices[0]["id"]] and "making a context" in bad[devices[0]["id"]]'
    shim 1 queue SHIM_ONLY=clCreateCommandQueue
    look queue 'devices[0]["status"] == "crashed" and "queue" in devices[0]["reason"] and list(bad) == [devices[0]["id"]]'
    shim 1 hang SHIM_ONLY=clCreateContext SHIM_DEED=hang
    look hang 'devices[0]["status"] == "timeout" and "'"$limit"' s" in devices[0]["reason"] and "'"$limit"' s" in bad[devices[0]["id"]]'
    shim 1 leave SHIM_ONLY=clCreateContext SHIM_DEED=exit
    look leave 'devices[0]["status"] == "crashed" and "exit code 0" in devices[0]["reason"] and "exit code 0" in bad[devices[0]["id"]]'

    # One row alone: its cases are all there, and the others stand.
    for deed in fail exit crash; do
        shim 1 "row-$deed" SHIM_ONLY=clCreateContext SHIM_WHEN=CLTRAIN_CONFORM_ROW=reference SHIM_DEED=$deed
        says "crashed: opening it for the row reference: "
        says "3 passed, 0 skipped"
        look "row-$deed" 'len(rows["reference"]) == len(rows["default"]) == len(o["cases"]) == 3'
        look "row-$deed" '{r["status"] for r in rows["default"]} == {"passed"} and devices[0]["status"] == "crashed"'
        look "row-$deed" 'all("could not be opened: " in r["reason"] and len(r["reason"]) > 40 for r in rows["reference"])'
        look "row-$deed" 'len(bad) == 4 and len(tests) == 7'
    done
    look row-fail '{r["status"] for r in rows["reference"]} == {"failed"} and "making a context" in rows["reference"][0]["reason"]'
    look row-exit '{r["status"] for r in rows["reference"]} == {"crashed"} and "exit code 0" in rows["reference"][0]["reason"]'
    look row-crash '{r["status"] for r in rows["reference"]} == {"crashed"} and "signal 6" in rows["reference"][0]["reason"]'

    # In the first launch of each process: every case, for itself.
    shim 1 launch SHIM_ONLY=clEnqueueNDRangeKernel SHIM_DEED=exit
    look launch 'counts["crashed"] == len(results) == 6 == len(tests) and all("exit code 0" in r["reason"] for r in results)'

    # Binaries of 2 GiB, as the driver says, are not kept.
    shim 0 huge SHIM_ONLY=clGetProgramInfo SHIM_DEED=huge CLTRAIN_PROGRAM_CACHE=on XDG_CACHE_HOME="$folder/huge-cache"
    [ "$(du -sm "$folder/huge-cache" | cut -f1)" -lt 64 ] || fail "the cache of programs is full of what a driver did not write"
else
    echo "PoCL or the shim is missing: devices that cannot be opened are not tested"
fi

# ---- drivers that misbehave ----

# vendors FOLDER FAULT...: PoCL, and drivers with these faults.
vendors() {
    to=$folder/$1
    mkdir "$to"
    shift
    cp /etc/OpenCL/vendors/pocl.icd "$to"
    for fault; do echo "$build/../tools/libfake_icd_$fault.so" >"$to/$fault.icd"; done
}

# faulty CODE NAME ARGUMENT...: a run with the drivers of vendors NAME.
faulty() {
    want=$1 label=$2
    shift 2
    OCL_ICD_VENDORS="$folder/$label" "$program" "$@" --json "$folder/$label.json" --junit "$folder/$label.xml" --html "$folder/$label.html" >"$out" 2>"$err"
    got=$?
    [ "$got" -eq "$want" ] || fail "'$*' with the drivers $label gave exit code $got, not $want"
}

if [ -n "$pocl" ] && [ -f "$build/../tools/libfake_icd_crash.so" ]; then
    vendors faults crash hang nonsense late stall wrong empty
    echo "/nonexistent/libOpenCL.so" >"$folder/faults/missing.icd"
    limit=$(patience 8)
    faulty 1 faults --all --case 'neg/1031@default' --timeout "$limit"
    says "1 passed, 0 skipped, 0 failed"
    says "driver crash.icd: crashed: while it was loaded and asked for devices: ended by signal 11"
    says "driver hang.icd: timeout: while it was loaded and asked for devices: it said nothing for $limit s"
    says "driver missing.icd: unsupported: its library cannot be loaded"
    look faults '{n[:-4]: d["status"] for n, d in drivers.items() if d["status"] != "ok"} == {"crash": "crashed", "hang": "timeout", "empty": "unsupported", "missing": "unsupported"}'
    look faults '{t.get("name"): bool(t.findall("error")) for t in tests if t.get("classname") == "driver"} == {n: n in ("crash.icd", "hang.icd") for n in drivers}'
    look faults '"signal 11" in bad["crash.icd"] and "'"$limit"' s" in bad["hang.icd"] and o["all"]'
    look faults '[d["status"] for d in devices if d["icd"] == "late.icd"] == ["crashed"] * 3'
    look faults '[d["reason"].split(": ", 1)[1][:23] for d in devices if d["icd"] == "late.icd"] == ["first: making a context", "ended by signal 6 (Abor", "third: making a context"]'
    look faults '[d["status"] for d in devices if d["icd"] == "nonsense.icd"] == ["suspect", "suspect"]'
    look faults '[d["status"] for d in devices if d["icd"] == "stall.icd"] == ["timeout"]'
    look faults '{r["status"] for r in results if devices[r["device"]]["icd"] == "wrong.icd"} <= {"failed", "crashed"}'
    look faults '[r["status"] for r in results if devices[r["device"]]["icd"] == "pocl.icd"] == ["passed"]'
    look faults 'all(d["id"] in bad for d in devices if d["status"] in ("crashed", "timeout", "suspect"))'
    look faults 'all(any(s.get("name").startswith(d["id"] + " ") for s in suites) for d in devices)'
    for words in "driver crash.icd" "driver hang.icd" "making a context"; do
        grep -qF "$words" "$folder/faults.html" || fail "the page does not tell of $words"
    done

    # Each driver alone is enough; without --all it was not asked for. What is only missing is no failure.
    vendors crash crash
    faulty 1 crash --all --case 'neg/1031@default'
    look crash 'list(bad) == ["crash.icd"] and counts["passed"] == 1 and "signal 11" in drivers["crash.icd"]["reason"]'
    faulty 0 crash --case 'neg/1031@default'
    look crash 'not bad and drivers["crash.icd"]["status"] == "crashed" and not o["all"]'
    grep -q "driver crash.icd" "$folder/crash.html" && fail "a driver that nobody asked for is a failure on the page"
    vendors lacking empty
    faulty 0 lacking --all --case 'neg/1031@default'
    look lacking 'not bad and drivers["empty.icd"]["status"] == "unsupported" and counts["passed"] == 1'

    # No device at all: the files are written, and say why.
    vendors alone crash
    rm "$folder/alone/pocl.icd"
    faulty 1 alone --all --case 'neg/1031@default'
    look alone 'devices == [] and list(bad) == ["crash.icd"]'
else
    echo "PoCL or the drivers that misbehave are missing: they are not tested"
fi

[ "$failures" -eq 0 ] || { echo "$failures failures"; exit 1; }
echo "all well"

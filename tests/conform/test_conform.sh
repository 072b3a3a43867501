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
refuse "'list' is no option" list
refuse "--ops" --ops
refuse "no case is meant" --ops no-such-op
refuse "no case is meant" --case no/such/case
refuse "stdout is for one" --json - --junit -
expect 1 "cannot be written" --json "$folder/none/there.json" --ops neg
expect 1 "none" --device "no such device" --ops neg
expect 0 "" --help
says "--junit"
grep -q . "$sources/docs/man/cltrain-conform.1" || fail "there is no man page"
for option in device all jobs timeout quick full ops dtype case list json junit html verbose version help; do
    grep -q -- "\\\\-\\\\-$option" "$sources/docs/man/cltrain-conform.1" || fail "the man page does not tell of --$option"
done

# ---- the list: whole, and each case once ----

expect 0 "" --list --full
cp "$out" "$folder/list"
[ "$(cut -f1 "$folder/list" | sort | uniq -d | wc -l)" -eq 0 ] || fail "a case is there twice: $(cut -f1 "$folder/list" | sort | uniq -d)"
for builder in $(sed -n 's/^CLT_API clt_tensor \*\(clt_[a-z0-9_]*\)(.*/\1/p' "$sources/include/cltrain/ops.h"); do
    cut -f5 "$folder/list" | grep -qw "$builder" || fail "no case for $builder of <cltrain/ops.h>"
done
[ "$(sed -n 's/^CLT_API clt_tensor \*\(clt_[a-z0-9_]*\)(.*/\1/p' "$sources/include/cltrain/ops.h" | wc -l)" -gt 40 ] || fail "the builders were not found"

# ---- a run, and its files ----

expect 0 "" --ops 'softmax' --json "$folder/a.json" --junit "$folder/a.xml"
says "0 failed"
if [ -n "$python" ]; then
    "$python" "$sources/tests/tools/validate.py" "$sources/docs/cltrain-conform.schema.json" "$folder/a.json" >"$out" 2>&1 || fail "not of the schema"
    "$python" - "$folder" >"$out" 2>&1 <<'END' || fail "the files do not say the same"
import json, sys, xml.etree.ElementTree as tree
o = json.load(open(sys.argv[1] + "/a.json", encoding="utf-8"))
results = [r for c in o["cases"] for r in c["results"]]
assert len(o["cases"]) == 4 and {r["row"] for r in results} == {"reference", "default"}, results
assert all(r[q] == "passed" for r in results for q in ("supported", "value", "gradient", "repeat", "memory")), results
assert all(r["served"] and r["nmse"] < 1e-10 for r in results), results
assert o["counts"]["passed"] == len(results) == int(sum(int(s.get("tests")) for s in tree.parse(sys.argv[1] + "/a.xml").getroot()))
END
fi

# ---- a kernel that is wrong: failed, and the line that runs it again does so ----

mkdir -p "$folder/cl/reference"
sed 's/y\[i\] \* (dy\[i\] - total)/y[i] * dy[i]/' "$sources/cl/reference/softmax.cl" >"$folder/cl/reference/softmax.cl"
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

# A kernel that never ends costs its case alone; so does what kills the process.
sed 's/if (row >= rows) return;/volatile int forever = 1; while (forever) { }/' "$sources/cl/reference/softmax.cl" >"$folder/cl/reference/softmax.cl"
export CLTRAIN_KERNEL_FOLDER="$folder/cl"
"$program" --case '[sc]*[xy]/[r3]*[70]*@reference' --timeout 40 >"$out" 2>"$err"
[ $? -eq 1 ] || fail "a hanging kernel passes"
says "timeout: softmax/rows/5x7@reference"
says "it said nothing for 40 s"
says "2 passed, 0 skipped, 0 failed, 0 crashed, 1 timed out"
unset CLTRAIN_KERNEL_FOLDER

# ---- told to stop: what was found by then is told and written ----

interrupt 8 --full --json "$folder/stopped.json" --html "$folder/stopped.html"
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

# ---- drivers that misbehave are columns with a reason ----

mkdir "$folder/vendors"
cp /etc/OpenCL/vendors/pocl.icd "$folder/vendors" 2>/dev/null
for fault in crash nonsense; do
    [ -f "$build/../tools/libfake_icd_$fault.so" ] && echo "$build/../tools/libfake_icd_$fault.so" >"$folder/vendors/$fault.icd"
done
OCL_ICD_VENDORS="$folder/vendors" "$program" --all --case 'neg/1031@default' --timeout 30 >"$out" 2>"$err"
says "1 passed, 0 skipped, 0 failed"

[ "$failures" -eq 0 ] || { echo "$failures failures"; exit 1; }
echo "all well"

#!/bin/sh
# cltrain-conform --html: pages as a browser draws them, of runs where all is well, and where kernels are wrong.
# Arguments: PROGRAM SOURCES BUILD [PYTHON3].
program=$1
sources=$2
python=${4-}
name=conform-html
. "$(dirname "$0")/common.sh"

browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome)
[ -n "$python" ] && [ -n "$browser" ] || { echo "Python or Chromium is missing: skipped"; exit 77; }
tab=$(printf '\t')

expect 0 "" --ops softmax --html "$folder/well.html"
says "passed"
echo "$folder/well.html${tab}contains=Conformance of OpenCL devices${tab}contains=Failures None.${tab}contains=softmax" >"$folder/pages"

# A gradient that is wrong: a failure, with the line that runs it again.
mkdir -p "$folder/cl/reference"
sed 's/value \* (g - sum)/value * g/' "$sources/cl/reference/softmax.cl" >"$folder/cl/reference/softmax.cl"
cmp -s "$sources/cl/reference/softmax.cl" "$folder/cl/reference/softmax.cl" && fail "the kernel was not changed"
CLTRAIN_KERNEL_FOLDER="$folder/cl" CLTRAIN_CONFORM_NOTE='<b>&"' expect 1 "" --ops softmax --json "$folder/wrong.json" --html "$folder/wrong.html"
reason=$("$python" -c '
import json, sys
o = json.load(open(sys.argv[1]))
bad = [r for c in o["cases"] for r in c["results"] if r["status"] == "failed"]
assert bad and all(r["rerun"] for r in bad) and o["counts"]["failed"] == len(bad)
print(bad[0]["reason"])' "$folder/wrong.json" 2>"$err") || fail "no case failed"
echo "$folder/wrong.html${tab}contains=failed${tab}contains=$reason${tab}contains=--case 'softmax/${tab}contains=CLTRAIN_CONFORM_NOTE=<b>&\"" >>"$folder/pages"
first=$(grep -n 'id="failures"' "$folder/wrong.html" | cut -d: -f1)
[ "$first" -lt "$(grep -n 'id="devices"' "$folder/wrong.html" | cut -d: -f1)" ] || fail "failures do not come first"

# A driver that crashes and a device that cannot be opened are failures too, and stand there first.
wanted=2
if [ -f /etc/OpenCL/vendors/pocl.icd ]; then
    wanted=3
    mkdir "$folder/vendors"
    cp /etc/OpenCL/vendors/pocl.icd "$folder/vendors"
    for fault in crash late; do echo "$3/libfake_icd_$fault.so" >"$folder/vendors/$fault.icd"; done
    OCL_ICD_VENDORS="$folder/vendors" expect 1 "" --all --case neg/1031@default --html "$folder/drivers.html"
    echo "$folder/drivers.html${tab}contains=Failures Status${tab}contains=driver crash.icd while it was loaded and asked for devices${tab}contains=asking for its rows: first: making a context${tab}contains=Drivers Driver Status" >>"$folder/pages"
fi

expect 0 "" --ops softmax --html -
grep -q '^<!DOCTYPE html>' "$out" && [ "$(grep -c '</html>' "$out")" -eq 1 ] || fail "stdout is no page"
refuse "stdout is for one" --json - --html - --ops softmax
expect 1 "/nonexistent/a.html cannot be written" --ops softmax --html /nonexistent/a.html
ls "$folder" | grep -q '\.part$' && fail "a temporary file was left"

"$python" "$sources/tests/tools/check_page.py" "$browser" <"$folder/pages" >"$out" 2>"$err" || fail "pages as they are drawn"
says "$wanted pages looked at"
[ "$failures" -eq 0 ] || { echo "$failures failures"; exit 1; }
echo "all well"

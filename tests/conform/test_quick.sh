#!/bin/sh
# test_quick.sh PROGRAM SOURCES [PYTHON3]: a quick run on the default device is right, and counts cases and the library's ops apart.
program=$1
sources=$2
python=${3-}
name=conform-quick
. "$sources/tests/tools/common.sh"

expect 0 "" --quick --json "$folder/quick.json" --junit "$folder/quick.xml"
cat "$out"
says "0 failed, 0 crashed, 0 timed out"
says "  of the library's ops: "
if [ -n "$python" ]; then
    cp "$out" "$folder/text"
    look() {
        "$python" "$sources/tests/conform/look.py" "$folder/quick" "$1" >"$out" 2>&1 || fail "$1"
    }
    look 'counts["passed"] > 100 and len(coverage) > 40 and not bad'
    look 'len(tests) == len(results) + len(coverage)'
    # The page of devices has both too.
    numbers=$("$python" -c '
import json, sys
o = json.load(open(sys.argv[1], encoding="utf-8"))
c, p = o["counts"], o["devices"][0]["coverage_counts"]
text = open(sys.argv[2], encoding="utf-8").read()
assert "%d passed, %d skipped, 0 failed" % (c["passed"], c["skipped"]) in text
assert "ops: %d launched by a case, %d not asked for, 0 without" % (p["passed"], p["skipped"]) in text
print("| %d | %d | 0 | %d, %d, 0 |" % (c["passed"], c["skipped"], p["passed"], p["skipped"]))' "$folder/quick.json" "$folder/text" 2>"$err") ||
        fail "the text counts otherwise"
    sh "$sources/tools/devices.sh" --page "$folder/quick.json" >"$out" 2>"$err" || fail "no page of devices"
    says "$numbers"
    # Which method stands for one that this PoCL does not have is told where it was asked for.
    [ -z "${POCL_WORK_GROUP_METHOD-}" ] && grep -q cbs "$out" && fail "a method that nobody asked for is told"
    "$python" -c '
import json, sys
o = json.load(open(sys.argv[1], encoding="utf-8"))
o["environment"]["POCL_WORK_GROUP_METHOD"] = "workitemloops"
json.dump(o, open(sys.argv[2], "w", encoding="utf-8"))' "$folder/quick.json" "$folder/loops.json" 2>"$err" &&
        sh "$sources/tools/devices.sh" --page "$folder/loops.json" >"$out" 2>"$err" || fail "no page of devices"
    says "\`workitemloops\` stands in its place"
fi
[ "$failures" -eq 0 ] || { echo "$failures failures"; exit 1; }
echo "all well"

# Read by the tests of cltrain-probe: PROGRAM SOURCES BUILD [PYTHON3].
program=$1
sources=$2
build=$3
python=${4-}
name=probe
. "$(dirname "$0")/common.sh"

# valid FILE...: of the schema.
valid() {
    [ -z "$python" ] && return
    "$python" "$sources/tests/tools/validate.py" "$sources/docs/cltrain-probe.schema.json" "$@" >"$err" 2>&1 ||
        fail "not of the schema"
}

# json FILE EXPRESSION: FILE is one object o for which it holds.
json() {
    [ -z "$python" ] && return
    "$python" -c '
import json, statistics, sys
o = json.load(open(sys.argv[1], encoding="utf-8"))
devices = {d["name"]: d for d in o.get("devices", [])}
drivers = {d["icd"]: d for d in o.get("drivers", [])}
results = {r["key"]: r for r in o.get("results", [])}
assert eval(sys.argv[2]), str(o)[:300]' "$1" "$2" 2>"$err" || fail "JSON: $2"
}

finish() {
    [ "$failures" -eq 0 ] || { echo "$failures failures"; exit 1; }
    echo "all well"
}

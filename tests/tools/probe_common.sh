# Read by the tests of cltrain-probe: PROGRAM SOURCES BUILD [PYTHON3].
set -u

program=$1
sources=$2
build=$3
python=${4-}
folder=$(mktemp -d "${TMPDIR:-/tmp}/cltrain-probe-XXXXXX") || exit 1
trap 'rm -rf "$folder"' EXIT
failures=0
out=$folder/out
err=$folder/err

fail() {
    failures=$((failures + 1))
    echo "FAILED: $1"
    sed 's/^/    stdout: /' "$out" | head -n 20
    sed 's/^/    stderr: /' "$err" | head -n 20
}

# expect CODE WORDS ARGUMENT...: that exit code, and the words on stderr ("": whatever is there).
expect() {
    code=$1 words=$2
    shift 2
    "$program" "$@" >"$out" 2>"$err" </dev/null
    got=$?
    [ "$got" -eq "$code" ] || fail "'$*' gave exit code $got, not $code"
    [ -z "$words" ] || grep -qF -- "$words" "$err" || fail "'$*' does not say '$words'"
}

# refuse WORDS ARGUMENT...: exit code 2, nothing on stdout.
refuse() {
    words=$1
    shift
    expect 2 "$words" "$@"
    [ -s "$out" ] && fail "'$*' printed on stdout"
}

says() {
    grep -qF -- "$1" "$out" || fail "stdout does not say '$1'"
}

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
import json, sys
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

#!/bin/sh
# ops.sh ROOT: how often rooms that treat all ops by their descriptions name a single one. The number may only fall: what such a room
# must know of an op is a trait of clt_op (runtime/graph/graph.h). And each bool of the attributes is in a schema, which
# tests/graph/test_schema.c cannot see where another lies before it.
set -eu
most=26
cd "$1"
found=$(grep -rohE '\bclt_op_[a-z0-9_]+' runtime/exec runtime/train runtime/trial backends/tune backends/codegen.c | wc -l)
echo "$found names of ops"
[ "$found" -ge 10 ] || { echo "FAILED: no such rooms in $1"; exit 1; }
[ "$found" -le $most ] || {
    grep -rnE '\bclt_op_[a-z0-9_]+' runtime/exec runtime/train runtime/trial backends/tune backends/codegen.c
    echo "FAILED: more than $most: make what the new one is needed for a trait of clt_op"
    exit 1
}

bools=$(awk '/^typedef struct/ { name = $3 } /^    bool / { sub(/\/\*.*/, ""); gsub(/[,;]/, " "); for (i = 2; i <= NF; i++) print name "," $i }' runtime/ops/ops.h |
    grep '_attributes,')
[ -n "$bools" ] || { echo "FAILED: no bool in runtime/ops/ops.h"; exit 1; }
for bool in $bools; do
    grep -qF "CLT_ATTRIBUTE(${bool%,*}, ${bool#*,}, BOOL" runtime/ops/*.c || {
        echo "FAILED: ${bool#*,} of ${bool%,*} is in no schema: ranks that differ in it would pass as equal"
        exit 1
    }
done

#!/bin/sh
# ops.sh ROOT: how often rooms that treat all ops by their descriptions name a single one. The number may only fall: what such a room
# must know of an op is a trait of clt_op (runtime/graph/graph.h).
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

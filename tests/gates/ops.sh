#!/bin/sh
# ops.sh ROOT: how often rooms that treat all ops by their descriptions name a single one. The number may only fall: what such a room
# must know of an op is a trait of clt_op (runtime/graph/graph.h). And each field of the attributes is in a schema: what
# tests/graph/test_schema.c takes for padding may be one.
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

# Fields of attributes, of which the whole is told where others are not: what a pack writes as one, and clip, whose fields are an update's first.
whole='clt_pack_attributes,offsets|clt_pack_attributes,n|clt_update_attributes,clip'
fields=$(awk '/^typedef struct clt_[a-z0-9_]*_attributes/ { name = $3; on = 1; next } /^}/ { on = 0 }
    on { sub(/\/\*.*/, ""); sub(/^ +(const +)?(struct +)?[a-z0-9_]+ +/, ""); gsub(/[;*]/, ""); n = split($0, f, ",")
         for (i = 1; i <= n; i++) { gsub(/ |\[.*/, "", f[i]); if (f[i] != "") print name "," f[i] } }' runtime/ops/ops.h | grep -vxE "$whole")
[ "$(echo "$fields" | wc -l)" -ge 60 ] || { echo "FAILED: fields of attributes are not found in runtime/ops/ops.h"; exit 1; }
for field in $fields; do
    struct=${field%,*} name=${field#*,}
    # A file may have a macro for its own struct.
    files=$(grep -lE "CLT_ATTRIBUTE\($struct, " runtime/ops/*.c) || files=
    # shellcheck disable=SC2086
    [ -n "$files" ] && grep -qE "^[^/]*(CLT_ATTRIBUTE\($struct, |WINDOW\()$name\b" $files || {
        echo "FAILED: $name of $struct is in no schema: ranks that differ in it would pass as equal"
        exit 1
    }
done

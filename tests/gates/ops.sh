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
# Comments, and what is left out by the preprocessor, count for nothing.
whole='clt_pack_attributes,offsets|clt_pack_attributes,n|clt_update_attributes,clip'
seen() { ${CC:-cc} -std=gnu11 -E -P -I. -Iinclude "$@" 2>/dev/null; }
echo '#include "runtime/ops/ops.h"' | seen -x c - | tr -s ' \n' ' ' | grep -oE 'typedef struct [a-z0-9_]* ?\{[^}]*\} ?clt_[a-z0-9_]*_attributes;' >"${TMPDIR:-/tmp}/attributes.$$" || :
trap 'rm -f "${TMPDIR:-/tmp}/attributes.$$"' EXIT
fields=$(awk '{ name = $NF; sub(/;/, "", name); body = $0; sub(/^[^{]*\{/, "", body); sub(/\}.*/, "", body)
    m = split(body, declarations, ";")
    for (d = 1; d <= m; d++) { sub(/^ *(const +)?(struct +)?[a-zA-Z0-9_]+ +/, "", declarations[d]); n = split(declarations[d], f, ",")
        for (i = 1; i <= n; i++) { gsub(/[ *]|\[.*/, "", f[i]); if (f[i] != "") print name "," f[i] } } }' "${TMPDIR:-/tmp}/attributes.$$" | grep -vxE "$whole")
[ "$(echo "$fields" | wc -l)" -ge 60 ] || { echo "FAILED: fields of attributes are not found in runtime/ops/ops.h"; exit 1; }
# A schema is looked for by the name of the type: what an op's attributes are ends so, or is a chain of forms.
types=$(for file in runtime/ops/*.c; do seen "$file" | grep -oE '\.attributes_bytes = sizeof ?\([^)]*\)' || :; done | sed -E 's/.*\(([^)]*)\)/\1/' | sort -u)
[ "$(echo "$types" | wc -l)" -ge 20 ] || { echo "FAILED: the types of attributes are not found in runtime/ops"; exit 1; }
for type in $types; do
    case $type in clt_*_attributes | clt_fused | clt_fused_reduce) ;; *)
        echo "FAILED: the type of an op's attributes is named $type: expected clt_NAME_attributes, by which its fields are looked for"
        exit 1 ;;
    esac
done
told=$(for file in runtime/ops/*.c; do seen "$file" | tr -s ' \n' ' ' |
    grep -oE '\.type = CLT_ATTRIBUTE_[A-Z0-9]+, \.offset = [a-z_]*offsetof ?\([a-z0-9_]+, ?[a-z0-9_]+' || :; done | sed -E 's/.*\(([a-z0-9_]+), ?([a-z0-9_]+)$/\1,\2/')
for field in $fields; do
    echo "$told" | grep -qx "$field" || {
        echo "FAILED: ${field#*,} of ${field%,*} is in no schema: ranks that differ in it would pass as equal"
        exit 1
    }
done

#!/bin/sh
# test_newcomer.sh SOURCES FOLDER [CMAKE]: an op that docs/architecture.md, "How to add", would have a newcomer add: the patches apply, the first
# touches no more than 8 files; with CMAKE, the gates and the tests over all ops pass with it, too, and the suite finds the op and its gradient, an
# op of its own, right, and wrong when a kernel is broken.
set -eu
sources=$1
folder=$2
cmake=${3-}
most=8

fail() {
    echo "FAILED: $*"
    exit 1
}

patches=$sources/tests/newcomer
touched=$(grep -c '^diff --git' "$patches/op.patch")
[ "$touched" -le "$most" ] || fail "an op with a gradient takes $touched files, more than $most"

rm -rf "$folder"
mkdir -p "$folder/tree"
(cd "$sources" && tar -cf - --exclude=./build --exclude='./build-*' --exclude=./.git .) | (cd "$folder/tree" && tar -xf -)
cd "$folder/tree"
for name in op native_row; do
    patch -p1 --silent --no-backup-if-mismatch <"$patches/$name.patch" || fail "$name.patch does not apply: bring it up to date with the code, and the page with it"
done
if [ -z "$cmake" ]; then
    cd / && rm -rf "$folder"
    exit
fi
"$cmake" -S . -B "$folder/build" -DCMAKE_BUILD_TYPE=Release "-DCMAKE_C_FLAGS_RELEASE=-O0 -DNDEBUG" -DCLTRAIN_TESTS=ON >"$folder/log" 2>&1 &&
    "$cmake" --build "$folder/build" -j2 --target cltrain-conform cltrain_shared cltrain_static \
        test_schema_graph test_cost_exec test_table_backends >>"$folder/log" 2>&1 || {
    tail -30 "$folder/log"
    fail "the new op does not build"
}
"${cmake%cmake}ctest" --test-dir "$folder/build" --output-on-failure -R '^gates/|^graph/schema|^exec/cost|^backends/table' >"$folder/log" 2>&1 || {
    cat "$folder/log"
    fail "the new op does not pass the gates and the tests over all ops"
}
[ "$(grep -c ' Passed ' "$folder/log")" -ge 12 ] || fail "gates and tests over all ops were not run"

# look WANTED-EXIT: the suite on the op's cases.
look() {
    status=0
    CLTRAIN_KERNEL_FOLDER=$folder/tree/cl "$folder/build/bin/cltrain-conform" --ops scale_rows >"$folder/log" 2>&1 || status=$?
    [ "$status" = "$1" ] || {
        cat "$folder/log"
        fail "the suite ends with $status, not $1"
    }
}
look 0
grep -Eq "[1-9][0-9]* passed" "$folder/log" || fail "no case of the new op was run"
# broken FILE EDIT: the suite fails with the kernel edited so.
broken() {
    cp "cl/$1/scale_rows.cl" kept
    sed "$2" kept >"cl/$1/scale_rows.cl"
    ! cmp -s kept "cl/$1/scale_rows.cl" || fail "no kernel of $1 was broken by $2"
    look 1
    cp kept "cl/$1/scale_rows.cl"
}
broken reference 's/+ offset/- offset/'
broken reference 's/sum += x/sum -= x/'
broken native/cpu 's/+ offset/- offset/'
rm -rf "$folder"

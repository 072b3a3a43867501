#!/bin/sh
# exports.sh COMPILER NM SHARED STATIC FOLDER...: the shared library exports what the headers declare
# CLT_API, no more and no less; the static one defines no name without the prefix (but what C++ makes anew wherever it is used: weak).
set -eu
compiler=$1 nm=$2 shared=$3 static=$4
shift 4
includes=
for folder; do includes="$includes -I$folder"; done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# CLT_API is an attribute once the compiler has replaced it: the name behind it that a parenthesis
# follows is the function's.
for folder; do
    for header in "$folder"/cltrain/*.h; do echo "#include <cltrain/${header##*/}>"; done
done >"$work/all.c"
# shellcheck disable=SC2086
"$compiler" -std=c17 $includes -E -P "$work/all.c" | tr '\n' ' ' | tr ';{}' '\n\n\n' |
    sed -n 's/.*__attribute__((visibility("default"))) *\([^(]*\)(.*/\1/p' |
    sed 's/.*[^A-Za-z0-9_]\(clt_[A-Za-z0-9_]*\) *$/\1/' | sort -u >"$work/declared"

# What a sanitizer adds to a library is not ours, and the version is no function.
"$nm" -D --defined-only "$shared" | awk '$2 != "A" { print $NF }' | sed 's/@.*//' |
    grep -v -e '^__odr_asan' -e '^__asan' -e '^__[ut][bs]san' | sort -u >"$work/exported"

[ "$(wc -l <"$work/declared")" -ge 50 ] || { echo "FAILED: too few declarations found"; exit 1; }
bad=0
report() {
    while read -r name; do
        echo "$1: $name"
        bad=1
    done
}
grep -v '^clt_' "$work/exported" >"$work/foreign" || true
comm -23 "$work/declared" "$work/exported" >"$work/missing"
comm -13 "$work/declared" "$work/exported" >"$work/extra"
report "exported without the prefix clt_" <"$work/foreign"
report "declared CLT_API but not exported" <"$work/missing"
report "exported but not declared CLT_API" <"$work/extra"

"$nm" -g --defined-only "$static" | awk 'NF == 3 && $2 !~ /^[WVu]$/ { print $3 }' |
    grep -v -e '^clt_' -e '^__odr_asan' -e '^__asan' -e '^_GLOBAL__' >"$work/foreign" || true
report "global in the static library without the prefix clt_" <"$work/foreign"

echo "$(wc -l <"$work/exported") names exported"
exit $bad

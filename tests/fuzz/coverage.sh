#!/bin/sh
# Prints which share of the lines of each parser its kept inputs reach; fails where that is below 90 %.
#
#   sh tests/fuzz/coverage.sh BUILD
#
# BUILD is a folder for a build with gcc's --coverage, made if missing; needs gcovr.
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
build=$1
[ -f "$build/build.ninja" ] ||
    cmake -S "$root" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Debug -DCLTRAIN_TESTS=ON -DCLTRAIN_TOOLS=ON \
        -DCMAKE_C_FLAGS="--coverage -O0" -DCMAKE_CXX_FLAGS="--coverage -O0" -DCMAKE_C_COMPILER_LAUNCHER= >/dev/null
cmake --build "$build" --target fuzzers >/dev/null
find "$build" -name '*.gcda' -delete
for folder in "$root"/tests/fuzz/corpus/*; do
    "$build/tests/fuzz/$(basename "$folder")" "$folder" >/dev/null
done
# Files of which a part alone is a parser are measured by that part: FILE:FUNCTION,...
python3 "$root/tests/fuzz/coverage.py" "$root" "$build"

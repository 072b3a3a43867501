#!/bin/sh
# kernel_words.sh CC ROOT: nothing in a kernel is named by a word that some dialect of OpenCL C keeps for itself:
# `channel` in Intel's for FPGAs, `pipe` and `generic` from 2.0 on, and those of clang's own extensions.
set -eu
cc=$1 root=$2
bad=0 files=0
for file in $(find "$root/cl" -name '*.cl'); do
    files=$((files + 1))
    # Without the comments, where every word may stand.
    if "$cc" -x c -fpreprocessed -dD -E -P -w "$file" | grep -nwE 'channel|pipe|generic|quad|complex|imaginary|vec_step'; then
        echo "FAILED: $file: words that some drivers take for their own"
        bad=1
    fi
done
[ $files -ge 20 ] || { echo "FAILED: only $files kernels found in $root/cl"; exit 1; }
echo "$files files looked at"
exit $bad

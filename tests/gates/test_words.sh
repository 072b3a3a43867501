#!/bin/sh
# test_words.sh FOLDER: the check of words finds each of them.
set -eu
gates=$(cd "$(dirname "$0")" && pwd)
rm -rf "$1"
mkdir -p "$1"
cd "$1"
mkdir -p runtime/device runtime/trial runtime/exec backends comm include tools/cltrain-conform cl docs

# try WANTED FILE TEXT
try() {
    echo "$3" >"$2"
    if message=$(sh "$gates/words.sh" .); then got=passes; else got=refused; fi
    [ "$got" = "$1" ] || { echo "FAILED: $3 in $2: $got ($message)"; exit 1; }
    rm "$2"
}

try passes runtime/device/a.c 'the peaks of a device; barrier(CLK_LOCAL_MEM_FENCE);'
try refused runtime/device/a.c '/* the roofs of a device */'
try refused docs/a.md 'Its `clt_roofs` are measured.'
try refused backends/a.h 'typedef struct clt_verdict clt_verdict;'
try passes runtime/device/a.c 'static verdict recall(void);'
try refused runtime/trial/a.c '/* a fenced device */'
try refused docs/a.md 'gradient buckets'
echo "all well"

#!/bin/sh
# Runs fuzzers, one after the other, each from what is kept and from what earlier runs found.
#
#   sh tests/fuzz/run.sh BUILD SECONDS [NAME...]
#
# BUILD is a build with CLTRAIN_FUZZ. New inputs gather in BUILD/tests/fuzz/work/NAME, what fails in
# BUILD/tests/fuzz/found/NAME-*: when it is mended, it belongs into corpus/NAME.
set -u
here=$(cd "$(dirname "$0")" && pwd)
programs=$1/tests/fuzz seconds=$2
shift 2
[ $# -gt 0 ] || set -- $(ls "$here/corpus")
result=0
for name; do
    mkdir -p "$programs/work/$name" "$programs/found"
    log=$programs/found/$name.log
    # stdout is the tools' own; an allocation of more than 512 MiB is a failure, whoever makes it.
    if "$programs/$name" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -malloc_limit_mb=512 -max_len=24000 \
        -print_final_stats=1 -artifact_prefix="$programs/found/$name-" "$programs/work/$name" "$here/corpus/$name" 2>"$log" >/dev/null; then
        echo "$name: $(grep -E 'number_of_executed_units' "$log" | tr -s ' ' | cut -d' ' -f2) inputs in $seconds s, nothing found"
    else
        echo "$name: FOUND something: see $log"
        result=1
    fi
done
exit $result

#!/bin/sh
# Gathers what runs found beside what is kept into the fewest inputs that reach the same edges, and keeps those.
#
#   sh tests/fuzz/minimize.sh BUILD [NAME...]
#
# found-* stay: each was a failure once.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
programs=$1/tests/fuzz
shift
[ $# -gt 0 ] || set -- $(ls "$here/corpus")
for name; do
    new=$programs/minimal/$name
    rm -rf "$new" && mkdir -p "$new" "$programs/work/$name"
    "$programs/$name" -merge=1 -set_cover_merge=1 -use_counters=0 -max_len=24000 "$new" "$here/corpus/$name" "$programs/work/$name" >/dev/null 2>&1
    find "$here/corpus/$name" -type f ! -name 'found-*' -delete
    cp "$new"/* "$here/corpus/$name/"
    echo "$name: $(ls "$here/corpus/$name" | wc -l) inputs, $(cat "$here/corpus/$name"/* | wc -c) bytes"
done

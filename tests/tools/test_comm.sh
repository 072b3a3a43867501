#!/bin/sh
# cltrain-probe comm: rows of ranks on this host, and that nothing is left behind, however it ends.
. "$(dirname "$0")/probe_common.sh"
quick="comm -n 2 --sizes 4,64K --seconds 0.02"

# empty FOLDER: nothing is left in it.
empty() {
    [ -z "$(ls -A "$1")" ] || fail "left behind: $(ls -A "$1" | head -n 3)"
}

# ---- folders whose names a shell or an address would take for more ----

for temporary in "it's here" "a'; touch stained; '" 'percent %41 and %' 'two  words $(touch stained)'; do
    mkdir -p "$folder/tmp/$temporary"
    # shellcheck disable=SC2086
    (cd "$folder" && TMPDIR="$folder/tmp/$temporary" "$program" $quick >"$out" 2>"$err") || fail "in '$temporary' it gave $?"
    says "samples"
    [ -s "$err" ] && fail "it says something on stderr"
    empty "$folder/tmp/$temporary"
    [ -e "$folder/stained" ] && fail "a name of a folder was run as a command"
done
[ "$(ls "$folder/tmp" | wc -l)" -eq 4 ] || fail "another folder was made: $(ls "$folder/tmp")"
# shellcheck disable=SC2086
TMPDIR="$folder/nowhere" expect 1 "no temporary folder $folder/nowhere" $quick

finish

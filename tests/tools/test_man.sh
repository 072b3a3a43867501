#!/bin/sh
# The man page of cltrain-probe tells of every option that its commands have.
. "$(dirname "$0")/probe_common.sh"

page=$sources/docs/man/cltrain-probe.1
for command in list bench compare report verify model recommend shapes tune backends simulate comm; do
    expect 0 "" $command --help
    options=$(sed -n 's/^  \(-[a-z], \)\{0,1\} *--\([a-z-]*\).*/\2/p' "$out")
    [ "$(echo "$options" | wc -l)" -ge 3 ] || fail "the options of $command are not found in its help"
    # Its synopsis has none that it does not have.
    for option in $options; do
        grep -q -- "\\\\-\\\\-$(echo "$option" | sed 's/-/\\\\-/g')" "$page" || fail "the man page does not tell of $command --$option"
    done
    for option in $(sed -n "/^\.B cltrain-probe $command\$/,/^\.\(br\|SH\)/p" "$page" | grep -o '\\-\\-[a-z]*' | tr -d '\\-'); do
        echo "$options" | grep -qx -- "$option" || fail "the man page has an option --$option of $command, which it does not know"
    done
done

finish

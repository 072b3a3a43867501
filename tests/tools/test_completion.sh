#!/bin/sh
# Completion in bash and zsh: of each program every option that its help has, the choices of one, commands and models.
#
#     test_completion.sh BIN SOURCES
set -u
bin=$1 sources=$2
failures=0
PATH=$bin:$PATH
export PATH

fail() {
    failures=$((failures + 1))
    echo "FAILED: $1"
}

# What the last of some words becomes.
in_bash() {
    bash -c '. "$0/tools/completion/cltrain.bash"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _cltrain; printf "%s\n" "${COMPREPLY[@]}"' "$sources" "$@"
}
in_zsh() {
    zsh -f -c 'file=$1; shift; words=("$@"); CURRENT=$#
compadd() { shift; for word; do [[ $word == ${words[CURRENT]}* ]] && print -r -- $word; done }
_files() { : }
_command_names() { : }
complete_it() { source $file }
complete_it' zsh "$sources/tools/completion/_cltrain" "$@"
}

# completes SHELL EXPECTED WORD...
completes() {
    shell=$1 expected=$2
    shift 2
    "in_$shell" "$@" | grep -qxF -e "$expected" || fail "$shell: '$*' is not completed by $expected"
}

shells=
for shell in bash zsh; do
    if command -v $shell >/dev/null; then shells="$shells $shell"; fi
done
for shell in $shells; do
    for program in "cltrain-train" "cltrain-predict" "cltrain-generate" "cltrain-report" "cltrain-run" "cltrain-conform" "cltrain-probe bench" "cltrain-probe comm"; do
        # shellcheck disable=SC2086
        options=$($program --help | sed -n 's/^  \(-[a-zA-Z], \|    \)--\([a-z0-9-]*\).*/--\2/p')
        [ "$(echo "$options" | wc -l)" -ge 3 ] || fail "the options of $program are not found in its help"
        # shellcheck disable=SC2086
        completed=$("in_$shell" $program -)
        for option in $options; do
            echo "$completed" | grep -qxF -e "$option" || fail "$shell: $program is not completed by $option"
        done
    done
    completes $shell tls cltrain-run --security t
    completes $shell gloo cltrain-run --engine ""
    completes $shell adamw cltrain-train mlp --optimizer a
    completes $shell resnet18 cltrain-train res
    completes $shell bench cltrain-probe b
    completes $shell verify cltrain-offline v
    completes $shell --json cltrain-offline inspect --j
    completes $shell --learning-rate cltrain-train --learn
    if [ $shell = bash ]; then completes bash adamw cltrain-train mlp --optimizer = a; fi # "=" is a word of its own there
    [ -z "$("in_$shell" cltrain-run --security x)" ] || fail "$shell: what is no choice is completed"
done
[ -n "$shells" ] || exit 77
[ $failures -eq 0 ]

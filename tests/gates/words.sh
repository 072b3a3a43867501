#!/bin/sh
# words.sh ROOT [LIST]: one word, one thing. What was given up for a word of the glossary does not come back, but for the fences of
# OpenCL's barriers.
set -eu
root=$1 list=${2-$(cd "$(dirname "$0")" && pwd)/words.txt}
bad=0 words=0
cd "$root"
tab=$(printf '\t')
while IFS=$tab read -r expression instead folders; do
    case $expression in '#'*) continue ;; esac
    words=$((words + 1))
    for folder in $folders; do [ -d "$folder" ] || { echo "FAILED: there is no folder $folder"; exit 1; }; done
    # shellcheck disable=SC2086
    if grep -rniE "$expression" $folders --include='*.[ch]' --include='*.cl' --include='*.md' --include='*.cc' --include='*.inc' | grep -v '_MEM_FENCE'; then
        echo "FAILED: say $instead (docs/architecture.md, Glossary)"
        bad=1
    fi
done <"$list"
[ $words -ge 3 ] || { echo "FAILED: only $words words in $list"; exit 1; }
echo "$words words"
exit $bad

#!/bin/sh
# test_gpu_check.sh SCRIPT BUILD: the check of a GPU, here of a CPU: parts that are well, fail or hang, and what is kept of them.
program=$1 build=$2 name=gpu_check
. "$(dirname "$0")/common.sh"
cd "$folder" || exit 1

refuse "unknown option '--fast'" --fast
refuse "--device needs a value" --device
refuse "--minutes is '0': expected a whole number above 0" --minutes 0
refuse "there is no part 'suit'" --parts host,suit
mkdir full && : >full/file
refuse "--output: full is not empty" --output full --build "$build"

expect 0 "" --device cpu --build "$build" --parts host,list,rows --output small
says "small.tar.gz has all of it"
for part in list rows-convnet rows-resnet18 rows-gpt2:nano; do
    grep -qE "^$part +[0-9]+ s  ok\$" small/summary.txt || fail "no word of $part: $(cat small/summary.txt)"
    grep -q '"schema": "cltrain-probe' "small/$part.json" || fail "$part.json is no document"
done
grep -q "^cltrain" small/host.txt || grep -q "Linux" small/host.txt || fail "host.txt says nothing"
tar -tzf small.tar.gz | grep -q '^small/rows-convnet.json$' || fail "the pack lacks a file"

# Tools that fail, and hang.
mkdir -p fake/bin
printf '#!/bin/sh\necho begun\nsleep 1000\n' >fake/bin/cltrain-probe
printf '#!/bin/sh\necho "1 failed"\nexit 3\n' >fake/bin/cltrain-conform
chmod +x fake/bin/*
expect 1 "" --build fake --parts verify,suite --minutes 1 --output bad
grep -qE '^verify .* stopped: no time was left$' bad/summary.txt || fail "a part that hangs: $(cat bad/summary.txt)"
grep -qE '^suite .* failed with status 3$' bad/summary.txt || fail "a part that fails: $(cat bad/summary.txt)"
grep -q begun bad/verify.txt || fail "what a part wrote before it was stopped is lost"
tar -tzf bad.tar.gz | grep -q '^bad/suite.txt$' || fail "the pack of what failed lacks a file"
[ $failures -eq 0 ]

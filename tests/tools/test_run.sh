#!/bin/sh
# cltrain-run: what ranks are told, their output, exit codes, signals, restarts, and that nothing is left behind. The ranks are small shell
# programs.
#
#     test_run.sh PROGRAM BUILD
program=$1
build=$2
name=run
. "$(dirname "$0")/common.sh"
export D="$folder"
unset CLTRAIN_COMM_TOKEN CLTRAIN_COMM_TOKEN_FILE CLTRAIN_COMM_SECURITY CLTRAIN_COMM_JOB CLTRAIN_COMM_STORE CLTRAIN_COMM_INTERFACE
code=0

# expect CODE ARGUMENT...: that exit code, for a run that takes no more than two minutes.
expect() {
    wanted=$1
    shift
    timeout -k 5 120 "$program" "$@" >"$out" 2>"$err"
    code=$?
    [ "$code" -eq "$wanted" ] || fail "'$*' gave exit code $code, not $wanted"
}

complains() {
    grep -qF -- "$1" "$err" || fail "stderr does not say '$1'"
}

# refuse WORDS ARGUMENT...: exit code 2, nothing on stdout.
refuse() {
    words=$1
    shift
    expect 2 "$@"
    complains "$words"
    [ -s "$out" ] && fail "'$*' printed on stdout"
}

# gone_of FILE: no process of those whose numbers are in it is alive.
gone_of() {
    # shellcheck disable=SC2046
    gone $(cat "$1")
}

lines_are() {
    [ "$(cat "$1" 2>/dev/null | wc -l)" -eq "$2" ]
}

# ---- the command line ----

expect 0 --help
says "Usage: cltrain-run"
awk 'length > 104 { exit 1 }' "$out" || fail "--help has lines of more than 104 characters"
expect 0 --version
grep -Eq '^cltrain-run [0-9]+\.[0-9]+\.[0-9]+$' "$out" || fail "--version"
refuse "no program given"
refuse "no program given" -n 2 --
refuse "unknown option '-c'" -c -n 2 true
expect 0 --nproc_per_node=2 sh -c 'echo "$RANK/$WORLD_SIZE $1"' sh --quiet # the program's own, from its name on
says "[rank 1] 1/2 --quiet"
expect 0 -np 3 --nnodes 1 -- sh -c 'echo "$RANK/$WORLD_SIZE"'
says "[rank 2] 2/3"
expect 0 -n2 true
refuse "did you mean --max-restarts?" --max-restart 3 -- true
refuse "unknown option '--frobnicate'" --frobnicate -- true
refuse "--ranks '0'" -n 0 -- true
refuse "--on-failure 'x': expected stop or continue" --on-failure x -- true
refuse "--node-rank 1: expected a number below" --node-rank 1 -- true
refuse "needs --master" --nnodes 2 -- true
refuse "needs --job NAME" --nnodes 2 --store file:///tmp/x -- true
refuse "--master 'h:x'" --nnodes 2 --master h:x -- true
refuse "--standalone and --nnodes 2 exclude each other" --standalone --nnodes 2 -- true
refuse "--master-port 65536: expected 1 to 65535" --master-port 65536 -- true
expect 0 --standalone --nproc-per-node=2 --master-port=45123 -- sh -c 'echo "$MASTER_ADDR:$MASTER_PORT"'
says "[rank 1] 127.0.0.1:45123"
CLTRAIN_COMM_SECURITY=some refuse "CLTRAIN_COMM_SECURITY 'some'" -- true
expect 1 --nnodes 2 --master 127.0.0.1:1 -- true
complains "several hosts need one secret"
CLTRAIN_COMM_TOKEN=short expect 1 -n 2 -- true
complains "fewer than 16 characters"
CLTRAIN_COMM_TOKEN_FILE=$folder/absent expect 1 -n 2 -- true
complains "absent"
expect 127 -n 2 -- "$folder/no-such-program"
for i in 1 2 3 4 5; do
    expect 127 -n 1 -- "$folder/no-such-program"
    grep -q "status 143" "$err" && fail "the launcher's own signal is told as the end of a program that is not there"
done
complains "no-such-program"
expect 126 -- "$folder"

# ---- what ranks are told ----

expect 0 -n 3 --tag-output --devices A,B -- sh -c 'echo "$RANK/$WORLD_SIZE $LOCAL_RANK/$LOCAL_WORLD_SIZE $CLTRAIN_DEVICE $CLTRAIN_RUN_ON_FAILURE" \
    "$CLTRAIN_RESTART_COUNT $CLTRAIN_COMM_GENERATION"; echo "$MASTER_ADDR ${MASTER_PORT:?} $CLTRAIN_COMM_STORE $CLTRAIN_COMM_JOB $CLTRAIN_COMM_STORE_SERVED"
    echo "${#CLTRAIN_COMM_TOKEN} characters"; cat'
says "[rank 0] 0/3 0/3 A stop 0 0"
says "[rank 1] 1/3 1/3 B stop 0 0"
says "[rank 2] 2/3 2/3 A stop 0 0"
says "64 characters"
[ "$(grep -c ' tcp://127.0.0.1:[1-9][0-9]* run-[0-9a-f]* 1$' "$out")" -eq 3 ] || fail "the store's address"
[ "$(grep ' tcp://' "$out" | cut -d ' ' -f 5- | sort -u | wc -l)" -eq 1 ] || fail "ranks are told different stores"
printf 'a secret of the file \t\n\n' >"$folder/token"
CLTRAIN_COMM_TOKEN_FILE=$folder/token expect 0 -n 2 --job name --security auth --on-failure continue -- \
    sh -c 'env | grep "a secret"; cd /; read -r token <"$CLTRAIN_COMM_TOKEN_FILE"; echo "<$token> $CLTRAIN_COMM_JOB $CLTRAIN_COMM_SECURITY $CLTRAIN_RUN_ON_FAILURE"'
says "[rank 1] <a secret of the file> name auth continue"
[ "$(wc -l <"$out")" -eq 2 ] || fail "the secret of a file is in a rank's environment"
printf 'a secret of\ntwo lines\n' >"$folder/token"
mkfifo "$folder/once"
cat "$folder/token" >"$folder/once" &
CLTRAIN_COMM_TOKEN_FILE=$folder/once expect 0 -- sh -c 'echo "<$CLTRAIN_COMM_TOKEN>"'
[ "$(cat "$out")" = "<a secret of
two lines>" ] || fail "a token of two lines"
printf 'a secret with\0a zero byte' >"$folder/token"
CLTRAIN_COMM_TOKEN_FILE=$folder/token expect 1 -- true
complains "holds a zero byte"
CLTRAIN_COMM_TOKEN=$(head -c 5000 /dev/zero | tr '\0' a) expect 0 -n 2 -- sh -c 'echo "${#CLTRAIN_COMM_TOKEN}"'
says "[rank 1] 5000"
echo input | expect 0 -n 2 --tag-output -- sh -c '[ "$RANK" = 0 ] && sleep 0.3; echo "<$(cat)>"' # the shell's pipe runs expect apart: looked at below
says "[rank 0] <input>"
says "[rank 1] <>"

# ---- output ----

expect 0 -- sh -c 'echo alone; echo wrong >&2'
[ "$(cat "$out" "$err")" = "alone
wrong" ] || fail "one rank is prefixed"
expect 0 --prefix -- echo alone # as it was called before
says "[rank 0] alone"
expect 0 -n 2 -- sh -c 'echo "{$RANK}"; echo "<$RANK>" >&2'
grep -qx "{0}" "$out" && grep -qx "<0>" "$err" || fail "the output of rank 0 is not as it is"
grep -qxF "[rank 1] {1}" "$out" && grep -qxF "[rank 1] <1>" "$err" || fail "the output of rank 1 has no prefix"
expect 0 -n 4 --tag-output -- sh -c 'for i in 1 2 3 4 5 6 7 8 9; do printf %s "part "; echo "of $RANK"; echo "err $RANK" >&2; done; printf end'
[ "$(grep -cxE '\[rank ([0-3])\] part of \1' "$out")" -eq 36 ] || fail "lines are mixed"
[ "$(grep -cxE '\[rank ([0-3])\] err \1' "$err")" -eq 36 ] || fail "lines on stderr are mixed"
[ "$(grep -cxE '\[rank [0-3]\] end' "$out")" -eq 4 ] || fail "a last line without its end"
expect 0 -n 2 -- sh -c 'head -c 300000 /dev/zero | tr "\0" x; echo'
[ "$(tr -dc x <"$out" | wc -c)" -eq 600000 ] || fail "a long line is not whole"
expect 3 -n 2 --log-dir "$folder/logs" -- sh -c 'echo "log of $RANK"; echo more >&2; [ "$RANK" = 0 ] || { sleep 0.3; exit 3; }'
[ "$(cat "$folder/logs/rank-1.log")" = "log of 1
more" ] || fail "the log of rank 1"
expect 1 --log-dir /dev/null/x -- true
complains "/dev/null/x"
{
    timeout 60 "$program" -n 2 -- sh -c 'echo $$ >>"$D/pipe"; while :; do echo y; done' 2>"$err"
    echo $? >"$folder/status"
} | head -n 1 >"$out"
[ "$(cat "$folder/status")" -eq 141 ] || fail "nobody reads: exit code $(cat "$folder/status")"
await gone_of "$folder/pipe" || fail "ranks live on when nobody reads them"

# Nobody can write there: it is said, and no success.
timeout -k 5 60 "$program" -n 2 -- echo hi >/dev/full 2>"$err"
code=$?
[ $code -eq 1 ] || fail "a full disk on stdout: exit code $code"
complains "stdout cannot be written: No space left on device"
mkdir "$folder/full" && ln -s /dev/full "$folder/full/rank-1.log"
expect 1 -n 2 --log-dir "$folder/full" -- echo hi
complains "a log in --log-dir cannot be written: No space left on device"
says "[rank 1] hi"
# Nobody reads for a while: signals, deaths and deadlines are attended to all the same.
mkfifo "$folder/pause"
sleep 1000 <"$folder/pause" &
reader=$!
chatter='echo $$ >>"$D/chatter"; [ "$RANK" = 0 ] || trap "" TERM; while :; do echo "a line that nobody reads"; done'
timeout -k 5 60 "$program" -n 2 --grace 0.5 -- sh -c "$chatter" >"$folder/pause" 2>"$err" &
waited=$!
await lines_are "$folder/chatter" 2 || fail "ranks whose output nobody reads did not start"
sleep 1
kill -TERM "$(tr -d ' ' <"/proc/$waited/task/$waited/children")"
tries=0
while kill -0 $waited 2>/dev/null && [ $tries -lt 200 ]; do sleep 0.1; tries=$((tries + 1)); done
[ $tries -lt 200 ] || fail "a launcher whose output nobody reads does not end on SIGTERM"
kill $reader
wait $waited
code=$?
[ $code -eq 137 ] || [ $code -eq 143 ] || fail "a launcher whose output nobody reads gave $code"
gone_of "$folder/chatter" || fail "ranks whose output nobody reads live on"
# And nothing is lost when it is read later.
timeout -k 5 60 "$program" -n 2 -- sh -c 'head -c 3000000 /dev/zero | tr "\0" "\n"' 2>"$err" | { sleep 1; wc -l; } >"$out"
[ "$(cat "$out")" -eq 6000000 ] || fail "a reader that is slow has got $(cat "$out") lines"

# ---- exit codes, and failing ranks ----

expect 0 -n 3 -- true
expect 7 -n 3 -- sh -c '[ "$RANK" = 1 ] && exit 7; exec sleep 100'
complains "rank 1 ended with status 7"
expect 137 -n 2 -- sh -c '[ "$RANK" = 1 ] && kill -9 $$; exec sleep 100'
complains "rank 1 ended with status 137 (Killed)"
expect 5 -n 2 --grace 0.5 -- sh -c 'trap "" TERM; if [ "$RANK" = 0 ]; then until [ -e "$D/deaf" ]; do sleep 0.1; done; exit 5; fi
    touch "$D/deaf"; while :; do sleep 0.1; done'
complains "killed"
expect 0 -n 3 --on-failure continue -- sh -c '[ "$RANK" = 1 ] && exit 7; sleep 0.5; echo "went on"'
[ "$(grep -c 'went on' "$out")" -eq 2 ] || fail "the others did not go on"
# The first failure counts: rank 0 fails when rank 1 has been taken note of.
expect 7 -n 2 --on-failure continue -- sh -c 'if [ "$RANK" = 1 ]; then echo $$ >"$D/part"; mv "$D/part" "$D/first"; exit 7; fi
    until [ -e "$D/first" ]; do sleep 0.1; done; while kill -0 "$(cat "$D/first")" 2>/dev/null; do sleep 0.1; done; exit 8'
expect 0 -n 2 -q -- true
[ -s "$err" ] && fail "-q says something"

# One that hangs while the others end well does not hold up the launcher.
expect 0 -n 3 --on-failure continue --late 1 --grace 1 -- sh -c '[ "$RANK" = 1 ] && kill -STOP $$; exit 0'
complains "--late"

# What a dead rank leaves does not wait for the others' end.
left='if [ "$RANK" = 1 ]; then sleep 1000 & echo $! >"$D/part"; mv "$D/part" "$D/child"; kill -9 $$; fi
    until [ -e "$D/child" ]; do sleep 0.1; done
    while kill -0 "$(cat "$D/child")" 2>/dev/null; do sleep 0.1; done'
expect 0 -n 2 --on-failure continue -- sh -c "$left"

# ---- restarts ----

restarted='echo "start $CLTRAIN_RESTART_COUNT $CLTRAIN_COMM_GENERATION $CLTRAIN_COMM_JOB"
    [ "$RANK" = 1 ] && [ "$CLTRAIN_RESTART_COUNT" -lt "$FAILING" ] && exit 9; [ "$RANK" = 1 ] || sleep 0.3'
FAILING=2 expect 0 -n 2 --tag-output --max-restarts 3 --job r --log-dir "$folder/again" -- sh -c "$restarted"
says "[rank 1] start 0 0 r"
says "[rank 1] start 1 1 r+1"
says "[rank 0] start 2 2 r+2"
complains "restart 2 of 3"
[ -e "$folder/again/rank-0.log" ] && [ -s "$folder/again/rank-1.restart-2.log" ] || fail "logs of restarts"
FAILING=9 expect 9 -n 2 --max-restarts 1 -- sh -c "$restarted"
[ "$(grep -c 'rank 1. start' "$out")" -eq 2 ] || fail "not started twice"

# ---- signals ----

# run_and FILE ARGUMENT...: in the background, until each rank has put its number into the file.
run_and() {
    list=$1 count=$2
    shift 2
    rm -f "$list"
    timeout -k 5 120 "$program" "$@" >"$out" 2>"$err" &
    waited=$!
    await lines_are "$list" "$count" || fail "'$*' did not start"
    launcher=$(tr -d ' ' <"/proc/$waited/task/$waited/children")
}

for pair in INT:130 TERM:143 HUP:129; do
    signal=${pair%:*}
    run_and "$folder/pids" 2 -n 2 -- sh -c 'trap "echo got '"$signal"'; exit '"${pair#*:}"'" '"$signal"'; echo $$ >>"$D/pids"; while :; do sleep 0.1; done'
    kill "-$signal" "$launcher"
    wait $waited
    code=$?
    [ $code -eq "${pair#*:}" ] || fail "SIG$signal gave exit code $code"
    [ "$(grep -c "got $signal" "$out")" -eq 2 ] || fail "SIG$signal was not forwarded"
    gone_of "$folder/pids" || fail "SIG$signal left a rank"
done
run_and "$folder/pids" 2 -n 2 --grace 0.5 -- sh -c 'trap "" TERM; echo $$ >>"$D/pids"; while :; do sleep 0.1; done'
kill "$launcher"
wait $waited 2>/dev/null
code=$?
[ $code -eq 137 ] || fail "ranks that do not end: exit code $code"
gone_of "$folder/pids" || fail "a rank that did not end was left"
# One that cannot be killed is left, and ends with the launcher at the latest.
rm -f "$folder/pids"
timeout -k 5 120 env LD_PRELOAD="$build/libunkillable.so" ASAN_OPTIONS="${ASAN_OPTIONS:+$ASAN_OPTIONS:}verify_asan_link_order=0" \
    "$program" -n 2 --grace 0.5 -- sh -c 'trap "" TERM
        [ "$RANK" = 1 ] && echo $$ >"$D/pids"
        while [ "$RANK" = 1 ] || ! [ -s "$D/pids" ]; do sleep 0.1; done
        exit 5' >"$out" 2>"$err"
code=$?
[ $code -eq 5 ] || fail "a rank that cannot be killed: exit code $code"
complains "rank 1 (process $(cat "$folder/pids")) cannot be killed"
await gone_of "$folder/pids" || fail "a rank that could not be killed outlives the launcher"
# Stopped ones are ended too.
run_and "$folder/pids" 2 -n 2 --grace 60 -- sh -c 'echo $$ >>"$D/pids"; while :; do sleep 0.1; done'
kill -STOP "$(tail -n 1 "$folder/pids")"
kill "$launcher"
wait $waited 2>/dev/null
code=$?
[ $code -eq 143 ] || fail "a stopped rank: exit code $code"
grep -q 'did not end' "$err" && fail "a stopped rank did not hear that it is to end"

# ---- nothing is left behind ----

# Children of ranks, in the same group and in sessions of their own.
children='echo $$ >>"$D/pids"; sleep 1000 & echo $! >>"$D/pids"
    setsid sh -c "echo \$\$ >>\"\$D/pids\"; trap \"\" TERM; sleep 1000 & echo \$! >>\"\$D/pids\"; wait" &'
run_and "$folder/pids" 8 -n 2 -- sh -c "$children wait"
kill -9 "$(head -n 1 "$folder/pids")"
wait $waited 2>/dev/null
gone_of "$folder/pids" || fail "a rank's children were left"
run_and "$folder/pids" 8 -n 2 -- sh -c "$children sleep 0.5"
wait $waited 2>/dev/null
gone_of "$folder/pids" || fail "children of ranks that ended well were left"
# The launcher itself is killed: what is in the ranks' groups ends.
run_and "$folder/pids" 4 -n 2 -- sh -c 'echo $$ >>"$D/pids"; sleep 1000 & echo $! >>"$D/pids"; trap "" TERM INT HUP; while :; do sleep 1; done'
kill -9 "$launcher"
wait $waited 2>/dev/null
await gone_of "$folder/pids" || fail "a launcher that was killed left ranks"

# ---- several hosts ----

port() {
    "$program" -- sh -c 'echo $MASTER_PORT'
}

# hosts CODE0 CODE1 ARGUMENT...: two launchers of one job.
hosts() {
    first=$1 second=$2
    shift 2
    timeout -k 5 120 "$program" --tag-output --nnodes 2 --node-rank 1 --connect 60 "$@" >"$out.1" 2>"$err.1" &
    other=$!
    timeout -k 5 120 "$program" --tag-output --nnodes 2 --node-rank 0 --connect 60 "$@" >"$out.0" 2>"$err.0"
    got=$?
    wait $other
    code=$?
    cat "$out.0" "$out.1" >"$out"
    cat "$err.0" "$err.1" >"$err"
    [ $got -eq "$first" ] || fail "'$*' on host 0 gave exit code $got, not $first"
    [ $code -eq "$second" ] || fail "'$*' on host 1 gave exit code $code, not $second"
}

export CLTRAIN_COMM_TOKEN=0123456789abcdefgh
hosts 0 0 -n 2 --master-addr 127.0.0.1 --master-port "$(port)" -- sh -c 'echo "$RANK/$WORLD_SIZE $LOCAL_RANK $GROUP_RANK"; sleep "0.$RANK"'
for rank in 0 1 2 3; do says "[rank $rank] $rank/4 $((rank % 2)) $((rank / 2))"; done
hosts 6 6 -n 1 --store "file://$folder/store" --job first -- sh -c '[ "$RANK" = 1 ] && exit 6; exec sleep 100'
complains "rank 1, on another host, ended with status 6"
FAILING=1 hosts 0 0 -n 1 --master "127.0.0.1:$(port)" --max-restarts 1 -- sh -c "$restarted"
says "[rank 0] start 1 1 run+1"
hosts 0 0 -n 1 --master "127.0.0.1:$(port)" --on-failure continue -- sh -c '[ "$RANK" = 1 ] && exit 7; sleep 1'
# Who serves the store does not go before the others know the end, however early that is.
for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do hosts 0 0 -n 1 --master "127.0.0.1:$(port)" -- true; done
# A launcher that is killed takes its ranks with it, the others' fail, and one that is started in its place takes part in the restart: after the start has
# failed, or before.
half='echo $$ >"$D/half.$RANK.$CLTRAIN_RESTART_COUNT"; [ "$CLTRAIN_RESTART_COUNT" = 0 ] || { echo "through $RANK $CLTRAIN_RESTART_COUNT"; exit 0; }
    [ "$RANK" = 1 ] && exec sleep 1000; until [ -s "$D/half.1.0" ]; do sleep 0.1; done; while kill -0 "$(cat "$D/half.1.0")" 2>/dev/null; do sleep 0.1; done
    until [ -e "$D/fail" ]; do sleep 0.1; done; exit 5'
for late in no yes; do
    address=127.0.0.1:$(port)
    rm -f "$folder"/half.* "$folder/fail"
    [ $late = no ] && touch "$folder/fail"
    timeout -k 5 120 "$program" --nnodes 2 --node-rank 0 --master "$address" --max-restarts 1 -- sh -c "$half" >"$out" 2>"$err" &
    other=$!
    timeout -k 5 120 "$program" --nnodes 2 --node-rank 1 --master "$address" --max-restarts 1 -- sh -c "$half" >"$folder/killed" 2>&1 &
    waited=$!
    await [ -s "$folder/half.1.0" ] || fail "host 1 did not start"
    kill -9 "$(tr -d ' ' <"/proc/$waited/task/$waited/children")"
    wait $waited
    timeout -k 5 120 "$program" --nnodes 2 --node-rank 1 --master "$address" --max-restarts 1 -- sh -c "$half" >"$folder/anew" 2>&1 &
    waited=$!
    [ $late = no ] || { await grep -q "waiting for the end of its start" "$folder/anew" || fail "it does not wait"; touch "$folder/fail"; }
    wait $other || fail "host 0 gave $? after host 1 was started anew: $(cat "$err")"
    wait $waited || fail "host 1, started anew, gave $?: $(cat "$folder/anew")"
    says "through 0 1"
    grep -q "through 1 1" "$folder/anew" || fail "host 1 did not take part: $(cat "$folder/anew")"
done
# A second launcher with the same number leaves those that are there alone.
address=127.0.0.1:$(port)
rm -f "$folder/twice" "$folder/refused"
hosts 0 0 -n 1 --master "$address" -- sh -c 'echo $$ >>"$D/twice"; until [ -e "$D/refused" ]; do sleep 0.1; done; echo "went through"' &
both=$!
await lines_are "$folder/twice" 2 || fail "two hosts did not start"
timeout -k 5 60 "$program" --nnodes 2 --node-rank 1 --master "$address" -- echo intruder >"$folder/intruder" 2>&1
code=$?
touch "$folder/refused"
wait $both
[ $code -eq 1 ] || fail "a second launcher of host 1 gave $code"
grep -q "another launcher is host 1 of job 'run' already" "$folder/intruder" || fail "it was not told why: $(cat "$folder/intruder")"
[ "$(cat "$out.0" "$out.1" | grep -c 'went through')" -eq 2 ] || fail "a second launcher ended the job: $(cat "$err.0" "$err.1")"
expect 1 --nnodes 2 --master "127.0.0.1:$(port)" --connect 0.5 -- true
complains "host 1 did not come within 0.5 s"
expect 1 --nnodes 2 --node-rank 1 --master "127.0.0.1:$(port)" --connect 0.5 -- true
complains "cannot be reached"
# The host that serves the store is killed: the other ends its ranks.
address=127.0.0.1:$(port)
rm -f "$folder/other"
timeout -k 5 120 "$program" --nnodes 2 --node-rank 1 --master "$address" -- sh -c 'echo $$ >>"$D/other"; exec sleep 1000' >"$out" 2>"$err" &
other=$!
run_and "$folder/pids" 1 --nnodes 2 --node-rank 0 --master "$address" -- sh -c 'echo $$ >>"$D/pids"; exec sleep 1000'
await lines_are "$folder/other" 1
kill -9 "$launcher"
wait $waited 2>/dev/null
wait $other
code=$?
[ $code -eq 1 ] || fail "the other host's exit code is $code"
gone_of "$folder/other" || fail "the other host's ranks were left"

[ "$failures" -eq 0 ] || { echo "$failures failures"; exit 1; }
echo "all well"

#!/bin/sh
# test_pipeline.sh PROGRAM RUN PYTHON: a model in stages, which are threads or processes, trains as in one process; its files serve any number of stages.
program=$1 run=$2 python=$3 name=pipeline
here=$(cd "$(dirname "$0")" && pwd)
. "$here/common.sh"
cd "$folder" || exit 1
model="mlp:48,32,24 --data digits --seed 3 --optimizer adamw --lr 0.002"

# same A.json B.json: what the two runs came to.
same() {
    "$python" - "$1" "$2" <<'END' || fail "$2 came to something else than $1"
import json, sys
a, b = (json.load(open(path)) for path in sys.argv[1:])
for key in ("train_loss", "train_accuracy", "test_loss", "test_accuracy", "steps"):
    assert abs(a[key] - b[key]) < 1e-6, (key, a[key], b[key])
END
}

# Four batches of 16 that are one update are what four micro-batches of a batch of 64 are.
# shellcheck disable=SC2086
expect 0 "" $model --batch 16 --accumulate 4 --steps 6 --json=alone.json --export alone.safetensors
for schedule in interleaved 1f1b gpipe zb-h1; do
    # shellcheck disable=SC2086
    expect 0 "" $model --batch 64 --steps 6 --devices 0,0 --pipeline "stages=2,microbatches=4,schedule=$schedule" --json=two.json --export two.safetensors
    same alone.json two.json
    json two.json "o['pipeline_schedule'] == '$schedule' and o['microbatches'] == 4 and len(o['stages']) == 2 and all(s['parameters'] > 0 for s in o['stages'])"
    json two.json 'sum(s["parameters"] for s in o["stages"]) == o["parameters"] and "shares" not in o and o["batch"] == 64'
    cmp -s alone.safetensors two.safetensors || fail "$schedule: the weights have other bits"
done
json two.json 'all(s["micro_batches_in_flight"] <= 2 and s["peak_device_bytes"] > 0 for s in o["stages"])'
# shellcheck disable=SC2086
expect 0 "" $model --batch 64 --steps 2 --devices 0,0 --pipeline microbatches=4,split=fc3
says "stages"
says "micro-batches in flight"

# Its turns, timed: four micro-batches, three kinds of turns, two stages.
# shellcheck disable=SC2086
expect 0 "turns.json" $model --batch 64 --steps 2 --devices 0,0 --pipeline microbatches=4,schedule=zb-h1 --profile=turns.json
says "All turns end after"
says "by these times it is"
json turns.json 'len(o["traceEvents"]) == 4 * 3 * 2 and all(e["dur"] > 0 for e in o["traceEvents"]) and {e["tid"] for e in o["traceEvents"]} == {0, 1}'

# Processes, in three stages; and a file of theirs serves one process and two stages.
# shellcheck disable=SC2086
"$run" -n 3 -- "$program" $model --batch 64 --steps 3 --pipeline microbatches=4 --save three.safetensors >"$out" 2>"$err" || fail "three stages that are processes"
# shellcheck disable=SC2086
expect 0 "" $model --batch 64 --steps 6 --devices 0,0 --pipeline microbatches=4 --resume three.safetensors --json=resumed.json
same alone.json resumed.json
# shellcheck disable=SC2086
expect 0 "" $model --batch 64 --steps 6 --resume three.safetensors --json=one.json
json one.json "o['steps'] == 6"
expect 0 "" $model --batch 64 --devices 0,0 --pipeline microbatches=4 --evaluate three.safetensors --json

# Two pipelines of two stages are two ranks, each with batches of its own: threads, and processes, whose files serve all.
# shellcheck disable=SC2086
"$run" -n 2 -- "$program" $model --batch 32 --accumulate 2 --steps 6 --json=ranks.json --export ranks.safetensors >"$out" 2>"$err" || fail "two ranks"
# shellcheck disable=SC2086
expect 0 "the first of 2 pipelines of 2 stages" $model --batch 64 --steps 6 --devices 0,0,0,0 --pipeline stages=2,microbatches=2 --json=grid.json --export grid.safetensors --save grid.checkpoint
json grid.json 'o["pipelines"] == 2 and len(o["stages"]) == 4 and o["batch"] == 128 and o["stages"][0]["parameters"] == o["stages"][2]["parameters"] and "shares" not in o'
# shellcheck disable=SC2086
"$run" -n 4 -- "$program" $model --batch 64 --steps 6 --pipeline stages=2,microbatches=2 --json=processes.json --export processes.safetensors >"$out" 2>"$err" || fail "a grid of processes"
cmp -s grid.safetensors processes.safetensors || fail "threads and processes come to other bits"
"$python" - <<'END' || fail "a grid comes to something else than ranks"
import json
grid, processes = (json.load(open(f"{name}.json")) for name in ("grid", "processes"))
for key in grid:
    if key.startswith(("train_", "validation_", "test_")): assert grid[key] == processes[key], (key, grid[key], processes[key])
assert grid["test_samples"] == sum(map(sum, grid["test_confusion"])), grid["test_confusion"]
END
# shellcheck disable=SC2086
"$run" -n 4 -- "$program" $model --batch 64 --steps 8 --pipeline stages=2,microbatches=2 --resume grid.checkpoint --json=grid.json --profile=turns.json >"$out" 2>"$err" || fail "a grid goes on"
json turns.json 'len(o["traceEvents"]) == 2 * 2 * 2'
# shellcheck disable=SC2086
refuse "--pipeline stages=2: there are 3 ranks" $model --devices 0,0,0 --pipeline stages=2

# A model that has no room on a device has room on two.
large="mlp:1024,1024,1024 --data digits --batch 64 --steps 2 --optimizer adam --memory-limit 24M --recompute none --offload none"
# shellcheck disable=SC2086
expect 1 "MiB, and the memory limit is 24.0 MiB" $large
# shellcheck disable=SC2086
expect 0 "" $large --devices 0,0 --pipeline microbatches=4 --json=large.json
json large.json 'all(s["peak_device_bytes"] <= 24 << 20 for s in o["stages"])'

# Micro-batches in flight have a plan each, for which what has no room lies in the host's memory.
for i in 1 2 3 4 5; do cat "$here/test_pipeline.sh"; done >text
expect 0 "" gpt2:4/4/128 --data text:text,context=64 --batch 4 --steps 2 --seed 3 --devices 0,0 --pipeline microbatches=4 --memory-limit 9500K --json=text.json
json text.json 'all(s["peak_device_bytes"] <= 9500 << 10 for s in o["stages"])'

# Whichever stage is killed, the others name it, and all end; what was saved is gone on from.
for victim in 0 1 2; do
    rm -f saved.safetensors
    # shellcheck disable=SC2016,SC2086
    "$run" -n 3 -- sh -c 'echo $$ >pid.$RANK; exec "$@"' sh "$program" $model --batch 64 --steps 1000000 --pipeline microbatches=4 --save saved.safetensors --save-every 1 >"$out" 2>"$err" &
    job=$!
    while [ ! -f saved.safetensors ] && kill -0 $job 2>/dev/null; do sleep 0.1; done
    kill -KILL "$(cat pid.$victim)"
    wait $job && fail "all is well with stage $victim killed"
    grep -q "rank $victim was lost" "$err" || fail "the others do not name stage $victim"
done
# shellcheck disable=SC2086
expect 0 "" $model --batch 64 --devices 0,0 --pipeline microbatches=4 --evaluate saved.safetensors --json

# Usage.
for spec in chunks=0 stages stages=1 stages=x microbatches=0 schedule=best split= other=1; do
    # shellcheck disable=SC2086
    refuse "--pipeline '$spec': expected" $model --devices 0,0 --pipeline "$spec"
done
# shellcheck disable=SC2086
refuse "there is one rank" $model --pipeline stages=2
# shellcheck disable=SC2086
refuse "stages=3: there are 2 ranks" $model --devices 0,0 --pipeline stages=3
# shellcheck disable=SC2086
expect 1 'no layer and no tensor named "fc9"' $model --devices 0,0 --pipeline split=fc9
for other in "--shard optimizer" "--compress f16" "--accumulate 2" "--balance" "--lr-find" "--export x.onnx" "--on-failure shrink"; do
    # shellcheck disable=SC2086
    refuse "--pipeline and ${other%% *}" $model --devices 0,0 --pipeline stages=2 $other
done
[ $failures -eq 0 ]

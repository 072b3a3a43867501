#!/bin/sh
# Predicted against measured step times: mlp, convnet and resnet18 at batch 32, 64 and 128. Each twice: with the problems timed at
# the batch itself, and with those of the other two batches alone, so that all that depends on the batch is interpolated or
# extrapolated. Launches are timed, and steps run as they are, by turns in one process. Wants a machine that does nothing else.
#
#     model_accuracy.sh PROGRAM SOURCES BUILD PYTHON3 [SECONDS a case]
. "$(dirname "$0")/probe_common.sh"
seconds=${5-12}
[ -n "$python" ] || { echo "skipped: it needs Python"; exit 77; }
[ -z "${CLTRAIN_DEVICE-}" ] || echo "on $CLTRAIN_DEVICE"

# predict MODEL BATCH BATCHES WHICH: the case, from times at these batches, as JSON.
predict() {
    rm -f "$folder/times.jsonl"
    expect 0 "" model "$1" --batch "$2" --at "$3" --measure --seconds "$seconds" --times "$folder/times.jsonl" --json
    cp "$out" "$folder/$4-$1-$2.json"
    valid "$folder/$4-$1-$2.json"
}

# What the tuner finds is found before anything is compared.
for model in mlp convnet resnet18; do
    for batch in 32 64 128; do expect 0 "" model $model --batch $batch --at $batch --seconds 0.1 --times "$folder/warm.jsonl"; done
done
for model in mlp convnet resnet18; do
    predict $model 32 32 known
    predict $model 64 64 known
    predict $model 128 128 known
    predict $model 32 64,128 left-out
    predict $model 64 32,128 left-out
    predict $model 128 32,64 left-out
done

"$python" - "$folder" <<'END' || fail "the mean error is 10 % or more"
import json, sys
print(f"{'case':16}{'measured ms':>12}{'p10':>10}{'p90':>10}   {'known: ms':>10}{'error':>8}{'told':>8}   "
      f"{'left out: ms':>12}{'measured':>10}{'error':>8}{'told':>8}")
sums = {"known": [], "left-out": []}
for model in ("mlp", "convnet", "resnet18"):
    for batch in (32, 64, 128):
        line = f"{model + ' ' + str(batch):16}"
        for which in sums:
            o = json.load(open(f"{sys.argv[1]}/{which}-{model}-{batch}.json"))
            p, m, error = o["predicted"], o["measured"], 100 * (o["predicted_to_measured"] - 1)
            sums[which].append(abs(error))
            told = f"{100 * p['error']:7.1f}%" if p["error"] is not None else "     -  "
            if which == "known":
                line += f"{m['step_us'] / 1e3:12.3f}{m['p10_us'] / 1e3:10.3f}{m['p90_us'] / 1e3:10.3f}   {p['step_us'] / 1e3:10.3f}"
            else:
                assert p["sources"]["measured"] < 0.5, "the batch was not left out"  # what no batch changes stays measured
                line += f"   {p['step_us'] / 1e3:12.3f}{m['step_us'] / 1e3:10.3f}"
            line += f"{error:+7.1f}%{told}"
        print(line)
means = {which: sum(errors) / len(errors) for which, errors in sums.items()}
print(f"mean absolute error: {means['known']:.1f} % known, {means['left-out']:.1f} % left out")
sys.exit(means["known"] >= 10 or means["left-out"] >= 10)
END
finish

#!/bin/sh
# test_onnx.sh PROGRAM PYTHON: networks of ONNX files from the shell. The files are made by Python's onnx; exit code 77 where that is missing.
program=$1 python=$2 name=onnx
. "$(dirname "$0")/common.sh"
cd "$folder" || exit 1
"$python" -c 'import onnx' 2>/dev/null || { echo "the Python package onnx is missing: skipped"; exit 77; }

"$python" - <<'END' || fail "no files"
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

random = np.random.default_rng(0)


def network(path, sample, outputs, extra=(), inputs=()):
    width = int(np.prod(sample))
    w = (random.standard_normal((outputs, width)) / width ** 0.5).astype("f4")
    nodes = [helper.make_node("Flatten", ["x"], ["flat"]), helper.make_node("Gemm", ["flat", "fc.weight", "fc.bias"], ["y"], transB=1), *extra]
    graph = helper.make_graph(nodes, "net", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", *sample]), *inputs],
                              [helper.make_tensor_value_info("z" if extra else "y", TensorProto.FLOAT, ["batch", outputs])],
                              [numpy_helper.from_array(w, "fc.weight"), numpy_helper.from_array(np.zeros(outputs, "f4"), "fc.bias")])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)]), path)


network("digits.onnx", (1, 8, 8), 10)
network("two.onnx", (1, 8, 8), 2)
network("numbers.onnx", (3,), 1)
network("unknown.onnx", (1, 8, 8), 10, [helper.make_node("NoSuchOp", ["y"], ["z"])])
network("second.onnx", (1, 8, 8), 10, [helper.make_node("Add", ["y", "more"], ["z"])], [helper.make_tensor_value_info("more", TensorProto.FLOAT, ["batch", 10])])
x = random.standard_normal((300, 3)).astype("f4")
np.save("x.npy", x)
np.save("y.npy", x @ np.array([[1], [2], [-1]], "f4") + 100)
np.save("new.npy", np.eye(3, dtype="f4"))
END

# ---- trained, and written back ----

expect 0 "" digits.onnx --loss cross_entropy --data digits --epochs 6 --lr 1e-2 --json --export trained.onnx --save digits.safetensors
"$python" -c 'import json, sys; o = json.load(open(sys.argv[1])); assert o["test_accuracy"] > 0.9 and o["model"] == "digits.onnx" and not o["standardized"], o' "$out" ||
    fail "digits.onnx does not learn"
tested=$(grep '"test_loss' "$out")
"$python" - <<'END' || fail "what is exported is not the file with other weights"
import onnx
from onnx import numpy_helper
a, b = onnx.load("digits.onnx"), onnx.load("trained.onnx")
for one, two in zip(a.graph.initializer, b.graph.initializer):
    assert one.name == two.name and (numpy_helper.to_array(one) != numpy_helper.to_array(two)).any(), one.name
    two.raw_data = one.raw_data
assert a == b
END
expect 0 "" trained.onnx --data digits --epochs 0 --json
[ "$(grep '"test_loss' "$out")" = "$tested" ] || fail "what is exported tests otherwise"
expect 0 "" digits.onnx --data digits --epochs 7 --lr 1e-2 --json --resume digits.safetensors

# Numbers are as they were where the file comes from: neither inputs nor targets are scaled.
expect 0 "" numbers.onnx --loss mse --data npy:x.npy,y.npy --epochs 200 --batch 16 --optimizer sgd --lr 0.02 --save numbers.safetensors -q
expect 0 "" --predict new.npy --from numbers.safetensors --output out.npy -q
"$python" -c 'import numpy as np; y = np.load("out.npy").ravel(); assert np.allclose(y, [101, 102, 99], atol=0.1), y' || fail "numbers.onnx predicts otherwise"

# Networks of this program become such files, which train as they did.
expect 0 "" mlp:16 --data digits --epochs 3 --json --export mlp.onnx
tested=$(grep '"test_loss' "$out")
expect 0 "" mlp.onnx --data digits --epochs 0 --json
[ "$(grep '"test_loss' "$out")" = "$tested" ] || fail "mlp.onnx tests otherwise than what it was exported from"

# What they were trained on is in the file: other data are read as those were.
printf 'a,b,label\n' >table.csv
for i in 1 2 3 4 5 6 7 8 9; do printf '%s,%s,low\n%s,%s,high\n' "$((1000 + i))" "$i" "$((2000 + i))" "$i" >>table.csv; done
expect 0 "" logistic --data csv:table.csv --epochs 5 --batch 6 --json --export table.onnx
tested=$(grep '"test_loss' "$out")
expect 0 "" table.onnx --data csv:table.csv --epochs 0 --batch 6 --json
[ "$(grep '"test_loss' "$out")" = "$tested" ] || fail "table.onnx tests otherwise than what it was exported from"
sed 's/a,b/a,c/' table.csv >other.csv
expect 1 "other.csv" table.onnx --data csv:other.csv --epochs 0
expect 2 "--no-standardize: the model was trained on standardized data" table.onnx --data csv:table.csv --no-standardize

"$python" - <<'END' || fail "table.onnx tells of no data"
import onnx
m = onnx.load("table.onnx")
next(p for p in m.metadata_props if p.key == "cltrain.preprocessing").value = "{"
onnx.save(m, "damaged.onnx")
onnx.save(onnx.load("digits.onnx"), "one.onnx", save_as_external_data=True, location="weights.bin", size_threshold=0)
END
expect 2 "damaged.onnx: metadata \"cltrain.preprocessing\"" damaged.onnx --data csv:table.csv --epochs 0 --batch 6

# Weights beside a file belong to one model.
mkdir place && cp one.onnx weights.bin place
expect 2 "place/weights.bin, the weights of another model" one.onnx --data digits --epochs 1 --export place/two.onnx
cmp weights.bin place/weights.bin || fail "another model's weights are replaced"
expect 0 "" one.onnx --data digits --epochs 1 --export place/one.onnx -q
cmp -s weights.bin place/weights.bin && fail "place/one.onnx has its old weights"

# ---- looked at ----

probe=$(dirname "$program")/cltrain-probe
if [ -x "$probe" ]; then
    for words in "model mlp.onnx --batch 16 --seconds 0.02 --measure" "model digits.onnx --offline" "recommend digits.onnx --batch 8 --seconds 0.02"; do
        # shellcheck disable=SC2086
        "$probe" $words --json >"$out" 2>"$err" || fail "cltrain-probe $words fails: $(cat "$err")"
        grep -q onnx "$out" || fail "cltrain-probe $words tells no model"
    done
    "$probe" model digits.onnx --sample 3x3 >"$out" 2>"$err"
    [ $? -eq 2 ] && grep -q "digits.onnx has inputs of its own" "$err" || fail "--sample of a file is taken"
fi

# ---- what does not fit ----

expect 1 "none.onnx: cannot be opened" none.onnx --data digits
expect 2 "NoSuchOp \"z\": the op is not known here" unknown.onnx --data digits
expect 2 "second.onnx has more than one input" second.onnx --data digits
expect 2 "two.onnx gives [" two.onnx --data digits
expect 2 "numbers.onnx reads f32 [32, 3], but a batch of the data is f32 [32, 1, 8, 8]" numbers.onnx --data digits
expect 2 "labels: expected cross_entropy" digits.onnx --loss mse --data digits
head -c 100 digits.onnx >cut.onnx
expect 2 "cut.onnx: byte " cut.onnx --data digits
rm numbers.onnx
expect 1 "numbers.onnx: cannot be opened" --predict new.npy --from numbers.safetensors --output again.npy

[ "$failures" -eq 0 ] || exit 1

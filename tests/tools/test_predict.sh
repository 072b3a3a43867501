#!/bin/sh
# test_predict.sh PROGRAM PYTHON README: a model that is trained on one table and used on others, by its file alone; and the README's lines.
program=$1 python=$2 readme=$3 name=predict
. "$(dirname "$0")/common.sh"
cd "$folder" || exit 1

"$python" - <<'END'
import random
random.seed(1)
kinds = ["setosa", "versicolor", "virginica"]
names = ["sepal_length", "sepal_width", "petal_length", "petal_width"]
def row(shift=0):
    c = random.randrange(3)
    x = [5 + 0.8 * c + random.gauss(0, 0.4) + shift, 3.4 - 0.3 * c + random.gauss(0, 0.3), 1.5 + 2 * c + random.gauss(0, 0.4), 0.2 + 0.9 * c + random.gauss(0, 0.2)]
    return ["%.2f" % v for v in x], kinds[c]
with open("table.csv", "w") as table:
    table.write("id," + ",".join(names) + ",species\n")
    for i in range(300):
        x, kind = row()
        table.write(f"n{i}," + ",".join(x) + f",{kind}\n")
rows = [row() for _ in range(40)]
with open("shifted.csv", "w") as shifted:
    shifted.write(",".join(names) + ",species\n")
    for _ in range(300):
        x, kind = row(2)
        shifted.write(",".join(x) + f",{kind}\n")
with open("new.csv", "w") as new, open("labelled.csv", "w") as labelled:
    new.write("petal_width,sepal_length,note,sepal_width,petal_length\n")
    labelled.write("species," + ",".join(reversed(names)) + "\n")
    for number, (x, kind) in enumerate(rows):
        new.write(f'{x[3]},{x[0]},"a ""note""\nof two lines, {number}",{x[1]},{x[2]}\n')
        labelled.write(kind + "," + ",".join(reversed(x)) + "\n")
END

# ---- the README's lines ----

mkdir bin && ln -s "$program" "$(dirname "$program")/cltrain-predict" bin
"$python" - "$readme" <<'END'
import re, sys
blocks = re.findall(r"<!-- run by tests/tools/test_predict.sh -->\n```(\w+)\n(.*?)```", open(sys.argv[1], encoding="utf-8").read(), re.S)
names = ["readme.sh", "images.python", "images.sh", "readme.python"]
assert [language for language, _ in blocks] == [name.split(".")[1] for name in names], "the README's lines are not found"
for name, (_, text) in zip(names, blocks):
    open(name, "w").write(text)
END
PATH="$folder/bin:$PATH" sh -e readme.sh >"$out" 2>"$err" || fail "the README's lines fail"
says "of 40 samples"
grep -qF "(sepal_length, sepal_width, petal_length, petal_width), 3 classes (setosa, versicolor, virginica)" "$err" ||
    fail "no line tells what was understood"
if "$python" -c 'import numpy, PIL' 2>/dev/null; then
    mkdir photos && cd photos || exit 1
    "$python" - <<'END'
import os, numpy as np
from PIL import Image
rng = np.random.default_rng(0)
for kind, tint in ("cat", (220, 90, 40)), ("dog", (40, 90, 220)):
    os.mkdir(kind)
    for i in range(40):
        pixels = np.clip(np.array(tint) + rng.normal(0, 40, (40, 48, 3)), 0, 255).astype("u1")
        Image.fromarray(pixels).save(f"{kind}/{i}.jpg")
END
    "$python" ../images.python 2>"$err" || fail "the README's lines of NumPy fail"
    cp X.npy new.npy
    sed 's/resnet18/convnet/; s/--epochs 20/--epochs 2/' ../images.sh >short.sh
    PATH="$folder/bin:$PATH" sh -e short.sh >"$out" 2>"$err" || fail "the README's lines of images fail"
    cd .. || exit 1
fi
if "$python" -c 'import torch, safetensors' 2>/dev/null; then
    "$python" readme.python >"$out" 2>"$err" || fail "the README's lines of PyTorch fail"
    says "['setosa', 'versicolor', 'virginica'] tensor("
fi

# ---- cltrain-predict: the same with its own names ----

cltrain_train=$program program=$(dirname "$program")/cltrain-predict
expect 0 "" --weights flowers.safetensors --data new.csv -o own.csv
cmp -s own.csv predicted.csv || fail "cltrain-predict writes other predictions than cltrain-train --predict"
expect 0 "" mlp:32 --from weights.safetensors -d new.csv
"$cltrain_train" --predict new.csv --from weights.safetensors >line.csv 2>/dev/null
cmp -s "$out" line.csv || fail "cltrain-predict prints other predictions"
expect 0 "" --weights flowers.safetensors --data labelled.csv --test --json
"$cltrain_train" --test labelled.csv --from flowers.safetensors --json >said.json 2>/dev/null
cmp -s "$out" said.json || fail "cltrain-predict --test tells other scores"
refuse "no --weights FILE given" --data new.csv
refuse "no --data SPEC given" --weights flowers.safetensors
refuse "one MODEL expected" mlp:32 mlp:16 --weights flowers.safetensors --data new.csv
refuse "mlp:16 is given, but flowers.safetensors holds mlp:32" mlp:16 --weights flowers.safetensors --data new.csv
refuse "--output own.csv and --data own.csv are the same file" --weights flowers.safetensors --data own.csv --output own.csv
refuse "--output is for predictions" --weights flowers.safetensors --data labelled.csv --test --output x.csv
refuse "unknown option '--epochs'" --weights flowers.safetensors --data new.csv --epochs 3
expect 1 "--weights: nowhere.safetensors" --weights nowhere.safetensors --data new.csv
expect 1 "--data" --weights flowers.safetensors --data nowhere.csv
expect 0 "" --help
awk 'length > 80 { exit 1 }' "$out" || fail "--help of cltrain-predict has lines of more than 80 characters"
program=$cltrain_train

# ---- what is written: the lines with the predictions behind, which are those of the weights ----

expect 0 "" --predict new.csv --from weights.safetensors --output again.csv
"$python" - >"$out" 2>"$err" <<'END' || fail "the predictions are not those of the weights"
import csv, json, math, struct
data = open("weights.safetensors", "rb").read()
length = struct.unpack_from("<Q", data)[0]
header = json.loads(data[8:8 + length])
metadata = header.pop("__metadata__")
assert metadata["cltrain.model"] == "mlp:32"
of = json.loads(metadata["cltrain.preprocessing"])
w = {}
for name, facts in header.items():
    begin, end = facts["data_offsets"]
    w[name] = struct.unpack_from(f"<{(end - begin) // 4}f", data, 8 + length + begin)
def linear(name, x):
    n = len(x)
    return [b + sum(w[name + ".weight"][o * n + i] * x[i] for i in range(n)) for o, b in enumerate(w[name + ".bias"])]
given, told, first = (list(csv.DictReader(open(f, newline=""))) for f in ("new.csv", "again.csv", "predicted.csv"))
assert len(given) == len(told) == len(first) == 40
right = 0
for row, line in zip(given, told):
    assert all(line[key] == value for key, value in row.items()), line
    x = [(float(row[f]) - m) / d for f, m, d in zip(of["features"], of["mean"], of["deviation"])]
    y = linear("fc2", [max(v, 0) for v in linear("fc1", x)])
    e = [math.exp(v - max(y)) for v in y]
    p = [v / sum(e) for v in e]
    assert line["prediction"] == of["classes"][p.index(max(p))], (line, p)
    for kind, value in zip(of["classes"], p):
        assert abs(float(line["probability_" + kind]) - value) < 1e-5, (line, p)
kinds = [row["species"] for row in csv.DictReader(open("labelled.csv"))]
right = sum(kind == line["prediction"] for kind, line in zip(kinds, told)) / 40
assert right >= 0.9, right
open("right", "w").write(f"{right:.4f}")
END
expect 0 "" --test labelled.csv --from weights.safetensors --json
says "\"test_accuracy\": $(sed 's/0*$//' right)"
"$python" - "$out" >"$folder/why" 2>&1 <<'END' || fail "precision, recall, F1 and AUC: $(cat "$folder/why")"
import csv, json, sys
said = json.load(open(sys.argv[1]))
truth = [row["species"] for row in csv.DictReader(open("labelled.csv"))]
told = list(csv.DictReader(open("predicted.csv")))
names = sorted(set(truth))
best = [line["prediction"] for line in told]
p, r, f, auc = [], [], [], []
for name in names:
    hit = sum(a == b == name for a, b in zip(truth, best))
    p.append(hit / max(best.count(name), 1)), r.append(hit / truth.count(name)), f.append(2 * hit / (best.count(name) + truth.count(name)))
    scores = [float(line["probability_" + name]) for line in told]
    pairs = [(a > b) + (a == b) / 2 for a, x in zip(scores, truth) if x == name for b, y in zip(scores, truth) if y != name]
    auc.append(sum(pairs) / len(pairs))
for key, values in ("precision", p), ("recall", r), ("f1", f), ("auc", auc):
    assert abs(said["test_" + key] - sum(values) / len(names)) < 1e-6, (key, said, values)
END

# Data whose first feature is shifted are seen as they are: the shift is not taken out.
expect 0 "" mlp:32 --data csv:shifted.csv --epochs 0 --resume flowers.safetensors --json
resumed=$(sed -n 's/.*"test_accuracy": \([0-9.]*\).*/\1/p' "$out")
expect 0 "" --test shifted.csv --from flowers.safetensors --json
tested=$(sed -n 's/.*"test_accuracy": \([0-9.]*\).*/\1/p' "$out")
expect 0 "" mlp:32 --data csv:shifted.csv --epochs 40 --json --export shifted.safetensors
anew=$(sed -n 's/.*"test_accuracy": \([0-9.]*\).*/\1/p' "$out")
echo "$resumed $tested $anew" | awk '{ exit !($1 < $3 - 0.1 && $2 < $3 - 0.1) }' || fail "a shifted feature is shifted back: $resumed, $tested, $anew"

# ---- what does not fit ----

cut -d, -f1-4 shifted.csv >short.csv
sed 's/setosa/orchid/' labelled.csv >orchid.csv
expect 1 "no column is named \"petal_width\", which the model was trained on; there are sepal_length, sepal_width, petal_length" --predict csv:short.csv,drop=3 --from flowers.safetensors
expect 1 "\"orchid\" is not a class of the model: setosa, versicolor, virginica" --test orchid.csv --from flowers.safetensors
expect 1 "was not trained on column \"id\", but on sepal_length, sepal_width, petal_length, petal_width: leave it out with drop=id" \
    mlp:32 --data csv:table.csv --resume flowers.safetensors
expect 1 "no column is named \"petal_length\"" mlp:32 --data csv:table.csv,drop=id,petal_length --resume flowers.safetensors
expect 2 "--no-standardize: the model was trained on standardized data" mlp:32 --data csv:table.csv,drop=id --no-standardize --resume flowers.safetensors
expect 1 "cannot be opened" --predict new.csv --from nowhere.safetensors
head -c 300 flowers.safetensors >cut.safetensors
expect 1 "cut.safetensors" --predict new.csv --from cut.safetensors
"$python" - <<'END'
import json, struct
data = open("flowers.safetensors", "rb").read()
length = struct.unpack_from("<Q", data)[0]
header = json.loads(data[8:8 + length])
def write(name, change):
    changed = json.loads(json.dumps(header))
    change(changed["__metadata__"])
    text = json.dumps(changed).encode()
    open(name, "wb").write(struct.pack("<Q", len(text)) + text + data[8 + length:])
write("early.safetensors", lambda m: m.pop("cltrain.preprocessing"))
write("broken.safetensors", lambda m: m.update({"cltrain.preprocessing": "{\"dtype\":\"f32\",\"shape\":[4],\"classes\":3,\"mean\":[1]}"}))
write("other.safetensors", lambda m: m.update({"cltrain.model": "mlp:31"}))
write("odd.safetensors", lambda m: m.update({"cltrain.model": "perceptron"}))
END
expect 1 "early.safetensors does not tell what data its model takes" --predict new.csv --from early.safetensors
expect 1 "metadata \"cltrain.preprocessing\": \"mean\" is not a number for each element" --predict new.csv --from broken.safetensors
expect 1 "metadata \"cltrain.preprocessing\"" mlp:32 --data csv:table.csv,drop=id --resume broken.safetensors
expect 1 "\"fc1.weight\" is F32 [32, 4]; the model has F32 [31, 4]" --predict new.csv --from other.safetensors
expect 1 "perceptron" --predict new.csv --from odd.safetensors
expect 0 "" mlp:32 --data csv:table.csv,drop=id --epochs 41 --resume early.safetensors # as before there was any

# ---- the command line ----

refuse "--predict needs --from FILE" --predict new.csv
refuse "--from goes with --predict or --test" mlp --data digits --from flowers.safetensors
refuse "--output goes with --predict or --test" mlp --data digits --output x
refuse "--predict and --test exclude each other" --predict new.csv --test new.csv --from flowers.safetensors
refuse "--save is of training" --predict new.csv --from flowers.safetensors --save x
refuse "expected FILE.csv, FILE.npy, csv:FILE, npy:FILE, folder:DIR or tar:FILE.tar" --predict digits --from flowers.safetensors
refuse "--json goes with training and tests" --predict new.csv --from flowers.safetensors --json
refuse "an array needs --output FILE.npy, or FILE.csv for a table" --predict new.npy --from flowers.safetensors
refuse "expected npy:X.npy,Y.npy" --test new.npy --from flowers.safetensors
refuse "expected npy:X.npy,Y.npy" mlp --data npy:new.npy
refuse "--output flowers.safetensors and --from flowers.safetensors are the same file" --predict new.csv --from flowers.safetensors --output flowers.safetensors
refuse "--output new.csv and --predict new.csv are the same file" --predict new.csv --from flowers.safetensors --output new.csv
refuse "mlp:16 is given, but flowers.safetensors holds mlp:32" mlp:16 --predict new.csv --from flowers.safetensors
expect 1 "nowhere/x.csv cannot be written" --predict new.csv --from flowers.safetensors --output nowhere/x.csv
expect 0 "" --predict new.csv --from weights.safetensors --output -
cmp -s "$out" again.csv || fail "--output - is not stdout"
[ ! -e ./- ] || fail "--output - makes a file"
# Predicted once more, on what was predicted: a name is taken once.
expect 0 "" --predict again.csv --from weights.safetensors
"$python" - "$out" >"$folder/why" 2>&1 <<'END' || fail "predicted twice: $(cat "$folder/why")"
import csv, sys
rows = list(csv.DictReader(open(sys.argv[1], newline="")))
assert len(rows) == 40 and list(rows[0])[-4:] == ["prediction_2", "probability_setosa_2", "probability_versicolor_2", "probability_virginica_2"], rows[0]
assert all(row["prediction"] == row["prediction_2"] for row in rows)
END
if [ -w /dev/full ]; then
    "$program" --predict new.csv --from flowers.safetensors >/dev/full 2>"$err" && fail "a full disk is not told"
fi

# ---- without a header, gzipped, with another separator; numbers ----

sed 1d table.csv | cut -d, -f2- >plain.csv
sed 1d labelled.csv | cut -d, -f2- | awk -F, '{print $4 ";" $3 ";" $2 ";" $1}' | gzip >plain-new.csv.gz
expect 0 "4 features (no header), 3 classes (setosa, versicolor, virginica)" logistic --data csv:plain.csv --epochs 3 --export plain.safetensors
expect 0 "" --predict "csv:plain-new.csv.gz,separator=;" --from plain.safetensors
[ "$(wc -l <"$out")" -eq 40 ] || fail "not a line for each"
[ "$(head -n 1 "$out" | tr ';' '\n' | wc -l)" -eq 8 ] || fail "not four columns more"
"$python" - <<'END'
import random
random.seed(2)
with open("house.csv", "w") as table:
    table.write("area,rooms,price\n")
    for _ in range(200):
        a, r = random.uniform(40, 200), random.randint(1, 6)
        table.write(f"{a:.1f},{r},{3 * a + 20 * r:.1f}\n")
END
expect 0 "2 features (area, rooms), 1 target" linear --data csv:house.csv --epochs 100 --save house.safetensors
expect 0 "" --predict house.csv --from house.safetensors
"$python" - "$out" >"$folder/why" 2>&1 <<'END' || fail "numbers are not predicted: $(cat "$folder/why")"
import csv, sys
rows = list(csv.DictReader(open(sys.argv[1])))
assert len(rows) == 200 and list(rows[0]) == ["area", "rooms", "price", "prediction"], rows[0]
worst = max(abs(float(r["prediction"]) - float(r["price"])) for r in rows)
assert worst < 20, worst
END

# Prices of hundreds of thousands are learned by a network as well, told in their own units, and given back by the weights alone.
"$python" - <<'END'
import random
random.seed(4)
with open("price.csv", "w") as table:
    table.write("area,rooms,price\n")
    for _ in range(400):
        a, r = random.uniform(40, 200), random.randint(1, 6)
        table.write(f"{a:.1f},{r},{2000 * a + 20000 * r + 40 * a * r:.0f}\n")
END
expect 0 "" mlp:32 --data csv:price.csv,regression=1 --epochs 100 --export price.safetensors --json
told=$(sed -n 's/.*"train_mse": \([0-9.e+]*\).*/\1/p' "$out")
expect 0 "" --test csv:price.csv --from price.safetensors --json
tested=$(sed -n 's/.*"test_mse": \([0-9.e+]*\).*/\1/p' "$out")
expect 0 "" --predict price.csv --from price.safetensors
"$python" - "$out" "$told" "$tested" >"$folder/why" 2>&1 <<'END' || fail "prices are not predicted: $(cat "$folder/why")"
import csv, json, struct, sys
rows = list(csv.DictReader(open(sys.argv[1])))
errors = [float(r["prediction"]) - float(r["price"]) for r in rows]
mse = sum(e * e for e in errors) / len(errors)
assert mse ** 0.5 < 20000, mse # of a deviation of 130,000
assert abs(float(sys.argv[3]) / mse - 1) < 1e-3, (sys.argv, mse)
assert 0.2 < float(sys.argv[2]) / mse < 20, (sys.argv, mse) # of the last epoch, as it went on
data = open("price.safetensors", "rb").read()
length = struct.unpack_from("<Q", data)[0]
header = json.loads(data[8:8 + length])
of = json.loads(header.pop("__metadata__")["cltrain.preprocessing"])
w = {n: struct.unpack_from(f"<{(f['data_offsets'][1] - f['data_offsets'][0]) // 4}f", data, 8 + length + f["data_offsets"][0]) for n, f in header.items()}
def linear(name, x):
    return [b + sum(w[name + ".weight"][o * len(x) + i] * x[i] for i in range(len(x))) for o, b in enumerate(w[name + ".bias"])]
for r in rows:
    x = [(float(r[f]) - m) / d for f, m, d in zip(of["features"], of["mean"], of["deviation"])]
    y = linear("fc2", [max(v, 0) for v in linear("fc1", x)])[0] * of["target_deviation"] + of["target_mean"]
    assert abs(y / float(r["prediction"]) - 1) < 1e-5, (r, y)
END

# Numbers far from 0 keep the digits that tell them apart, in a table and in an array.
"$python" - <<'END'
import random
random.seed(5)
with open("time.csv", "w") as table:
    table.write("x,y\n")
    for _ in range(200):
        x = random.uniform(0, 60)
        table.write(f"{x:.3f},{1700000000 + 2 * x:.3f}\n")
END
expect 0 "" linear --data csv:time.csv --epochs 100 --lr 0.05 --export time.safetensors
expect 0 "" --predict time.csv --from time.safetensors --output told.csv
expect 0 "" --predict csv:time.csv --from time.safetensors --output told.npy
"$python" - >"$folder/why" 2>&1 <<'END' || fail "numbers far from 0 are rounded: $(cat "$folder/why")"
import csv, struct
rows = list(csv.DictReader(open("told.csv")))
worst = max(abs(float(r["prediction"]) - float(r["y"])) for r in rows)
assert worst < 0.5, worst
data = open("told.npy", "rb").read()
assert b"'<f8'" in data[:128] and b"(200, 1)" in data[:128], data[:128]
array = struct.unpack_from("<200d", data, 128)
assert len(data) == 128 + 1600 and max(abs(v - float(r["prediction"])) for v, r in zip(array, rows)) < 1e-4, array[:3]
END

# Labels that leave a class out are told.
"$python" -c 'print("x,month"); [print(f"{i % 7},{i % 12 + 1:02}") for i in range(120)]' >months.csv
expect 0 "1 of 13 classes has no sample, class 0 for one: texts=COLUMN makes classes of the labels that there are" logistic --data csv:months.csv --epochs 1
expect 0 "12 classes (01, 02, " logistic --data csv:months.csv,texts=month --epochs 1

# Pixels of another scale are told.
if "$python" -c 'import numpy' 2>/dev/null; then
    "$python" - <<'END'
import numpy as np
x = np.random.default_rng(0).integers(0, 256, (90, 1, 8, 8))
np.save("few.npy", (x[:3] / 255).astype("f4"))
np.save("two.npy", np.stack([40 + 10 * np.sin(np.arange(90)), 5e4 + 1.5e4 * np.cos(np.arange(90))], 1).astype("f4"))
np.save("whole.npy", x.astype("u1")); np.save("part.npy", (x / 255).astype("f4")); np.save("kinds.npy", (np.arange(90) % 3).astype("i4"))
END
    expect 0 "" logistic --data npy:part.npy,kinds.npy --epochs 1 --save part.st
    expect 0 "" --predict npy:part.npy --from part.st --output plain.npy
    expect 0 "part.npy is read batch by batch" --predict npy:part.npy,stream=1 --from part.st --output streamed.npy
    cmp -s plain.npy streamed.npy || fail "predictions of an array that stays in its file"
    expect 0 "part.npy is read batch by batch" --test npy:part.npy,kinds.npy,stream=1 --from part.st
    expect 0 "are they scaled otherwise, as pixels from 0 to 1 and from 0 to 255?" --predict whole.npy --from part.st --output told.npy
    expect 0 "" --predict part.npy --from part.st --output told.npy
    grep -q "scaled otherwise" "$err" && fail "the same scale is told to be another"
    expect 0 "" logistic --data npy:whole.npy,kinds.npy --epochs 1 --save whole.st
    expect 0 "are they scaled otherwise" logistic --data npy:part.npy,kinds.npy --epochs 0 --resume whole.st
    expect 0 "are they scaled otherwise" --predict few.npy --from whole.st --output told.npy
    expect 0 "one of the numbers to predict differs 1450 times as much as another" linear --data npy:part.npy,two.npy --epochs 1
    expect 0 "" logistic --data npy:whole.npy,kinds.npy --no-standardize --epochs 1 --export plain.st
    expect 0 "" --test npy:whole.npy,kinds.npy --from plain.st
    grep -q "scaled otherwise" "$err" && fail "data that were trained on as they are are told to be of another scale"
    "$python" -c 'print("time,hour,y"); [print(f"{i},{i % 24},{2 * i}") for i in range(2000)]' >hours.csv
    head -n 30 hours.csv >hour.csv
    expect 0 "" linear --data csv:hours.csv,regression=1 --epochs 1 --export hours.st
    for table in hours.csv hour.csv; do
        expect 0 "" --predict $table --from hours.st
        grep -q "scaled otherwise" "$err" && fail "a part of a table is told to be of another scale"
    done
fi

# ---- a table as people have them: identifiers, texts, values that are missing; used in another order ----

"$python" - <<'END'
import random
random.seed(3)
with open("people.csv", "w") as table, open("more.csv", "w") as more:
    table.write("id,joined,city,age,income,leaves\n")
    more.write("income,city,leaves,age\n")
    for i in range(300):
        city, age, income = random.choice(["Basel", "Bern", "Uri"]), random.randint(18, 80), random.gauss(60, 15)
        leaves = "yes" if city == "Uri" or age > 55 else "no"
        seen = ["" if random.random() < 0.1 else v for v in (city, str(age), f"{income:.1f}")]
        table.write(f"p{i},2024-01-{i % 28 + 1:02},{seen[0]},{seen[1]},{seen[2]},{leaves}\n")
        if i % 5 == 0:
            more.write(f"{'NA' if i % 10 == 0 else seen[2]},{seen[0]},{leaves},{seen[1]}\n")
END
expect 1 "is missing: missing=drop leaves such lines out, missing=mean puts the column's mean there" mlp:16 --data csv:people.csv,drop=id,joined
expect 1 "(id): \"p100\" is one text more than 100: leave the column out with drop=0" mlp:16 --data csv:people.csv,missing=mean
expect 0 "lines are left out, for they lack a value" mlp:16 --data csv:people.csv,drop=id,joined,missing=drop --epochs 1
expect 0 "5 features (city=Basel, city=Bern, city=Uri, age, income), 2 classes (no, yes)" \
    mlp:16 --data csv:people.csv,drop=id,joined,missing=mean --epochs 40 --export people.safetensors
expect 0 "" --test more.csv --from people.safetensors --json
awk '/test_accuracy/ { exit !($2 >= 0.8) }' "$out" || fail "the accuracy on the other table is low"
expect 0 "" --predict more.csv --from people.safetensors
[ "$(wc -l <"$out")" -eq 61 ] || fail "not a line for each"
refuse "each line gets a prediction" --predict csv:more.csv,missing=drop --from people.safetensors
refuse "missing=refuse|drop|mean" mlp --data csv:people.csv,missing=zero

expect 1 "missing, and missing=refuse is given" --test csv:more.csv,missing=refuse --from people.safetensors
expect 1 "; other lines with fields that cannot be used: " mlp:16 --data csv:people.csv,drop=id,joined
expect 1 "no column is named \"town\"; there are id, joined, city, age, income, leaves" mlp:16 --data csv:people.csv,drop=town
# Of another number of lines others are held out: what is tested may be what was trained on.
refuse "was trained where the data had 300 samples, not 40" mlp:32 --data csv:labelled.csv --epochs 0 --resume flowers.safetensors
refuse "was trained where the data had 300 samples, not 40" mlp:32 --data csv:labelled.csv --epochs 50 --resume flowers.safetensors
refuse "was trained where the data had 300 samples, not 40" mlp:32 --data csv:labelled.csv --epochs 0 --resume flowers.safetensors --save other.safetensors
refuse "--output is for predictions" --test labelled.csv --from flowers.safetensors --output test.csv
refuse "--epochs is of training: it does not go with --predict" --predict new.csv --from flowers.safetensors --epochs 3
for option in "--no-standardize" "--optimizer sgd" "--shares 1,2" "--seed 3" "--patience 2" "--clip-norm 1"; do
    refuse "${option%% *} is of training: it does not go with --predict" --predict new.csv --from flowers.safetensors $option
done
refuse "regression=1, but the model predicts classes: leave it out" --test csv:labelled.csv,regression=1 --from flowers.safetensors
refuse "regression=0, but the model predicts numbers: leave it out" --test csv:price.csv,regression=0 --from price.safetensors
refuse "regression=1, but the model predicts classes" mlp:32 --data csv:table.csv,drop=id,regression=1 --resume flowers.safetensors

# Files of other programs tell nothing of what they were trained on.
"$python" - <<'END'
import json, struct
data = open("flowers.safetensors", "rb").read()
length = struct.unpack_from("<Q", data)[0]
header = json.loads(data[8:8 + length])
del header["__metadata__"]["cltrain.preprocessing"]
text = json.dumps(header).encode()
open("bare.safetensors", "wb").write(struct.pack("<Q", len(text)) + text + data[8 + length:])
END
for more in "--save resumed.safetensors" ""; do
    expect 0 "bare.safetensors tells no mean and deviation: those of csv:table.csv,drop=id are used" mlp:32 --data csv:table.csv,drop=id --epochs 0 --resume bare.safetensors $more
done
expect 0 "" mlp:32 --data csv:table.csv,drop=id --epochs 0 --resume flowers.safetensors
grep -qF "mean and deviation" "$err" && fail "a file that tells them is said not to"

# A header of numbers is found by the model's names, and a table without any is said to have none.
"$python" - <<'END'
lines = open("labelled.csv").read().splitlines()[1:]
open("years.csv", "w").write("kind,1990,1991,1992,1993\n" + "\n".join(lines * 3) + "\n")
rows = [line.split(",")[1:] for line in lines]
open("turned.csv", "w").write("1993,1992,1991,1990\n" + "\n".join(",".join(reversed(r)) for r in rows) + "\n")
open("straight.csv", "w").write("1990,1991,1992,1993\n" + "\n".join(",".join(r) for r in rows) + "\n")
open("nameless.csv", "w").write("\n".join(line.split(",", 1)[1] + "," + line.split(",")[0] for line in lines) + "\n")
END
expect 0 "4 features (1990, 1991, 1992, 1993)" mlp:8 --data csv:years.csv,label=kind,header=1 --epochs 5 --export years.safetensors
for order in turned straight; do
    expect 1 "has the numbers that name the model's columns: header=1 takes it for names, header=0 for data" --predict $order.csv --from years.safetensors
    expect 0 "" --predict csv:$order.csv,header=1 --from years.safetensors
    sed 1d "$out" | cut -d, -f5- >$order.out
done
[ "$(wc -l <turned.out)" -eq 40 ] && cmp -s turned.out straight.out || fail "a header of numbers is not read by the model's names"
expect 0 "4 features (no header)" mlp:8 --data csv:nameless.csv --epochs 1

# A quote within a field is text, and takes no line of its own: as many predictions as lines, in their order.
"$python" - <<'END'
lines = open("labelled.csv").read().splitlines()
notes = [',5" pipe' if i in (3, 4, 9, 38) else ',"a, ""b"""' if i == 20 else ",-" for i in range(len(lines) - 1)]
open("inches.csv", "w").write("\n".join([lines[0] + ",note"] + [line + note for line, note in zip(lines[1:], notes)]) + "\n")
END
for table in inches labelled; do
    expect 0 "" --predict $table.csv --from flowers.safetensors
    sed 1d "$out" | sed -E 's/.*,(setosa|versicolor|virginica),/\1,/' >$table.out
done
[ "$(wc -l <inches.out)" -eq 40 ] && cmp -s inches.out labelled.out || fail "a quote within a field moves predictions to other lines"

# Of a table without a header the place of the label is kept.
sed 1d labelled.csv >nameless_label.csv
expect 0 "" mlp:8 --data csv:nameless_label.csv,label=0 --epochs 20 --export nameless.safetensors
expect 0 "" --test nameless_label.csv --from nameless.safetensors --json
grep accuracy "$out" >with.json
expect 0 "" --test csv:nameless_label.csv,label=0 --from nameless.safetensors --json
[ "$(cat with.json)" = "$(grep accuracy "$out")" ] || fail "the label is looked for in another place"
expect 0 "" --predict nameless_label.csv --from nameless.safetensors

# Codes and signs as texts.
"$python" -c 'print("b,code,sign\n" + "\n".join(f"{i % 7},{10 * (i % 3)},{1 - 2 * (i % 2)}" for i in range(60)))' >codes.csv
expect 1 "texts=COLUMN takes any text as a class" mlp:8 --data csv:codes.csv
expect 0 "4 features (b, code=0, code=10, code=20), 2 classes (-1, 1)" mlp:8 --data csv:codes.csv,texts=code,sign --epochs 1 --export codes.safetensors
expect 0 "" --test codes.csv --from codes.safetensors
refuse "csv:FILE[,label=C]" mlp:8 --data csv:codes.csv,texts=

sed 's/setosa/set\xf6sa/' labelled.csv >latin.csv
expect 1 "is not UTF-8: convert the table, as with iconv" mlp:32 --data csv:latin.csv,label=species

# ---- images ----

if "$python" -c 'import numpy' 2>/dev/null; then
    "$python" - <<'END'
import numpy as np
rng = np.random.default_rng(0)
x = (rng.standard_normal((200, 3, 8, 8)) * 3 + 5).astype("f4")
np.save("X.npy", x), np.save("Y.npy", (x.mean((1, 2, 3)) > 5).astype("i8")), np.save("H.npy", x[:7].transpose(0, 2, 3, 1))
END
    expect 0 "images [channels, height, width] = [3, 8, 8], 2 classes" convnet --data npy:X.npy,Y.npy --epochs 2 --save images.safetensors
    expect 0 "" convnet --data digits --epochs 1 --export grey.safetensors
    expect 0 "" --predict X.npy --from images.safetensors --output P.npy
    expect 0 "" --predict npy:H.npy,layout=nhwc --from images.safetensors --output Q.npy
    expect 0 "" --predict npy:H.npy,layout=nhwc --from images.safetensors --output H.csv
    expect 0 "" --predict new.csv --from weights.safetensors --output N.npy
    expect 0 "" --test npy:X.npy,Y.npy --from images.safetensors
    "$python" -c 'import numpy as np; x = np.load("X.npy"); x[3, 0, 0, 0] = np.nan; np.save("N_.npy", x)'
    expect 1 "N_.npy: sample 3 (from 0), element 0 is nan: expected finite numbers" convnet --data npy:N_.npy,Y.npy --epochs 1 --no-standardize
    expect 1 "the loss on npy:N_.npy,Y.npy is not a number" --test npy:N_.npy,Y.npy --from images.safetensors --json
    "$python" - >"$folder/why" 2>&1 <<'END' || fail "arrays: $(cat "$folder/why")"
import numpy as np
p, q = np.load("P.npy"), np.load("Q.npy")
assert p.shape == (200, 2) and p.dtype == np.float32 and q.shape == (7, 2)
assert abs(p.sum(1) - 1).max() < 1e-5 and abs(p[:7] - q).max() < 1e-5
import csv
rows, new, table = list(csv.DictReader(open("H.csv"))), list(csv.DictReader(open("again.csv"))), np.load("N.npy")
assert [list(r) for r in rows] == [["prediction", "probability_0", "probability_1"]] * 7
assert all(abs(float(r["probability_1"]) - v[1]) < 1e-6 and int(r["prediction"]) == v.argmax() for r, v in zip(rows, q))
assert table.shape == (40, 3) and all(abs(float(r["probability_setosa"]) - v[0]) < 1e-6 for r, v in zip(new, table))
END
    expect 1 "the samples of X.npy are [3, 8, 8]; the model was trained on" --predict X.npy --from grey.safetensors --output R.npy
    grep -qF "nhwc" "$err" && fail "a layout is proposed that does not fit"
    expect 1 "the samples of H.npy are [8, 8, 3]; the model was trained on [3, 8, 8]; layout=nhwc takes images" --predict H.npy --from images.safetensors --output R.npy
fi

[ "$failures" -eq 0 ] || exit 1

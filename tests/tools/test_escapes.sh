#!/bin/sh
# What drivers and files say does not reach the terminal as commands to it: escape sequences, bells, turned text.
. "$(dirname "$0")/probe_common.sh"

[ -n "$python" ] || { echo "Python is missing: skipped"; exit 77; }

# plain: nothing on stdout or stderr that a terminal would obey.
plain() {
    "$python" - "$out" "$err" >"$folder/found" 2>&1 <<'END' || { fail "$1: $(cat "$folder/found")"; }
import sys, unicodedata
for path in sys.argv[1:]:
    text = open(path, "rb").read().decode()
    bad = [c for c in text if c not in "\n\t" and unicodedata.category(c) in ("Cc", "Cf", "Zl", "Zp")]
    assert not bad, (path, bad[:9])
END
}

"$python" - "$folder" <<'END'
import copy, json, sys
evil = "\x1b]0;owned\x07\x1b[2J\u202e\u2066\x9b31m\u2028\r\b\u061c\x7f"
def row(key, us, status="ok", reason=None, kind="op"):
    return {"device": "d", "key": key, "kind": kind, "status": status, "reason": reason, "samples_us": [[us * (1 + 0.001 * (i + p)) for i in range(5)]
            for p in range(3)] if status == "ok" else []}
device = {"id": "d" + evil, "name": "D" + evil, "platform": "P" + evil, "driver": "1" + evil}
bench = {"schema": "cltrain-probe/1", "kind": "bench", "complete": True, "devices": [device], "host": {"cpu": "c" + evil},
         "results": [row(f"op x{i} {evil}", 100.0) for i in range(20)]}
def write(name, document):
    json.dump(document, open(f"{sys.argv[1]}/{name}.json", "w"))
def change(name, function):
    document = copy.deepcopy(bench)
    function(document)
    write(name, document)
change("a", lambda d: None)
def broken(d):
    d["results"][3] = row(d["results"][3]["key"], 1, "crashed" + evil, "because\n" + evil) # ends of lines are spaces
    d["results"][4] = row(d["results"][4]["key"], 300.0)
    d["results"].append(row("op new" + evil, 5.0))
    d["devices"][0]["driver"] = "2" + evil
    d["host"]["cpu"] = "another" + evil
change("broken", broken)
change("device", lambda d: d["devices"][0].update(id="e" + evil))
change("schema", lambda d: d.update(schema=evil))
change("kind", lambda d: d.update(kind=evil))
open(sys.argv[1] + "/text.json", "w").write('{"a": ' + evil + "}")
END

expect 1 "the device's driver is '1?]0;owned??[2J???" compare "$folder/a.json" "$folder/broken.json"
says "broken"
says "ok -> crashed?]0;owned"
says ": because ?]0;owned"
says "op new?]0;owned"
plain "compare"
refuse "the device's id is 'd?]0;owned" compare "$folder/a.json" "$folder/device.json"
plain "compare of two devices"
refuse "its schema is '?]0;owned" report "$folder/schema.json"
plain "report of another schema"
refuse "its kind is '?]0;owned" report "$folder/kind.json"
plain "report of another kind"
refuse "cut short, or no JSON" report "$folder/text.json"
plain "report of no JSON"
refuse "unexpected word" list "$(printf 'a\033[2J')"
plain "the command line"

# A driver's names, and those of its file.
mkdir "$folder/vendors"
echo "$build/libfake_icd_nonsense.so" >"$folder/vendors/nonsense.icd"
echo "$(printf '/nonexistent/\033[2J.so')" >"$folder/vendors/$(printf 'a\033[2J\007.icd')"
export OCL_ICD_VENDORS="$folder/vendors"
expect 1 "" list --timeout 20
says "a?[2J?.icd"
plain "list"
expect 1 "" bench --models none --timeout 20
plain "bench"
expect 1 "" model mlp --offline --timeout 20
plain "model"
expect 1 "" recommend mlp --offline --timeout 20
plain "recommend"
rm "$folder/vendors/nonsense.icd"
expect 1 "a?[2J?.icd" bench --models none --timeout 20
plain "bench without a driver"

finish

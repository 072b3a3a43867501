"""look.py NAME EXPRESSION: NAME.json and NAME.xml, as cltrain-conform wrote them, agree, and the expression holds of them."""
import json
import sys
import xml.etree.ElementTree as tree

with open(sys.argv[1] + ".json", encoding="utf-8") as file:
    o = json.load(file)
devices, drivers, counts = o["devices"], {d["icd"]: d for d in o.get("drivers", [])}, o["counts"]
results = [r for c in o["cases"] for r in c["results"]]
coverage = [r for d in devices for r in d["coverage"]]
rows = {name: [r for r in results if r["row"] == name] for d in devices for name in d["rows"]}
suites = tree.parse(sys.argv[1] + ".xml").getroot().findall("testsuite")
tests = [t for s in suites for t in s.findall("testcase")]
bad = {t.get("name"): t.find(kind).get("message") for t in tests for kind in ("error", "failure") if t.find(kind) is not None}


def agree():
    for s in suites:  # what a suite says of itself
        assert int(s.get("tests")) == len(s.findall("testcase")) > 0, s.attrib
        for attribute, kind in (("errors", "error"), ("failures", "failure"), ("skipped", "skipped")):
            assert int(s.get(attribute)) == len(s.findall("testcase/" + kind)), s.attrib
    for status, count in counts.items():
        assert count == sum(r["status"] == status for r in results), f"counts: {status}"
        assert sum(d["counts"][status] for d in devices) == count, f"counts of devices: {status}"
        assert sum(d["coverage_counts"][status] for d in devices) == sum(r["status"] == status for r in coverage), f"coverage: {status}"


agree()
assert eval(sys.argv[2]), (counts, [(d["name"], d["status"], d["reason"]) for d in devices], drivers, bad)

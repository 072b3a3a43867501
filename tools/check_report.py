"""check_report.py FOLDER [STAGE]: what a run of check.sh found, from the files it left in FOLDER: the seconds of each stage, the longest
tests, and of all that failed (with STAGE: in that one) the last lines and the command that runs it alone."""
import os
import re
import sys
import xml.etree.ElementTree as tree

LINES, LONGEST = 20, 10
BUILDS = {"sanitized": "build-asan", "sanitized-long": "build-asan", "threads": "build-tsan", "coverage": "build-coverage"}

folder, only = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else None
with open(os.path.join(folder, "stages"), encoding="utf-8") as file:
    stages = [line.rstrip("\n").split("\t") for line in file]


def status_of(case):
    skipped = case.find("skipped")
    if case.get("status") == "notrun" and (skipped is None or not skipped.get("message", "").startswith("SKIP_")):
        return "fail"
    return case.get("status")


def tests_of(stage):
    """(name, seconds, status, output) of the stage's tests. One that could not be started has failed."""
    path = os.path.join(folder, stage + ".xml")
    if not os.path.exists(path):
        return []
    return [(case.get("name"), float(case.get("time") or 0), status_of(case), case.findtext("system-out") or "")
            for case in tree.parse(path).getroot().iter("testcase")]


def last_lines(text):
    return "".join("    " + line + "\n" for line in text.rstrip("\n").split("\n")[-LINES:])


def log_of(stage):
    with open(os.path.join(folder, stage + ".log"), encoding="utf-8", errors="replace") as file:
        return file.read()


def print_failures(stage, command):
    failed = [test for test in tests_of(stage) if test[2] == "fail"]
    log = log_of(stage)
    for name, seconds, _, output in failed:
        limit = f", timed out after {seconds:.0f} s" if re.search(rf": {re.escape(name)} \.*\*\*\*Timeout", log) else ""
        print(f"\nFAILED {name}{limit}\n{last_lines(output)}  again: ctest --test-dir {BUILDS.get(stage, 'build')} --output-on-failure -R '^{name}$'")
    if not failed:
        print(f"\nFAILED {stage}\n{last_lines(log_of(stage))}  again: {command}")


if not only:
    print("\nStage               Seconds")
    for stage, seconds, ended, _ in stages:
        tests = tests_of(stage)
        skipped = sum(test[2] in ("notrun", "disabled") for test in tests)
        count = f"{len(tests) - skipped} tests, {sum(test[2] == 'fail' for test in tests)} failed, {skipped} skipped" if tests else ""
        print(f"{stage:20}{int(seconds):7}  {ended:8}{count}")
    print(f"{'all':20}{sum(int(stage[1]) for stage in stages):7}")
    longest = sorted(((seconds, name, stage[0]) for stage in stages for name, seconds, _, _ in tests_of(stage[0])), reverse=True)[:LONGEST]
    if longest:
        print("\nLongest tests               Seconds")
        for seconds, name, stage in longest:
            print(f"{name:28}{seconds:7.0f}  {stage}")
for stage, _, ended, command in stages:
    if ended != "ok" and only in (None, stage):
        print_failures(stage, command)

"""tidy.py BUILD FILE...: clang-tidy over these files, as many at a time as there are cores. What it has found clean before is left out: a file whose preprocessed
text, macros, compiler's arguments and configuration are the same, by a list below $XDG_CACHE_HOME. The analyzer gives a function a part of
the effort that is its default, and finds what is not deep. --all: nothing is left out, and the effort is whole."""
import concurrent.futures
import hashlib
import json
import os
import shlex
import subprocess
import sys

EFFORT = "max-nodes=50000"  # paths that the analyzer follows in a function; its default is 225000, and takes four times as long
arguments = [a for a in sys.argv[1:] if a != "--all"]
limits = [] if "--all" in sys.argv else [f"--extra-arg={word}" for word in ("-Xclang", "-analyzer-config", "-Xclang", EFFORT)]
build, files = arguments[0], arguments[1:]
cache = os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "cltrain", "clang-tidy")
commands = {}
with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as file:
    for entry in json.load(file):
        commands.setdefault(os.path.relpath(os.path.join(entry["directory"], entry["file"])), entry)


def run(words, **options):
    return subprocess.run(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False, **options)


with open(".clang-tidy", "rb") as file:
    COMMON = run(["clang-tidy", "--version"]).stdout + file.read() + EFFORT.encode()


def key_of(path):
    """None where that cannot be told. Comments count, for some of them silence a check; the folder of the build does not."""
    entry = commands.get(path)
    if not entry:
        return None
    words = entry.get("arguments") or shlex.split(entry["command"])
    if "-o" in words:
        at = words.index("-o")
        words = words[:at] + words[at + 2:]
    words = [w for w in words if w != "-c"]
    text = run(words + ["-E", "-P", "-C", "-dD"], cwd=entry["directory"])
    if text.returncode:
        return None
    with open(path, "rb") as file:
        source = file.read()
    return hashlib.sha256(b"\0".join([COMMON, path.encode(), source, text.stdout])).hexdigest()


def look(path):
    key = None if "--all" in sys.argv else key_of(path)
    if key and os.path.exists(os.path.join(cache, key)):
        return True
    done = run(["clang-tidy", "-p", build, "--quiet", *limits, path])
    if done.returncode:
        sys.stdout.write(done.stdout.decode(errors="replace") + done.stderr.decode(errors="replace"))
        return False
    if key:
        try:
            os.makedirs(cache, exist_ok=True)
            with open(os.path.join(cache, key), "wb"):
                pass
        except OSError:
            pass  # it is looked at again
    return True


with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
    sys.exit(0 if all(list(pool.map(look, files))) else 1)

"""mutants.py CONFORM SOURCES LIST [all | NAME...]: breaks a kernel, and wants cltrain-conform to see it.

Without names some are tried, those that take little. A kernel is broken in a copy, which the library reads in the place of its
own (CLTRAIN_KERNEL_FOLDER), and a formula of a pointwise op in a copy of what holds it: nothing is rebuilt. First each case runs with the kernels as they are, and must pass.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

POCL = "/etc/OpenCL/vendors/pocl.icd"
QUICK = ["conv-last-tap", "sum-no-barrier", "dropout-past-end", "bn-join", "gpu-operand-split", "cross-entropy-past", "sigmoid-overflow"]


def read_list(path):
    mutants = []
    for line in pathlib.Path(path).read_text(encoding="utf-8").splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        word, _, rest = line.partition(" ")
        if word == "mutant":
            name, _, what = rest.partition(": ")
            mutants.append({"name": name, "what": what, "on": "", "new": ""})
        else:
            mutants[-1][word] = rest.replace("\\n", "\n") if word in ("old", "new") else rest.strip()
    for m in mutants:
        if not {"file", "case", "by", "old"} <= m.keys():
            sys.exit(f"{path}: {m['name']} is not whole")
    return mutants


def oclgrind(folder):
    """A folder for the loader with Oclgrind alone; None if it is not installed."""
    for library in ("/usr/lib/oclgrind/liboclgrind-rt-icd.so", "/usr/local/lib/oclgrind/liboclgrind-rt-icd.so"):
        if os.path.exists(library):
            vendors = folder / "vendors"
            vendors.mkdir(exist_ok=True)
            (vendors / "oclgrind.icd").write_text(library + "\n", encoding="utf-8")
            return str(vendors)
    return None


def run(conform, case, out, environment):
    """What became of the cases: [(id, status, {question: verdict}, reason)]."""
    done = subprocess.run([conform, "--case", case, "--json", str(out), "--full"], env={**os.environ, **environment},
                          capture_output=True, text=True, timeout=500, check=False)
    if done.returncode not in (0, 1) or not out.exists():
        sys.exit(f"cltrain-conform --case {case} gave {done.returncode}: {done.stderr[-500:]}")
    document = json.loads(out.read_text(encoding="utf-8"))
    out.unlink()
    results = [(c["id"], r["status"], r, r["reason"]) for c in document["cases"] for r in c["results"]]
    if not results or document["devices"][0]["status"] != "ok":
        sys.exit(f"{case}: nothing was run: {document['devices']}")
    return done.returncode, results


def check(sources, mutants):
    """Whether kernels still have what is to be broken: of all mutants, those too that are not tried now."""
    for m in mutants:
        if m["file"] != "formula" and m["old"] not in (sources / "cl" / m["file"]).read_text(encoding="utf-8"):
            sys.exit(f"{m['name']}: cl/{m['file']} has no such text any more: {m['old']!r}")


def mutate(sources, folder, mutant):
    text = (sources / "cl" / mutant["file"]).read_text(encoding="utf-8")
    path = folder / mutant["name"] / mutant["file"]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text.replace(mutant["old"], mutant["new"]), encoding="utf-8")
    return {"CLTRAIN_KERNEL_FOLDER": str(folder / mutant["name"])}


def holds(program):
    """The program, and the library if it is linked with a shared one."""
    listed = subprocess.run(["ldd", program], capture_output=True, text=True, check=False).stdout
    return [program] + [line.split()[2] for line in listed.splitlines() if "libcltrain.so" in line and "/" in line]


def mutate_formula(conform, folder, mutant):
    """A program whose formula is another one, no longer than the library's, and how it is run."""
    old, new = (b"\0" + mutant[k].encode().ljust(len(mutant["old"])) + b"\0" for k in ("old", "new"))
    if len(new) > len(old):
        sys.exit(f"{mutant['name']}: longer than what it takes the place of")
    for path in map(pathlib.Path, holds(conform)):
        content = path.read_bytes()
        if content.count(old) != 1:
            continue
        copy = folder / mutant["name"] / path.name
        copy.parent.mkdir()
        copy.write_bytes(content.replace(old, new))
        copy.chmod(0o755)
        return str(copy) if path.samefile(conform) else conform, {"LD_LIBRARY_PATH": str(copy.parent)}
    sys.exit(f"{mutant['name']}: there is no such formula any more: {mutant['old']!r}")


def main():
    conform, sources, path = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3]
    names = sys.argv[4:] or QUICK
    listed = read_list(path)
    mutants = [m for m in listed if names == ["all"] or m["name"] in names]
    check(sources, listed)
    missed, skipped, sound = [], [], {}
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        for m in mutants:
            environment = {"CLTRAIN_DEVICE": ""}
            if os.path.exists(POCL):
                environment["OCL_ICD_VENDORS"] = POCL
            if m["on"] == "oclgrind":
                vendors = oclgrind(folder)
                if not vendors:
                    skipped.append(m["name"])
                    print(f"{m['name']:24} skipped: there is no Oclgrind")
                    continue
                environment["OCL_ICD_VENDORS"] = vendors
            key = (m["case"], m["on"])
            if key not in sound:
                code, results = run(conform, m["case"], folder / "out.json", environment)
                sound[key] = code == 0 and all(r[1] == "passed" for r in results)
                if not sound[key]:
                    missed.append(m["name"])
                    print(f"{m['name']:24} the kernels as they are do not pass: {results[0][3]}")
                    continue
            program, changes = (mutate_formula(conform, folder, m) if m["file"] == "formula" else
                                (conform, mutate(sources, folder, m)))
            code, results = run(program, m["case"], folder / "out.json", {**environment, **changes})
            caught = [(i, q, reason) for i, _, r, reason in results for q in m["by"].split() if r[q] == "failed"]
            if not caught or code != 1:
                missed.append(m["name"])
                print(f"{m['name']:24} NOT CAUGHT ({m['what']}): {results}")
            else:
                case, question, reason = caught[0]
                print(f"{m['name']:24} caught by {question} of {case}: {reason[:150]}", flush=True)
    print(f"{len(mutants) - len(missed) - len(skipped)} of {len(mutants)} mutants caught" + (f", {len(skipped)} skipped" if skipped else ""))
    return 1 if missed or not mutants else 0


sys.exit(main())

#!/usr/bin/env python3
"""small_pocl.py SOURCES FOLDER: makes of the PoCL that is installed one that compiles kernels in two thirds of the time.

Each program that PoCL 3 compiles begins with the declarations of all built-in functions, 900 KB, and each device that is opened
loads a library of 9 MB with their code. Of both, FOLDER/pocl gets what has a name that occurs in SOURCES; all else there is linked
to the installed one. FOLDER/vendors is for OCL_ICD_VENDORS: this PoCL, and the other drivers as they are.
A built-in function that is in no source yet is not declared: this script has to be run again, which the build does.
Nothing is made, and the script says why, where PoCL is not laid out as it expects, or there is no llvm-extract of its LLVM.
"""
import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

VENDORS = pathlib.Path("/etc/OpenCL/vendors")

LD = """#!/bin/sh
# Kernels are loaded by programs that have the libraries which are named for each kernel.
case " $* " in *kcache/tempfile*)
    n=$#
    for argument; do
        case $argument in -l*) ;; *) set -- "$@" "$argument" ;; esac
    done
    shift $n
    ;;
esac
exec /usr/bin/ld "$@"
"""


def words_of(sources):
    """Identifiers of the kernels, of what is pasted together there, and of the strings of C and of CLBlast and clFFT, which write kernels."""
    found = set()
    for folder in ("cl", "backends", "runtime", "tests", "tools", "examples"):
        for path in (sources / folder).rglob("*.c*"):
            text = path.read_text(errors="replace")
            if path.suffix == ".c":
                text = "\n".join(re.findall(r'"(?:[^"\\\n]|\\.)*"', text)).replace("\\n", " ")
            found.update(re.findall(r"[A-Za-z_]\w*", text))
    for name in ("clblast", "clFFT"):
        for path in pathlib.Path("/usr/lib").glob(f"*-linux-gnu/lib{name}.so"):
            found.update(word.decode() for word in re.findall(rb"\b[A-Za-z_]\w*", path.read_bytes()))
    return found


def is_used(name, words):
    """vload8 is, where there is a vload; vstore_half8_rte, where there are vstore_half and _rte."""
    if name in words:
        return True
    parts = re.fullmatch(r"([A-Za-z_]+)(?:2|4|8|16)(\w*)", name)
    return bool(parts) and parts[1] in words and (not parts[2] or parts[2] in words or parts[1] + parts[2] in words)


def is_wanted(name, declaration, words):
    """No kernel here computes with halves or vectors of three."""
    if not is_used(name, words):
        return False
    return not re.search(r"3\b|vector\[3\]", declaration) and ("half" in name or not re.search(r"\bhalf|_Float16", declaration))


def write(path, data, mode=0o644):
    """Not seen before it is whole: builds that share a folder may be at it at once."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
        file.write(data)
    os.chmod(file.name, mode)
    os.replace(file.name, path)


def link(path, to):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    path.symlink_to(to)


def header(installed, words):
    lines = []
    for line in installed.read_text().splitlines(keepends=True):
        declares = "__ovld" in line and re.match(r"[a-z].*?\b(\w+)\s*\(.*\);\s*$", line)
        if not declares or is_wanted(declares[1], line, words):
            lines.append(line)
    return "".join(lines).encode()


def library(installed, words, tools):
    """Functions of the bitcode, and what they call."""
    listed = subprocess.run([tools["nm"], "--defined-only", installed], capture_output=True, text=True, check=True).stdout
    symbols = re.findall(r" [Tt] (\S+)$", listed, re.M)
    plain = subprocess.run([tools["cxxfilt"]], input="\n".join(symbols), capture_output=True, text=True, check=True).stdout.splitlines()
    kept = []
    for symbol, text in zip(symbols, plain):
        if symbol.startswith("_Z"):
            name = re.match(r"(?:_cl_)?(\w+)\(", text)
            wanted = name and is_wanted(name[1], text, words)
        else:
            wanted = not symbol.startswith("Sleef")  # called by what the driver makes itself
        if wanted:
            kept.append(symbol)
    with tempfile.TemporaryDirectory() as folder:
        arguments = pathlib.Path(folder, "arguments")
        arguments.write_text("".join(f"--func={s}\n" for s in kept))
        made = pathlib.Path(folder, "library.bc")
        subprocess.run([tools["extract"], f"@{arguments}", "--recursive", installed, "-o", made], check=True)
        return made.read_bytes()


def installed_pocl():
    """The driver's file, the folder with its headers and libraries, and the tools of its LLVM; or why there are none."""
    driver = (VENDORS / "pocl.icd").read_text().strip()
    path = next(pathlib.Path("/usr/lib").glob("*-linux-gnu/" + driver), None)
    if not path:
        raise LookupError(f"there is no /usr/lib/*-linux-gnu/{driver}")
    share = path.parent / "../../share/pocl"
    if not (share / "include/opencl-c.h").exists():
        raise LookupError(f"there is no {share.resolve()}/include/opencl-c.h")
    tools = {tool: shutil.which(f"llvm-{tool}-15") for tool in ("nm", "cxxfilt", "extract")}
    missing = [f"llvm-{tool}-15" for tool, found in tools.items() if not found]
    if missing:
        raise LookupError(f"{missing[0]} is not installed")
    return path, share.resolve(), tools


def processor():
    """What the library's file is called that PoCL takes on this machine; another one works as well, and is not made smaller."""
    flags = re.search(r"^flags\s*:(.*)", pathlib.Path("/proc/cpuinfo").read_text(), re.M)
    flags = flags[1].split() if flags else []
    known = {"avx512f": "-avx512.bc", "avx2": "-avx2.bc", "avx": "-avx.bc", "sse2": "-sse2.bc"}
    return next((known[flag] for flag in known if flag in flags), ".bc")


def make(folder, driver, share, tools, words, declarations):
    lib = folder / "pocl/lib/arch"
    link(lib / driver.name, driver)
    link(lib / "pocl", driver.parent / "pocl")
    for path in (share / "include").iterdir():
        if path.name == "opencl-c.h":
            write(folder / "pocl/share/pocl/include" / path.name, declarations)
        else:
            link(folder / "pocl/share/pocl/include" / path.name, path)
    for path in share.glob("*.bc"):
        made = folder / "pocl/share/pocl" / path.name
        if path.name.endswith(processor()):
            write(made, library(path, words, tools))
        else:
            link(made, path)
    write(folder / "bin/ld", LD.encode(), 0o755)
    write(folder / "vendors/pocl.icd", f"{(lib / driver.name).absolute()}\n".encode())


def main():
    sources, folder = map(pathlib.Path, sys.argv[1:])
    for path in VENDORS.glob("*.icd"):
        if path.name != "pocl.icd" or not (folder / "pocl").exists():
            link(folder / "vendors" / path.name, path)
    try:
        driver, share, tools = installed_pocl()
    except (OSError, LookupError) as reason:
        print(f"PoCL is used as it is installed: {reason}")
        return
    words = words_of(sources)
    declarations = header(share / "include/opencl-c.h", words)
    made_of = hashlib.sha256(repr((declarations, driver.stat().st_mtime, pathlib.Path(__file__).read_text())).encode()).hexdigest()
    known = folder / "made-of"
    if known.exists() and known.read_text() == made_of:
        return
    make(folder, driver, share, tools, words, declarations)
    write(known, made_of.encode())


main()

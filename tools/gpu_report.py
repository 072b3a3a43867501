"""gpu_report.py [--check PAGE] FOLDER… [--intel FOLDER…]: what the compilers of GPU vendors make of OpenCL kernels, as a page in Markdown on stdout; or with
--check whether it is no worse than a page that was made before: exit code 1 if it is.

A FOLDER is what `CLTRAIN_CLASS=gpu cltrain-probe backends MODEL --sources FOLDER --json=FOLDER/backends.json` writes; those behind --intel, with
CLTRAIN_CLASS=intel-gpu, are for Intel's targets. Nothing is run: registers, spills, local memory and instructions are those of compiled code. Targets whose
compiler is not here are left out, and named on stderr:

    NVIDIA  clang-15 and libclc-15 to PTX, then ptxas and nvdisasm (PyPI: nvidia-cuda-nvcc, nvidia-cuda-nvdisasm; or $CUDA_BIN, a folder with both)
    AMD     clang-15 and libclc-15
    Intel   ocloc (Debian: intel-opencl-icd), or $OCLOC
"""
import collections
import concurrent.futures
import glob
import hashlib
import importlib.util
import json
import math
import os
import re
import shutil
import subprocess
import sys
import tempfile

CLANG = {"gfx942": "clang-19"}  # else:
USUAL_CLANG = "clang-15"
LIBCLC = "/usr/lib/clc"
OPTIONS = ["-cl-std=CL1.2", "-cl-denorms-are-zero"]

# What a multiprocessor, or a SIMD unit, has. NVIDIA: CUDA C++ Programming Guide, "Technical Specifications per Compute Capability": warps, work-groups, and
# bytes of local memory; registers are given to a warp by 256 out of 65,536. AMD: waves that a SIMD unit holds; how many fit, clang tells.
NVIDIA = {"sm_75": (32, 16, 64 << 10), "sm_86": (48, 16, 100 << 10), "sm_90": (64, 32, 228 << 10)}
AMD = {"gfx900": 10, "gfx90a": 8, "gfx942": 8, "gfx1030": 16, "gfx1100": 16}
AMD_PAIRS = ("gfx90a", "gfx942", "gfx1100")  # an instruction may have two multiply-adds
INTEL = ("dg2", "tgllp")

Kernel = collections.namedtuple("Kernel", "path name group text")
# spills: bytes; occupancy: a share, None where it is not known; load: bytes of the widest load of global memory; inner: multiply-adds among the instructions of
# the innermost loop that has most of them; tile: of the loop around it. None where there is none.
Code = collections.namedtuple("Code", "registers spills occupancy load inner tile width", defaults=(None,))


class CannotCompile(Exception):
    pass


def run(*command, **more):
    result = subprocess.run(command, capture_output=True, text=True, check=False, **more)
    if result.returncode:
        raise CannotCompile(f"{os.path.basename(command[0])}: {(result.stderr or result.stdout).strip()[-400:]}")
    return result.stdout + result.stderr


# ---- loops ----

Line = collections.namedtuple("Line", "target counted products")


class Listing:
    """Instructions in their order: the label that each jumps to or None, whether it takes a slot, and its multiply-adds."""

    def __init__(self):
        self.lines, self.labels, self.loads = [], {}, [0]

    def label(self, name):
        self.labels[name] = len(self.lines)

    def add(self, target, counted, products):
        self.lines.append(Line(target, int(counted), int(products)))

    def loops(self):
        """(first, last) of each backward jump."""
        return [(self.labels[line.target], i) for i, line in enumerate(self.lines) if self.labels.get(line.target, i + 1) <= i]

    def counts(self, loop):
        part = self.lines[loop[0]:loop[1] + 1]
        return sum(line.counted for line in part), sum(line.products for line in part)

    def shares(self, text, of_slot=1):
        """Of multiply-adds, of which a slot takes so many: in the innermost loop with most of them; and in the next one around it, where the text tells how many
        that has in a turn. None where there is no such loop."""
        loops = self.loops()
        innermost = [a for a in loops if not any(b != a and a[0] <= b[0] and b[1] <= a[1] for b in loops)]
        best = max(innermost, key=lambda loop: self.counts(loop)[1], default=None)
        if not best or not self.counts(best)[1]:
            return None, None
        counted, products = self.counts(best)
        inner = products / counted / of_slot
        sizes = [re.search(rf"^#define GPU_{name} (\d+)$", text, re.M) for name in ("K", "ITEM_M", "ITEM_N")]
        if not all(sizes):
            return inner, None
        wanted = math.prod(int(size[1]) for size in sizes)
        around = [a for a in loops if a != best and a[0] <= best[0] and best[1] <= a[1]]
        if products >= wanted or not around: # unrolled
            return inner, inner if products >= wanted else None
        others = self.counts(min(around, key=lambda loop: loop[1] - loop[0]))[0] - counted
        return inner, wanted / (others + counted * wanted / products) / of_slot


# ---- NVIDIA ----


def cuda_folder():
    if os.environ.get("CUDA_BIN"):
        return os.environ["CUDA_BIN"]
    if shutil.which("ptxas"):
        return os.path.dirname(shutil.which("ptxas"))
    package = importlib.util.find_spec("nvidia")
    return next((folder for root in (package.submodule_search_locations if package else []) for folder in glob.glob(f"{root}/*/bin")
                 if os.path.exists(f"{folder}/ptxas")), "")


def to_llvm(kernel, arch, target, library, output, *more):
    run(CLANG.get(arch, USUAL_CLANG), "-x", "cl", "-target", target, "-nogpulib", "-O3", *OPTIONS, "-Xclang", "-finclude-default-header", "-Xclang", "-mlink-builtin-bitcode",
        "-Xclang", f"{LIBCLC}/{library}", "-S", "-w", "-o", output, *more, kernel.path)


def nvidia_occupancy(arch, registers, local, group):
    warps, groups, memory = NVIDIA[arch]
    size = -(-group // 32)
    by_registers = 65536 // (-(-registers * 32 // 256) * 256) // size
    return min(by_registers, warps // size, groups, memory // (local + 1024)) * size / warps


def nvidia(kernel, arch, folder):
    to_llvm(kernel, arch, "nvptx64-nvidia-nvcl", "nvptx64--nvidiacl.bc", f"{folder}/k.ptx")
    told = run(f"{cuda_folder()}/ptxas", "-v", f"-arch={arch}", "-o", f"{folder}/k.cubin", f"{folder}/k.ptx")
    told = told.split(f"entry function '{kernel.name}'")[1].split("Compiling")[0]
    registers, spills = int(re.search(r"Used (\d+) registers", told)[1]), sum(map(int, re.findall(r"(\d+) bytes spill", told)))
    local = re.search(r"(\d+) bytes smem", told)
    code = Listing()
    text = run(f"{cuda_folder()}/nvdisasm", "-c", f"{folder}/k.cubin")
    for line in text.split(f"\n.text.{kernel.name}:")[1].split("\n//-----")[0].splitlines():
        if re.match(r"\.L_x_\d+:", line):
            code.label(line[:-1])
        word = re.match(r"\s+/\*[0-9a-f]{4,}\*/\s+(?:\{\s*)?(?:@!?U?P\w+ )?([A-Z][\w.]*)(.*)", line)
        if not word or word[1] == "NOP":
            continue
        target = re.search(r"`\((\.L_x_\d+)\)", word[2]) if word[1].startswith("BRA") else None
        if word[1].startswith("LDG"):
            width = re.search(r"\.[US]?(8|16|64|128)\b", word[1])
            code.loads.append(int(width[1]) // 8 if width else 4)
        code.add(target and target[1], True, word[1].startswith(("FFMA", "HFMA2", "DFMA")))
    occupancy = nvidia_occupancy(arch, registers, int(local[1]) if local else 0, kernel.group)
    return Code(registers, spills, occupancy, max(code.loads), *code.shares(kernel.text))


# ---- AMD ----

AMD_PRODUCTS = re.compile(r"v_(?:dual_)?(pk_)?(?:fma|fmac|mac|mad)(?:k|ak|mk)?_f(?:16|32|64)")
AMD_WIDTHS = {"ubyte": 1, "sbyte": 1, "ushort": 2, "sshort": 2, "dword": 4, "dwordx2": 8, "dwordx3": 12, "dwordx4": 16, "u8": 1, "i8": 1, "u16": 2, "i16": 2,
              "b32": 4, "b64": 8, "b96": 12, "b128": 16}
AMD_UNITS = ("v_", "ds_", "global_", "flat_", "buffer_", "scratch_")  # scalar instructions have slots of their own


def amd(kernel, arch, folder):
    to_llvm(kernel, arch, "amdgcn-amd-amdhsa", "amdgcn--amdhsa.bc", f"{folder}/k.s", f"-mcpu={arch}")
    with open(f"{folder}/k.s", encoding="utf-8") as file:
        text = file.read()
    # The code, then what comments tell of it; and what the runtime reads, much later.
    body, after = text.split(f"\n{kernel.name}:")[1].split(".Lfunc_end", 1)
    facts = text.split(f".name:           {kernel.name}\n")[1]

    def told(words, where):
        return int(re.search(words + r":\s+(\d+)", where)[1])

    code = Listing()
    for line in body.splitlines():
        if re.match(r"\.LBB\d+_\d+:", line):
            code.label(line.split(":")[0])
        word = re.match(r"\t([a-z]\w+)([^;]*)", line)
        if not word:
            continue
        target = re.search(r"(\.LBB\d+_\d+)", word[2]) if word[1].startswith(("s_cbranch", "s_branch")) else None
        load = re.match(r"(?:global|flat|buffer)_load_([a-z0-9]+)", word[1])
        if load:
            code.loads.append(AMD_WIDTHS.get(load[1], 0))
        products = sum(2 if packed else 1 for packed in AMD_PRODUCTS.findall(word[0]))
        code.add(target and target[1], word[1].startswith(AMD_UNITS), products)
    occupancy = min(told("; Occupancy", after) / AMD[arch], 1)
    shares = code.shares(kernel.text, 2 if arch in AMD_PAIRS else 1)
    return Code(told(r"\.vgpr_count", facts), told(r"\.private_segment_fixed_size", facts), occupancy, max(code.loads), *shares)


# ---- Intel ----


def ocloc():
    return os.environ.get("OCLOC") or shutil.which("ocloc") or ""


def intel(kernel, device, folder):
    dump = f"{folder}/igc"
    os.mkdir(dump)
    run(ocloc(), "compile", "-file", kernel.path, "-device", device, "-options", " ".join(OPTIONS), "-out_dir", folder,
        env=dict(os.environ, IGC_ShaderDumpEnable="1", IGC_DumpToCustomDir=dump))
    texts = []
    for path in sorted(glob.glob(f"{dump}/*.asm"), key=os.path.getmtime):
        with open(path, encoding="utf-8", errors="replace") as file:
            texts.append(file.read())
    texts = [text for text in texts if text.startswith(f"//.kernel {kernel.name}\n")]
    if not texts:
        raise CannotCompile("ocloc: no assembly was dumped")
    # What does not fit into registers is compiled once more, and lies in memory of its own then, without being called a spill.
    spills = max(int(size) for text in texts for size in re.findall(r"^//\.spill size (\d+)", text, re.M) or [0])
    text = texts[-1]
    code = Listing()
    for line in text.splitlines():
        if re.match(r"\w+:", line):
            code.label(line.split(":")[0])
        word = re.match(r"(?:\([^)]*\))?\s+([a-z][\w.]*) (?:\((\d+)\|M\d+\))?\s+(\S+)", line)
        if not word:
            continue
        load = re.search(r"surface read with ([xyzw]+)", line)
        if load:
            code.loads.append(4 * len(load[1]))
        code.add(word[3] if word[1] in ("while", "goto", "jmpi") else None, True, word[1] == "mad" and word[2] != "1" and ":f" in line)
    width = max(int(lanes) for lanes in re.findall(r"\((\d+)\|M0\)", text))
    return Code(int(re.search(r"numGRF=(\d+)", text)[1]), spills, None, max(code.loads), *code.shares(kernel.text), width)


# ---- all of them ----


def targets():
    """(name, function, why not)."""
    def lacks(arch):
        clang = CLANG.get(arch, USUAL_CLANG)
        return f"no {LIBCLC}" if not os.path.isdir(LIBCLC) else None if shutil.which(clang) else f"no {clang}"

    listed = [(name, nvidia, lacks(name) or (None if cuda_folder() else "no ptxas")) for name in NVIDIA] + [(name, amd, lacks(name)) for name in AMD]
    return listed + [(name, intel, None if ocloc() else "no ocloc") for name in INTEL]


def documents_of(folders):
    for folder in folders:
        with open(f"{folder}/backends.json", encoding="utf-8") as file:
            yield json.load(file)


def read_kernels(folders):
    """Those that differ: {(name, digest): (text, work-items in a group)}."""
    found = {}
    for folder, document in zip(folders, documents_of(folders)):
        for kernel in document["kernels"]:
            with open(f"{folder}/{kernel['file']}", encoding="utf-8") as file:
                text = file.read()
            group = math.prod(kernel["group"])
            # CPU drivers are not told of a fixed group (backends/native/gpu/gpu.c).
            text = text.replace("#define GPU_FIXED_GROUP \n", f"#define GPU_FIXED_GROUP __attribute__((reqd_work_group_size({group}, 1, 1)))\n")
            found.setdefault((kernel["kernel"], hashlib.sha256(text.encode()).hexdigest()), (text, group))
    return found


def compile_all(found, wanted):
    """{(kernel name, digest): {target: Code or CannotCompile}}."""
    results = {key: {} for key in found}

    def one(job):
        (key, (text, group)), (name, function, _) = job
        with tempfile.TemporaryDirectory(prefix="cltrain-gpu-") as folder:
            path = f"{folder}/k.cl"
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
            try:
                return key, name, function(Kernel(path, key[0], group, text), name, folder)
            except CannotCompile as why:
                return key, name, why

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for key, name, code in pool.map(one, [(item, target) for item in found.items() for target in wanted]):
            results[key][name] = code
    return results


# ---- time ----

# Vendors' data sheets: GFLOP/s of f32 in vectors, GB/s of memory; and the target whose code such a card runs, or one like it.
Card = collections.namedtuple("Card", "name target gflops gbytes")
CARDS = [Card("RTX 3060", "sm_86", 12740, 360), Card("H200", "sm_90", 66900, 4800), Card("RX 580", "gfx900", 6175, 256),
         Card("RX 6700 XT", "gfx1030", 13210, 384), Card("MI250X, one die", "gfx90a", 23950, 1638), Card("Arc A770", "dg2", 19660, 560)]
OF_BANDWIDTH, LAUNCH = 0.85, 5e-6


def step_of(document, gflops, gbytes, launch=LAUNCH):
    """Seconds of a training step, and the part of them in which arithmetic is the limit: each node takes as long as its arithmetic at so many GFLOP/s or its
    bytes at so many GB/s, whichever is longer; and each launch so many seconds."""
    arithmetic = memory = 0
    for problem in document["problems"]:
        for_flops, for_bytes = problem["gflop"] / gflops, problem["gbyte"] / gbytes
        arithmetic += problem["count"] * for_flops if for_flops > for_bytes else 0
        memory += problem["count"] * for_bytes if for_flops <= for_bytes else 0
    total = arithmetic + memory + launch * sum(kernel["launches"] for kernel in document["kernels"])
    return total, arithmetic / total


def share_of(codes, target):
    shares = [c[target].tile for c in codes if target in c and c[target].tile]
    return sum(shares) / len(shares) if shares else None


def step_rows(documents, contractions):
    for document in documents:
        cells = []
        for card in CARDS:
            share = share_of(contractions, card.target)
            seconds, arithmetic = step_of(document, share * card.gflops, OF_BANDWIDTH * card.gbytes) if share else (0, 0)
            cells.append(f"{1e3 * seconds:.3g} ms, {percent(arithmetic)}" if share else "-")
        yield [document["model"]] + cells


# ---- the page ----


def spread(values, form):
    values = [v for v in values if v is not None]
    return "-" if not values else form(min(values)) if min(values) == max(values) else f"{form(min(values))} to {form(max(values))}"


def percent(x):
    return f"{100 * x:.0f} %"


def contraction_row(name, codes):
    tile = sorted(c.tile for c in codes if c.tile is not None)
    spilled = [c.spills for c in codes if c.spills]
    return [name, spread([c.registers for c in codes], str), f"{len(spilled)}, to {max(spilled)} bytes" if spilled else "0", spread([c.occupancy for c in codes], percent),
            spread([c.inner for c in codes], percent), f"{percent(tile[0])}, {percent(sum(tile) / len(tile))}, {percent(tile[-1])}" if tile else "-",
            spread([c.width for c in codes], str)]


def cell(codes):
    """Registers, and the bytes of the widest load, of all variants; spills where there are any."""
    if not codes:
        return "-"
    text = f"{spread([c.registers for c in codes], str)}, {spread([c.load for c in codes], str)}"
    spills = max(c.spills for c in codes)
    return text + (f", **{spills} spilled**" if spills else "")


def table(head, rows):
    return "\n".join("| " + " | ".join(cells) + " |" for cells in [head, ["---"] * len(head)] + rows) + "\n"


def family(name):
    """Generated kernels are of one kind: pw_relu_0123456789abcdef."""
    return re.sub(r"^(pw_.*)_[0-9a-f]{16}$", r"\1", name)


def is_contraction(name):
    return name in ("gpu_contract", "unit_contract")


HEAD = """# What the compilers of GPU vendors make of the kernels

By `sh tools/gpu_report.sh build`, which compiles the kernels of training steps for GPUs that need
not be there, and reads the machine code. Nothing was run on a GPU: these are counts, not times.

Models: {models}. Compilers: {compilers}.

* **Registers** of a work-item, of 4 bytes each; on Intel's GPUs of a thread, of 32 bytes each.
* **Spills**: bytes of memory in the place of registers, of a work-item; on Intel's GPUs of a
  thread, and there what spills is compiled once more, with all of its arrays in memory.
* **Occupancy**: what registers and local memory let a multiprocessor hold at once, of the most that
  it can hold. For AMD's GPUs it is clang's own figure.
* **Share**: multiply-adds among all instructions that take a slot of the vector and memory units;
  on gfx90a, gfx942 and gfx1100 a slot can have two. That of the loop over tiles is the part of the
  peak that issuing instructions leaves. Loops of Intel's code are not always found.
* **Lanes**: work-items of a thread.
"""


TIMES = """## Steps, as a model of time has them

f32. Each node of a step takes as long as its arithmetic, at the card's peak times the mean share of
its target's contractions, or as what it has to read and write, at 0.85 of the card's bandwidth,
whichever is longer; each launch takes 5 us. Peaks and bandwidths are those of data sheets. Behind
the time is the part of it that is arithmetic. No such card has been measured.
"""


def versions(wanted):
    names = {name for name, _, _ in wanted}
    clangs = sorted({CLANG.get(n, USUAL_CLANG) for n in names if n not in INTEL})
    told = [re.search(r"clang version [\d.]+", run(c, "--version"))[0] for c in clangs]
    if names & set(NVIDIA):
        told.append("ptxas " + re.search(r"release ([\d.]+)", run(f"{cuda_folder()}/ptxas", "--version"))[1])
    if names & set(INTEL):
        told.append("ocloc")
    return ", ".join(told)


def usable(results):
    return {key: {n: c for n, c in codes.items() if isinstance(c, Code)} for key, codes in results.items()}


def page(results, wanted, documents):
    names = [name for name, _, _ in wanted]
    good = usable(results)
    contractions = [codes for key, codes in good.items() if is_contraction(key[0])]
    yield HEAD.format(models=", ".join(d["model"] for d in documents), compilers=versions(wanted))
    yield f"## Contractions\n\n{len(contractions)} variants.\n"
    yield table(["target", "registers", "that spill", "occupancy", "share, innermost loop", "share, loop over tiles: least, mean, most", "lanes"],
                [contraction_row(n, [c[n] for c in contractions if n in c]) for n in names if any(n in c for c in contractions)])
    yield "## All others\n\nRegisters, and bytes of the widest load of memory.\n"
    families = {}
    for key, codes in good.items():
        if not is_contraction(key[0]):
            families.setdefault(family(key[0]), []).append(codes)
    yield table(["kernel"] + names, [[f"`{f}`"] + [cell([c[n] for c in codes if n in c]) for n in names] for f, codes in sorted(families.items())])
    yield TIMES
    yield table(["model"] + [f"{card.name} ({card.target})" for card in CARDS], list(step_rows(documents, contractions)))
    failures = [(key[0], n, c) for key, codes in results.items() for n, c in codes.items() if isinstance(c, CannotCompile)]
    if failures:
        yield "## What does not compile\n"
        yield table(["kernel", "target", "why"], [[f"`{k}`", n, str(why).replace("\n", " ").replace("|", "\\|")[-200:]] for k, n, why in failures])


def cells_of(text):
    """{row's name: {column's name: cell}} of all tables of a page."""
    found, head = {}, None
    for line in text.splitlines():
        cells = [c.strip() for c in re.split(r"(?<!\\)\|", line)[1:-1]]
        if not cells or set(cells[0]) == {"-"}:
            head = head if cells else None
        elif head is None:
            head = cells
        else:
            found[cells[0]] = dict(zip(head[1:], cells[1:]))
    return found


def spilled(cell_text):
    return max([int(n) for n in re.findall(r"(\d+) (?:bytes|spilled)", cell_text)], default=0)


def compare(old, new):
    """What is worse in the new page."""
    for name, columns in new.items():
        for column, text in columns.items():
            before = old.get(name, {}).get(column)
            if column == "why":
                yield f"{name} does not compile for {columns['target']}: {text}"
            elif before is not None and spilled(text) > spilled(before):
                yield f"{name}, {column}: {spilled(text)} bytes spill, expected {spilled(before)} at most"
            elif before is None and spilled(text) > 0:
                yield f"{name}, {column}: {spilled(text)} bytes spill, expected none"
            if before is not None and column.startswith(("occupancy", "share")):
                for is_, was in zip(re.findall(r"\d+", text), re.findall(r"\d+", before)):
                    if int(is_) < int(was) - 1:
                        yield f"{name}, {column}: {text}, expected {before}"
                        break


def main():
    arguments = sys.argv[1:]
    checked = arguments[1] if arguments[:1] == ["--check"] else None
    folders = arguments[2:] if checked else arguments
    split = folders.index("--intel") if "--intel" in folders else len(folders)
    if not folders[:split]:
        sys.exit(__doc__)
    wanted = [t for t in targets() if not t[2]]
    for name, _, why in targets():
        if why:
            print(f"gpu_report.py: {name} is left out: {why}", file=sys.stderr)
    results = compile_all(read_kernels(folders[:split]), [t for t in wanted if t[0] not in INTEL])
    for key, codes in compile_all(read_kernels(folders[split + 1:] or folders[:split]), [t for t in wanted if t[0] in INTEL]).items():
        results.setdefault(key, {}).update(codes)
    text = "\n".join(page(results, wanted, list(documents_of(folders[:split]))))
    if not checked:
        print(text)
        return 0
    with open(checked, encoding="utf-8") as file:
        worse = list(compare(cells_of(file.read()), cells_of(text)))
    for line in worse:
        print(line)
    return 1 if worse else 0


if __name__ == "__main__":
    sys.exit(main())

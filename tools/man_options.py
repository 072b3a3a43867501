"""Puts all options of a program, as its --help has them, into its man page, or tells whether they are there.

    man_options.py [--check] BIN FOLDER

BIN has the programs, FOLDER the pages, each with a part between the lines that begin with .\\" options.
"""
import pathlib
import re
import subprocess
import sys

COLUMN = 26  # where words begin in --help
PROGRAMS = ["cltrain-train", "cltrain-predict", "cltrain-run", "cltrain-generate", "cltrain-report", "cltrain-conform"]
BEGIN, END = '.\\" options: begin, by tools/man_options.py', '.\\" options: end'


def escaped(text):
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return "\\&" + text if text[:1] in (".", "'") else text


def section(help_text):
    """Rows of options, and the words after column 26 and in the lines below."""
    heading, out, is_row = None, [], False
    for line in help_text.splitlines():
        row = re.match(r"^  (?:(-\w), |    )--([a-z0-9-]+)(.*)$", line)
        if row:
            letter, name, rest = row.groups()
            width = COLUMN - len("  -x, --") - len(name)
            argument, words = rest[:width].rstrip(), rest[width:].strip()
            if rest[width - 1:width].strip():  # a longer one: the words are behind it
                argument, words = re.match(r"( ?\S+) ?(.*)", rest).groups()
            if heading:
                out.append(f'.SS "{escaped(heading)}"')
            heading = None
            short = f"\\fB{escaped(letter)}\\fR, " if letter else ""
            shown = f" \\fI{escaped(argument[1:])}\\fR" if argument.startswith(" ") else escaped(argument)
            out += [".TP", f"{short}\\fB\\-\\-{escaped(name)}\\fR{shown}"] + ([escaped(words)] if words else [])
            is_row = True
        elif is_row and line.startswith(" " * COLUMN) and line.strip():
            out.append(escaped(line.strip()))
        else:
            is_row = False
            if re.match(r"^\S.*:", line):
                heading = line.rstrip(":")
    return out


def main(arguments):
    checks = arguments[:1] == ["--check"]
    programs, pages = arguments[checks:]
    result = 0
    for program in PROGRAMS:
        page = pathlib.Path(pages) / f"{program}.1"
        text = page.read_text(encoding="utf-8")
        shown = subprocess.run([f"{programs}/{program}", "--help"], capture_output=True, text=True, check=True).stdout
        before, _, rest = text.partition(BEGIN + "\n")
        _, end, after = rest.partition(END)
        if not end:
            sys.exit(f"{page}: no part of options")
        made = before + BEGIN + "\n" + "\n".join(section(shown)) + "\n" + END + after
        if made == text:
            continue
        if checks:
            print(f"{page}: not as {program} --help has it: run python3 tools/man_options.py BIN {pages}")
            result = 1
        else:
            page.write_text(made, encoding="utf-8")
    return result


sys.exit(main(sys.argv[1:]))

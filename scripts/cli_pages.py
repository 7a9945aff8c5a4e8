#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Writes docs/man/*.1 and completions/softib.{bash,zsh,fish} from the texts of `softib --help`.

usage: scripts/cli_pages.py BIN [--check]    (BIN: bin/ of a build; --check: only compare, exit code 1 if they differ)
"""
import pathlib
import re
import subprocess
import sys

TOP = pathlib.Path(__file__).resolve().parent.parent
SPDX = "SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only"
VALUES = {"--path": ["auto", "adopted", "process_vm", "bounce"], "--verify": ["on", "faults"],
          "--link-layer": ["infiniband", "ethernet"], "--color": ["auto", "always", "never"]}


class Option:
    def __init__(self, names, value, text):
        self.names, self.value, self.text = names, value, text
        self.long = [n for n in names if n.startswith("--")]
        self.short = [n for n in names if not n.startswith("--")]


class Page:
    """One help text, parsed."""

    def __init__(self, program, words):
        said = subprocess.run([program, *words, "--help"], capture_output=True, text=True, check=True,
                              timeout=30).stdout
        self.words = words
        head, self.usage, rest = re.match(r"(.*?)\n?Usage: (.*?)\n(.*)", said, re.DOTALL).groups()
        self.title = " ".join(head.split())
        self.options, self.arguments, self.commands, self.footer = [], [], [], ""
        rows, kind = [], None
        lines = rest.splitlines()
        for number, line in enumerate(lines):
            if line in ("Options:", "Positionals:", "Subcommands:"):
                kind = line
            elif line.startswith("  ") and kind:
                rows.append((kind, line))
            elif line and kind:
                self.footer = "\n".join(lines[number:]).strip()
                break
        self.take(rows)

    def take(self, rows):
        texts = [re.match(r"(  \S.*?  +)\S", line) for _, line in rows]
        starts = [len(found[1]) for found in texts if found]
        column = max(set(starts), key=starts.count, default=0)  # of the texts; a long name may end just before it
        items = []
        for kind, line in rows:
            if line[2] != " ":
                name, _, text = line.strip().partition("  ")
                head = line[:column]
                if not text and len(line) > column and head.endswith(" ") and head.count("[") == head.count("]"):
                    name, text = head.strip(), line[column:]
                items.append([kind, name, text.strip()])
            else:
                items[-1][2] = (items[-1][2] + " " + line.strip()).strip()
        for kind, name, text in items:
            if kind == "Subcommands:":
                self.commands.append((name, text))
            elif kind == "Positionals:":
                self.arguments.append((name, text))
            else:
                names, _, value = name.partition(" ")
                names = [re.sub(r"\{.*\}", "", n) for n in names.split(",")]
                self.options.append(Option(names, "" if value.startswith(":{") else value, text))


def all_pages(program):
    top = Page(program, [])
    pages = [top]
    for command, _ in top.commands:
        if command == "help":
            continue
        page = Page(program, [command])
        pages.append(page)
        pages += [Page(program, [command, action]) for action, _ in page.commands]
    return pages


def roff(text):
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return "\n".join("\\&" + line if line.startswith((".", "'")) else line for line in text.splitlines())


def man_rows(page):
    out = []
    for name, text in page.arguments:
        out += [".TP", f".I {roff(name)}", roff(text)]
    for option in page.options:
        if option.names[-1] == "--help" and page.words:
            continue
        names = ", ".join(f"\\fB{roff(n)}\\fR" for n in option.names)
        value = f" \\fI{roff(option.value)}\\fR" if option.value else ""
        out += [".TP", names + value, roff(option.text)]
    return out


def man_softib(pages):
    out = [f".\\\" {SPDX}", ".\\\" Written by scripts/cli_pages.py.", '.TH SOFTIB 1 "" softib "User Commands"', ".SH NAME",
           "softib \\- software InfiniBand adapters for programs that know nothing of them", ".SH SYNOPSIS",
           ".B softib", "[\\fB\\-\\-version\\fR] \\fICOMMAND\\fR [\\fIOPTIONS\\fR]", ".br", ".B softib run",
           "[\\fIOPTIONS\\fR] [\\fB\\-\\-\\fR] \\fICMD\\fR [\\fIARGS\\fR...]", ".SH DESCRIPTION",
           "softib gives any program that uses libibverbs a host channel adapter, on a machine that has none: no RDMA",
           "hardware, no kernel module, no root, and the program is not changed.",
           "Programs of one fabric exchange data through shared memory; softibd(1) creates and destroys their objects.",
           ".SH OPTIONS", *man_rows(pages[0]), ".SH COMMANDS"]
    for page in pages[1:]:
        out += [f".SS softib {roff(' '.join(page.words))}", roff(page.title[:1].upper() + page.title[1:] + "."),
                *man_rows(page)]
        footer = page.footer
        if footer:
            out += [".PP", ".nf", roff(footer), ".fi"]
    out += [".SH EXIT STATUS AND ENVIRONMENT", ".nf", roff(pages[0].footer.split("\n\n", 1)[1]), ".fi",
            ".SH FILES", "The runtime directory is $SOFTIB_RUNTIME_DIR, else $XDG_RUNTIME_DIR/softib, else /tmp/softib\\-<uid>.",
            "It has, for each fabric, NAME.sock and NAME.lock while the fabric is up, and NAME.log.",
            ".SH SEE ALSO", ".BR softibd (1), ibv_devinfo (1), ib_write_lat (1)"]
    return "\n".join(out) + "\n"


def man_softibd(page):
    out = [f".\\\" {SPDX}", ".\\\" Written by scripts/cli_pages.py.", '.TH SOFTIBD 1 "" softib "User Commands"', ".SH NAME",
           "softibd \\- the daemon behind a softib fabric", ".SH SYNOPSIS", ".B softibd", "[\\fIOPTIONS\\fR]",
           ".SH DESCRIPTION", ".nf", roff(page.footer), ".fi", ".SH OPTIONS", *man_rows(page),
           ".SH SEE ALSO", ".BR softib (1)"]
    return "\n".join(out) + "\n"


def words_after(pages):
    """Returns {"hca add": [words]}: actions, then options."""
    return {" ".join(p.words): [n for n, _ in p.commands] + [n for o in p.options for n in o.names] for p in pages}


def bash(pages):
    table = words_after(pages)
    values = "|".join(sorted({n for p in pages for o in p.options if o.value for n in o.names}))
    out = [f"# {SPDX}", "# Completion of softib for bash. Written by scripts/cli_pages.py.", "_softib() {",
           "  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} i word command= action= skip= words=",
           "  for ((i = 1; i < COMP_CWORD; i++)); do", "    word=${COMP_WORDS[i]}",
           "    if [[ $skip ]]; then skip=; continue; fi", "    case $word in",
           "      --) [[ $command == run ]] && { _command_offset $((i + 1)) 2>/dev/null || "
           "COMPREPLY=($(compgen -c -f -- \"$cur\")); return; } ;;",
           f"      {values}) skip=1 ;;", "      -*) ;;",
           "      *) if [[ ! $command ]]; then command=$word; elif [[ $command == run ]]; then",
           "           _command_offset \"$i\" 2>/dev/null || COMPREPLY=($(compgen -f -- \"$cur\")); return",
           "         elif [[ ! $action ]]; then action=$word; fi ;;", "    esac", "  done", "  case $prev in",
           "    -f|--fabric) COMPREPLY=($(compgen -W \"$(softib list 2>/dev/null | awk '$2 == \"up\" {print $1}')\" -- \"$cur\"))"
           "; return ;;", "    --config) COMPREPLY=($(compgen -f -- \"$cur\")); return ;;"]
    for name, some in VALUES.items():
        out.append(f"    {name}) COMPREPLY=($(compgen -W \"{' '.join(some)}\" -- \"$cur\")); return ;;")
    out += ["  esac", "  case \"$command${action:+ $action}\" in"]
    for called, words in table.items():
        if called == "explain":  # below, with the names that can be explained
            continue
        out.append(f"    '{called}') words='{' '.join(words)}' ;;")
    out += ["    explain*) words=\"--all --fabric $(softib explain --all 2>/dev/null | awk '/^ / && NF == 2 {print $2}')\" ;;", "  esac",
            "  COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))", "}", "complete -F _softib softib"]
    return "\n".join(out) + "\n"


def quoted(text):
    return text.replace("'", "'\\''")


def zsh(pages):
    out = ["#compdef softib", f"# {SPDX}", "# Completion of softib for zsh. Written by scripts/cli_pages.py.", "",
           "_softib_fabrics() { compadd -- ${(f)\"$(softib list 2>/dev/null | awk '$2 == \"up\" {print $1}')\"} }", "",
           "_softib_arguments() {", "  case $1 in"]
    for page in pages:
        called = " ".join(page.words)
        out.append(f"    '{called}')")
        if page.commands:
            out.append("      if (( CURRENT == $2 )) && [[ $PREFIX != -* ]]; then")
            out.append("        local -a actions=(" + " ".join(f"'{n}:{quoted(t)}'" for n, t in page.commands) + ")")
            out += ["        _describe command actions; return", "      fi"]
        specs = []
        for option in page.options:
            text = re.sub(r"[\[\]:]", " ", option.text)
            value = ""
            if option.value:
                long = option.names[-1]
                kind = "_softib_fabrics" if long == "--fabric" else "_files" if long == "--config" else ""
                kind = f"({' '.join(VALUES[long])})" if long in VALUES else kind
                value = f":{re.sub(r'[^A-Za-z]+', ' ', option.value).strip().lower() or 'value'}:{kind}"
            specs += [f"'{name}[{quoted(text)}]{value}'" for name in option.names]
        specs.append("'*:::program: _normal'" if called == "run" else "'*: :_default'")
        out += ["      _arguments -S \\", *[f"        {s} \\" for s in specs[:-1]], f"        {specs[-1]}", "      ;;"]
    out += ["  esac", "}", "", "_softib() {", "  local called=${words[2]} at=3",
            "  if (( CURRENT == 2 )); then _softib_arguments '' 2; return; fi",
            "  case $called in", "    " + "|".join(p.words[0] for p in pages if len(p.words) == 1 and p.commands) + ")",
            "      if (( CURRENT > 3 )); then called=\"$called ${words[3]}\"; at=4; fi ;;", "  esac",
            "  _softib_arguments \"$called\" $at", "}", "", "_softib \"$@\""]
    return "\n".join(out) + "\n"


def fish(pages):
    out = [f"# {SPDX}", "# Completion of softib for fish. Written by scripts/cli_pages.py.", "complete -c softib -f"]
    top = pages[0]
    for name, text in top.commands:
        out.append(f"complete -c softib -n __fish_use_subcommand -a {name} -d '{fish_quoted(text)}'")
    for page in pages[1:]:
        when = " and ".join(f"__fish_seen_subcommand_from {w}" for w in page.words).replace(" and ", "; and ")
        for name, text in page.commands:
            out.append(f"complete -c softib -n '{when}' -a {name} -d '{fish_quoted(text)}'")
        if page.commands:
            continue
        for option in page.options:
            parts = [f"-l {n[2:]}" for n in option.long] + [f"-s {n[1:]}" for n in option.short]
            if option.value:
                long = option.names[-1]
                if long in VALUES:
                    parts.append(f"-xa '{' '.join(VALUES[long])}'")
                elif long == "--fabric":
                    parts.append("-xa '(softib list 2>/dev/null | string match -r \"^[^ ]+(?= +up )\")'")
                else:
                    parts.append("-rF" if long == "--config" else "-x")
            out.append(f"complete -c softib -n '{when}' {' '.join(parts)} -d '{fish_quoted(option.text)}'")
    out += ["complete -c softib -n '__fish_seen_subcommand_from run' -xa "
            "'(__fish_complete_subcommand --fcs-skip=2)'"]
    return "\n".join(out) + "\n"


def fish_quoted(text):
    return text.replace("\\", "\\\\").replace("'", "\\'")


def main():
    bin_dir = pathlib.Path(sys.argv[1])
    pages = all_pages(bin_dir / "softib")
    files = {"docs/man/softib.1": man_softib(pages), "docs/man/softibd.1": man_softibd(Page(bin_dir / "softibd", [])),
             "completions/softib.bash": bash(pages), "completions/softib.zsh": zsh(pages),
             "completions/softib.fish": fish(pages)}
    differs = [name for name, text in files.items()
               if not (TOP / name).exists() or (TOP / name).read_text() != text]
    if "--check" in sys.argv[2:]:
        for name in differs:
            print(f"{name} is not what `softib --help` says; run scripts/cli_pages.py BIN")
        sys.exit(1 if differs else 0)
    for name in differs:
        (TOP / name).parent.mkdir(parents=True, exist_ok=True)
        (TOP / name).write_text(files[name])
    print("written:", ", ".join(differs) or "nothing; all are as they should be")


if __name__ == "__main__":
    main()

#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Writes docs/man/* and completions/softib.{bash,zsh,fish} from the texts of `softib --help`, and the page of the
configuration file from docs/cli.md.

usage: scripts/cli_pages.py BIN [--check]    (BIN: bin/ of a build; --check: only compare, exit code 1 if they differ)
"""
import pathlib
import re
import subprocess
import sys

TOP = pathlib.Path(__file__).resolve().parent.parent
SPDX = "SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only"
VALUES = {"--path": ["auto", "adopted", "process_vm", "bounce"], "--verify": ["on", "faults"],
          "--link-layer": ["infiniband", "ethernet"], "--sm": ["softib", "direct", "none", "opensm"],
          "--routing": ["automatic", "min-hop", "up/down", "fat-tree", "torus"], "--color": ["auto", "always", "never"],
          "--net": ["datagram", "connected"], "--mode": ["datagram", "connected"]}


class Option:
    def __init__(self, names, value, text):
        self.names, self.value, self.text = names, value, text
        self.long = [n for n in names if n.startswith("--")]
        self.short = [n for n in names if not n.startswith("--")]
        self.takes_word = bool(value) and not value.startswith("[=")  # of its own


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
                names, bracket, optional = names.partition("[=")  # --sockets[=RANGES]; of softibd: --verify{on} :{...}
                names = [re.sub(r"\{.*\}", "", n) for n in names.split(",")]
                value = "" if value.startswith(":{") else value
                self.options.append(Option(names, bracket + optional or value, text))


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
        blank = "" if option.value.startswith("[=") else " "
        value = f"{blank}\\fI{roff(option.value)}\\fR" if option.value else ""
        out += [".TP", names + value, roff(option.text)]
    return out


def man_name(page):
    """"softib-run" of `softib run`; actions are on the page of their command."""
    return "-".join(["softib", *page.words[:1]])


def man_head(name, section, text):
    return [f".\\\" {SPDX}", ".\\\" Written by scripts/cli_pages.py.",
            f'.TH {name.upper()} {section} "" softib "{"File Formats" if section == 5 else "User Commands"}"', ".SH NAME",
            f"{roff(name)} \\- {roff(text)}"]


def man_softib(pages):
    out = [*man_head("softib", 1, "software InfiniBand adapters for programs that know nothing of them"), ".SH SYNOPSIS",
           ".B softib", "[\\fB\\-\\-version\\fR] \\fICOMMAND\\fR [\\fIOPTIONS\\fR]", ".br", ".B softib run",
           "[\\fIOPTIONS\\fR] [\\fB\\-\\-\\fR] \\fICMD\\fR [\\fIARGS\\fR...]", ".SH DESCRIPTION",
           "softib gives any program that uses libibverbs a host channel adapter, on a machine that has none: no RDMA",
           "hardware, no kernel module, no root, and the program is not changed.",
           "Programs of one fabric exchange data through shared memory; softibd(1) creates and destroys their objects.",
           ".SH OPTIONS", *man_rows(pages[0]), ".SH COMMANDS"]
    commands = [page for page in pages[1:] if len(page.words) == 1]
    for page in commands:
        out += [".TP", f".BR {roff(man_name(page))} (1)", roff(page.title[:1].upper() + page.title[1:] + ".")]
    out += [".SH EXIT STATUS AND ENVIRONMENT", ".nf", roff(pages[0].footer.split("\n\n", 1)[1]), ".fi",
            ".SH FILES", "The runtime directory is $SOFTIB_RUNTIME_DIR, else $XDG_RUNTIME_DIR/softib, else /tmp/softib\\-<uid>.",
            "It has, for each fabric, NAME.sock and NAME.lock while the fabric is up, and NAME.log.",
            ".SH SEE ALSO", ".BR softibd (1), softib\\-config (5), ibv_devinfo (1), ib_write_lat (1)"]
    return "\n".join(out) + "\n"


def man_command(page, actions):
    """The page of a command, with its actions."""
    called = roff(" ".join(["softib", *page.words]))
    synopsis = [f".B {called}", "[\\fIOPTIONS\\fR]" if not actions else "\\fIACTION\\fR [\\fIOPTIONS\\fR]"]
    synopsis += [f"\\fI{roff(name)}\\fR" for name, _ in page.arguments]
    if page.words == ["run"]:
        synopsis.append("[\\fB\\-\\-\\fR] \\fICMD\\fR [\\fIARGS\\fR...]")
    out = [*man_head(man_name(page), 1, page.title), ".SH SYNOPSIS", *synopsis]
    rows = man_rows(page)
    if rows:
        out += [".SH OPTIONS", *rows]
    for action in actions:
        out += [f".SH {roff(' '.join(['softib', *action.words]))}",
                roff(action.title[:1].upper() + action.title[1:] + "."), *man_rows(action)]
    if page.footer:
        out += [".SH NOTES AND EXAMPLES", ".nf", roff(page.footer), ".fi"]
    return "\n".join([*out, ".SH SEE ALSO", ".BR softib (1)"]) + "\n"


def man_commands(pages):
    """{file name: text} of all commands."""
    files = {}
    for page in pages[1:]:
        if len(page.words) == 1:
            actions = [one for one in pages if len(one.words) == 2 and one.words[0] == page.words[0]]
            files[f"docs/man/{man_name(page)}.1"] = man_command(page, actions)
    return files


def man_markdown(text):
    """Paragraphs and code blocks."""
    out = []
    for number, part in enumerate(re.split(r"^```.*\n", text, flags=re.MULTILINE)):
        if number % 2 == 1:
            out += [".nf", ".RS 2", roff(part.rstrip()), ".RE", ".fi"]
            continue
        for paragraph in filter(None, (one.strip() for one in part.split("\n\n"))):
            out += [".PP", re.sub(r"`([^`]*)`", r"\\fB\1\\fR", roff(paragraph))]
    return out


def man_config():
    """The section of docs/cli.md about the configuration file, and that about cables."""
    text = (TOP / "docs/cli.md").read_text()
    sections = dict(re.findall(r"^## (.*?)\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL))
    return "\n".join([*man_head("softib-config", 5, "the configuration file of a softib fabric"), ".SH DESCRIPTION",
                      *man_markdown(sections["The configuration file"]), ".SH CABLES", *man_markdown(sections["Cables"]),
                      ".SH SEE ALSO", ".BR softib (1), softib\\-up (1), softib\\-run (1)"]) + "\n"


def man_daemon(program, what):
    page = Page(program, [])
    out = [*man_head(program.name, 1, what), ".SH SYNOPSIS", f".B {roff(program.name)}", "[\\fIOPTIONS\\fR]",
           ".SH DESCRIPTION", ".nf", roff(page.footer), ".fi", ".SH OPTIONS", *man_rows(page),
           ".SH SEE ALSO", ".BR softib (1)"]
    return "\n".join(out) + "\n"


def words_after(pages):
    """Returns {"hca add": [words]}: actions, then options."""
    return {" ".join(p.words): [n for n, _ in p.commands] + [n for o in p.options for n in o.names] for p in pages}


def with_values(pages):
    """(command with its action, name) of each option that takes a word of its own."""
    return [(" ".join(p.words), n) for p in pages for o in p.options if o.takes_word for n in o.names]


def bash(pages):
    table = words_after(pages)
    actions = "|".join(p.words[0] for p in pages if len(p.words) == 1 and p.commands)
    values = "|".join(f"'{called} {name}'" for called, name in with_values(pages))
    fabrics = "|".join(f"'{called} {name}'" for called, name in with_values(pages) if name in ("-f", "--fabric"))
    out = [f"# {SPDX}", "# Completion of softib for bash. Written by scripts/cli_pages.py.", "_softib() {",
           "  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} i word called= over= skip= words=",
           "  # Bash makes three words of --fabric=NAME.",
           "  if [[ $cur == = ]]; then cur=; elif [[ $prev == = ]]; then prev=${COMP_WORDS[COMP_CWORD-2]}; fi",
           "  for ((i = 1; i < COMP_CWORD; i++)); do", "    word=${COMP_WORDS[i]}",
           "    [[ $word == = ]] && { skip=1; continue; }",
           "    if [[ $skip ]]; then skip=; continue; fi",
           "    if [[ $called == run && $word != -* ]]; then over=$i; break; fi",
           "    case \"$called $word\" in", "      'run --') over=$((i + 1)); break ;;",
           f"      {values}) skip=1 ;;", "      *' -'*) ;;",
           f"      ' '*) called=$word ;;", "      *) case $called in",
           f"           {actions}) called=\"$called $word\" ;;", "         esac ;;", "    esac", "  done",
           "  [[ $called == run && ! $over && ! $skip && $cur != -* ]] && over=$COMP_CWORD",
           "  if [[ $over ]]; then",
           "    if declare -F _command_offset >/dev/null; then _command_offset \"$over\"",
           "    elif ((COMP_CWORD == over)); then COMPREPLY=($(compgen -c -f -- \"$cur\"))",
           "    else COMPREPLY=($(compgen -f -- \"$cur\")); fi", "    return", "  fi",
           "  case \"$called $prev\" in",
           f"    {fabrics}) COMPREPLY=($(compgen -W \"$(softib list 2>/dev/null | awk '$2 == \"up\" {{print $1}}')\""
           " -- \"$cur\")); return ;;", "    *' --config') COMPREPLY=($(compgen -f -- \"$cur\")); return ;;"]
    for name, some in VALUES.items():
        out.append(f"    *' {name}') COMPREPLY=($(compgen -W \"{' '.join(some)}\" -- \"$cur\")); return ;;")
    out += [f"    {values}) return ;;", "  esac", "  case \"$called\" in"]
    for called, words in table.items():
        if called == "explain":  # below, with the names that can be explained
            continue
        out.append(f"    '{called}') words='{' '.join(words)}' ;;")
    options = " ".join(table["explain"])
    out += [f"    explain*) words=\"{options} $(softib explain --all 2>/dev/null | awk '/^ / && NF == 2 && $2 != \"-\" "
            "{print $2}')\" ;;", "  esac", "  COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))", "}",
            "complete -F _softib softib"]
    return "\n".join(out) + "\n"


def quoted(text):
    return text.replace("'", "'\\''")


def zsh_specs(page):
    specs = []
    for option in page.options:
        text = quoted(re.sub(r"[\[\]:]", " ", option.text))
        value = ""
        if option.takes_word:
            long = option.long[-1]
            kind = "_softib_fabrics" if long == "--fabric" else "_files" if long == "--config" else ""
            kind = f"({' '.join(VALUES[long])})" if long in VALUES else kind
            value = f":{re.sub(r'[^A-Za-z]+', ' ', option.value).strip().lower() or 'value'}:{kind}"
        others = f"({' '.join(option.names)})" if len(option.names) > 1 else ""
        specs += [f"'{others}{name}[{text}]{value}'" for name in option.names]
    return specs


def zsh(pages):
    out = ["#compdef softib", f"# {SPDX}", "# Completion of softib for zsh. Written by scripts/cli_pages.py.", "",
           "_softib_fabrics() { compadd -- ${(f)\"$(softib list 2>/dev/null | awk '$2 == \"up\" {print $1}')\"} }", "",
           "# Of the words behind the command $1, as if it were the first.", "_softib_arguments() {", "  case $1 in"]
    for page in pages:
        called = " ".join(page.words)
        out.append(f"    '{called}')")
        if page.commands:
            out.append("      if (( CURRENT == 2 )) && [[ $PREFIX != -* ]]; then")
            out.append("        local -a actions=(" + " ".join(f"'{n}:{quoted(t)}'" for n, t in page.commands) + ")")
            out += ["        _describe command actions; return", "      fi"]
        specs = [*zsh_specs(page), "'*:::program: _normal'" if called == "run" else "'*: :_default'"]
        end = "-S -A '-*'" if called == "run" else "-S"  # what is behind the program is the program's
        out += [f"      _arguments {end} \\", *[f"        {s} \\" for s in specs[:-1]], f"        {specs[-1]}", "      ;;"]
    out += ["  esac", "}", "", "_softib() {", "  local called=${words[2]} at=3",
            "  if (( CURRENT == 2 )); then _softib_arguments ''; return; fi",
            "  case $called in", "    " + "|".join(p.words[0] for p in pages if len(p.words) == 1 and p.commands) + ")",
            "      if (( CURRENT > 3 )); then called=\"$called ${words[3]}\"; at=4; fi ;;", "  esac",
            "  words=(\"softib $called\" \"${(@)words[at,-1]}\")", "  (( CURRENT -= at - 2 ))",
            "  _softib_arguments \"$called\"", "}", "", "_softib \"$@\""]
    return "\n".join(out) + "\n"


FISH_FUNCTIONS = """
# The command of the line, with its action: "hca add".
function __softib_called
    set -l words (commandline -opc)
    set -l called
    set -l skip 0
    for word in $words[2..]
        if test $skip = 1
            set skip 0
            continue
        end
        switch $word
            case -f --fabric --color
                set skip 1
            case '-*'
            case '*'
                set -a called $word
                test (count $called) = 2; and break
                contains -- $called[1] @ACTIONS@; or break
        end
    end
    echo "$called"
end
function __softib_is
    test (__softib_called) = "$argv"
end
# What completes the program of `softib run`.
function __softib_program
    set -l words (commandline -opc)
    set -e words[1..2]
    while set -q words[1]
        switch $words[1]
            case --
                set -e words[1]
                break
            case @VALUES@
                set -e words[1]
                set -e words[1]
            case '-*'
                set -e words[1]
            case '*'
                break
        end
    end
    complete -C (string join ' ' -- (string escape -- $words) (commandline -ct))
end
"""


def fish(pages):
    top = pages[0]
    values = " ".join(n for called, n in with_values(pages) if called == "run")
    actions = " ".join(p.words[0] for p in pages if len(p.words) == 1 and p.commands)
    out = [f"# {SPDX}", "# Completion of softib for fish. Written by scripts/cli_pages.py.",
           FISH_FUNCTIONS.replace("@ACTIONS@", actions).replace("@VALUES@", values).strip(), "complete -c softib -f"]
    for name, text in top.commands:
        out.append(f"complete -c softib -n '__softib_is' -a {name} -d '{fish_quoted(text)}'")
    for page in pages:
        when = f"__softib_is {' '.join(page.words)}".strip()
        for name, text in page.commands if page.words else []:
            out.append(f"complete -c softib -n '{when}' -a {name} -d '{fish_quoted(text)}'")
        for option in page.options:
            parts = [f"-l {n[2:]}" for n in option.long] + [f"-s {n[1:]}" for n in option.short]
            if option.takes_word:
                long = option.long[-1]
                if long in VALUES:
                    parts.append(f"-xa '{' '.join(VALUES[long])}'")
                elif long == "--fabric":
                    parts.append("-xa '(softib list 2>/dev/null | string match -r \"^[^ ]+(?= +up )\")'")
                else:
                    parts.append("-rF" if long == "--config" else "-x")
            out.append(f"complete -c softib -n '{when}' {' '.join(parts)} -d '{fish_quoted(option.text)}'")
    out.append("complete -c softib -n '__softib_is run' -a '(__softib_program)'")
    return "\n".join(out) + "\n"


def fish_quoted(text):
    return text.replace("\\", "\\\\").replace("'", "\\'")


def main():
    bin_dir = pathlib.Path(sys.argv[1])
    pages = all_pages(bin_dir / "softib")
    files = {"docs/man/softib.1": man_softib(pages),
             "docs/man/softibd.1": man_daemon(bin_dir / "softibd", "the daemon behind a softib fabric"),
             "docs/man/softib-net.1": man_daemon(bin_dir / "softib-net", "network interfaces for the nodes of a softib fabric"),
             "completions/softib.bash": bash(pages), "completions/softib.zsh": zsh(pages),
             "completions/softib.fish": fish(pages),
             "docs/man/softib-config.5": man_config(), **man_commands(pages)}
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

"""docs/commands.md and completion for shells, made from the verbs and their parsers.

`python -m runner.commands.reference` writes docs/commands.md.
"""

import argparse
import sys
from collections.abc import Sequence

from runner.base.canonical import write_atomic
from runner.base.places import CHECKOUT, COMMAND, DRIVER
from runner.commands.console import CAPTURE, Captured, Parser, answer, command_parser
from runner.commands.flags import MODELS, WHERE
from runner.commands.verbs import GROUPS, VERBS, actions, command_of, runnable
from runner.eval_set.catalog import SOURCES

SHARED = (WHERE, MODELS)
"""Groups of flags that are described once."""

PAGE = CHECKOUT / "docs" / "commands.md"

_HEAD = f"""\
# Commands

Written by `python -m runner.commands.reference` from the parsers; a test holds it to them. `{DRIVER}` alone prints one
screen, `VERB --help` explains a verb, `completion SHELL` prints completion for bash, zsh or fish.

**Without a verb**, flags are the specification's command line: `--source NAME` is `run NAME`, with `--cells CELL` it
is `explore NAME CELL`, with `--dry-run` it is `plan NAME`, with `--post-bulk` it is `post-bulk NAME`. Other flags are
those of that verb. The last line of `--dry-run` is exactly `decision recorded` (exit 0), or begins with `undecided: `
(exit 1).
"""


def parser_of(name: str) -> Parser:
    """The parser of a verb; nothing of the verb is run."""
    token = CAPTURE.set(True)
    try:
        command_of(name)([])
    except Captured as captured:
        return captured.parser
    finally:
        CAPTURE.reset(token)
    raise AssertionError(f"{name} has no parser")


def page() -> str:
    """docs/commands.md."""
    parts = [_HEAD]
    for title, verbs in GROUPS.items():
        parts.append(f"## {title}\n")
        parts += [_section(name) for name in verbs if VERBS[name].function]
    return "\n".join([*parts, *map(_shared, SHARED)]).rstrip() + "\n"


def _section(name: str) -> str:
    verb, parser = VERBS[name], parser_of(name)
    lines = [f"### {name}\n", f"{verb.does[0].upper()}{verb.does[1:]}.\n", f"    {DRIVER} {verb.example}\n"]
    lines += ["| argument | meaning |", "|---|---|"]
    for group in parser._action_groups:
        actions_of = [action for action in group._group_actions if action.dest != "help"]
        if group.title in SHARED and actions_of:
            flags = ", ".join(f"`{action.option_strings[0]}`" for action in actions_of)
            lines.append(f"| {flags} | [{group.title}](#{group.title.replace(' ', '-')}) |")
        else:
            lines += map(_row, actions_of)
    return "\n".join([*lines, ""])


def _shared(title: str) -> str:
    """The flags of a group that several verbs have."""
    found = {
        action.option_strings[0]: _row(action)
        for name, _ in runnable()
        for group in parser_of(name)._action_groups
        if group.title == title
        for action in group._group_actions
    }
    return "\n".join(
        [f"## {title[0].upper()}{title[1:]}\n", "| argument | meaning |", "|---|---|", *found.values(), ""]
    )


def _row(action: argparse.Action) -> str:
    return f"| {_form(action)} | {_cell(action.help or '')} |"


def _form(action: argparse.Action) -> str:
    choices = "|".join(map(str, action.choices)) if action.choices else ""
    value = "" if action.nargs == 0 else str(action.metavar or choices or action.dest.upper())
    if not action.option_strings:
        return f"`{_cell(value)}`"
    flags = ", ".join(action.option_strings)
    if value and action.nargs == "?":
        value = f"[{value}]"
    return f"`{_cell(f'{flags} {value}'.strip())}`"


def _cell(text: str) -> str:
    return text.replace("%%", "%").replace("|", "\\|")


def completion(arguments: Sequence[str]) -> int:
    """`completion SHELL`: a script for the shell to read."""
    parser = command_parser("completion", epilog=f'bash: eval "$({DRIVER} completion bash)"')
    parser.add_argument("shell", metavar="SHELL", choices=tuple(_SCRIPTS), help="bash, zsh or fish")
    shell = parser.parse_args(arguments).shell
    answer(_SCRIPTS[shell](words_by_place()))
    return 0


def words_by_place() -> dict[str, list[str]]:
    """What may be written next, by the words that stand before: "" for the first, then verbs, then verbs' actions."""
    found = {"": [name for name in VERBS if " " not in name]}
    found |= {name: list(actions(name)) for name, verb in VERBS.items() if not verb.function}
    for name, _ in runnable():
        parser = parser_of(name)
        flags = sorted(flag for action in parser._actions for flag in action.option_strings if flag.startswith("--"))
        has_source = any(action.dest == "source" and not action.option_strings for action in parser._actions)
        found[name] = [*(sorted(SOURCES) if has_source else ()), *flags]
    return found


_FUNCTION = """\
_per_source_eval_words() {{
  case "$1" in
{cases}
  esac
}}
"""


def _cases(words: dict[str, list[str]]) -> str:
    cases = "\n".join(f'    "{place}") echo "{" ".join(known)}" ;;' for place, known in words.items())
    return _FUNCTION.format(cases=cases)


def _bash(words: dict[str, list[str]]) -> str:
    two = "|".join(name for name, verb in VERBS.items() if not verb.function)
    return f"""\
{_cases(words)}
_per_source_eval() {{
  local place="" word="${{COMP_WORDS[COMP_CWORD]}}"
  if [ "$COMP_CWORD" -gt 1 ]; then place="${{COMP_WORDS[1]}}"; fi
  case "$place" in {two}) if [ "$COMP_CWORD" -gt 2 ]; then place="$place ${{COMP_WORDS[2]}}"; fi ;; esac
  COMPREPLY=($(compgen -W "$(_per_source_eval_words "$place")" -- "$word"))
}}
complete -o default -F _per_source_eval per-source-eval.py bin/per-source-eval.py {COMMAND}"""


def _zsh(words: dict[str, list[str]]) -> str:
    begun = "(( $+functions[compdef] )) || { autoload -Uz compinit && compinit -i; }"
    return f"{begun}\nautoload -U +X bashcompinit && bashcompinit\n{_bash(words)}"


_FISH = f"complete -c {COMMAND} -c per-source-eval.py"


def _fish(words: dict[str, list[str]]) -> str:
    lines = [f"{_FISH} -n '__fish_use_subcommand' -f -a '{' '.join(words[''])}'"]
    for place, known in words.items():
        if place:
            seen = "; and ".join(f"__fish_seen_subcommand_from {word}" for word in place.split())
            if not VERBS[place].function:
                seen += f"; and not __fish_seen_subcommand_from {' '.join(known)}"
            lines.append(f"{_FISH} -n '{seen}' -a '{' '.join(known)}'")
    return "\n".join(lines)


_SCRIPTS = {"bash": _bash, "zsh": _zsh, "fish": _fish}


def main() -> int:
    """Write docs/commands.md if it is not current, and return 0."""
    argparse.ArgumentParser(description=__doc__, allow_abbrev=False).parse_args()
    if not PAGE.exists() or PAGE.read_text(encoding="utf-8") != page():
        write_atomic(PAGE, page().encode())
        sys.stdout.write(f"{PAGE}: written\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())

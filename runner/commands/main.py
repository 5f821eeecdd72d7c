"""The command line: a verb and its words, or the specification's line of flags without one.

stdout is the answer, stderr is progress and errors. Exit codes are those of runner/base/errors.py.
"""

import sys
import traceback
from collections.abc import Sequence

from runner import __version__
from runner.base.errors import DEFECT, BackendError, EvalError, InputError, InputNeeded
from runner.base.progress import say
from runner.commands.console import answer
from runner.commands.verbs import actions, actions_help, command_of, found_verb, one_screen


def main(arguments: Sequence[str]) -> int:
    """The exit code of a command line; every failure that is the user's to mend is one message."""
    try:
        _check_encoding(arguments)
        return _called(arguments)
    except InputNeeded as stop:
        _tell(stop)
        return stop.exit_code
    except EvalError as error:
        say(f"per-source-eval: {error}")
        return error.exit_code
    except KeyboardInterrupt:
        say("per-source-eval: interrupted; what was finished is kept, run the command again")
        return 130
    except MemoryError:
        say("per-source-eval: the memory is full; what was finished is kept. Free some, or give smaller input.")
        return BackendError.exit_code
    except OSError as error:
        say(f"per-source-eval: {error.filename or 'a file'} cannot be used ({error.strerror or error}).")
        return BackendError.exit_code
    except Exception:  # noqa: BLE001  # a defect must not end with the code of a verdict
        say(f"{traceback.format_exc()}per-source-eval: a defect of this tool; please report it with the lines above")
        return DEFECT


def _check_encoding(arguments: Sequence[str]) -> None:
    for argument in arguments:
        try:
            argument.encode()
        except UnicodeEncodeError as error:
            raise InputError(f"The argument {argument!r} is not UTF-8.") from error


def _called(arguments: Sequence[str]) -> int:
    if arguments and arguments[0] in ("-h", "--help", "help"):
        arguments = [*arguments[1:], "--help"] if arguments[1:] else []
    if not arguments:
        answer(one_screen())
        return 0
    if arguments[0] == "--version":
        answer(f"per-source-eval {__version__}")
        return 0
    words = spelled(arguments) if arguments[0].startswith("-") else arguments
    if actions(words[0]) and words[1:] in (["-h"], ["--help"]):
        answer(actions_help(words[0]))
        return 0
    verb, rest = found_verb(words)
    return command_of(verb)(rest)


def spelled(arguments: Sequence[str]) -> list[str]:
    """The specification's line of flags as a verb with its words: plan, post-bulk, explore or run.

    --dry-run, --post-bulk and --cells CELL say which it is; all other flags are the verb's own.
    """
    kept: list[str] = []
    cells: list[str] = []
    given: set[str] = set()
    rest = iter(arguments)
    for argument in rest:
        name, equals, value = argument.partition("=")
        if name in ("--dry-run", "--post-bulk") and not equals:
            given.add(name)
        elif name == "--cells":
            given.add(name)
            if not (cell := value if equals else next(rest, "")):
                raise InputError("--cells: expected one argument, a cell such as 'bm25 x whole_doc'.")
            cells.append(cell)
        else:
            kept.append(argument)
    if len(given) > 1:
        raise InputError(f"{' and '.join(sorted(given))} do not go together.")
    if not any(argument.partition("=")[0] == "--source" for argument in kept):
        raise InputError("Which source? Give --source NAME, or begin with a verb: per-source-eval --help lists them.")
    verb = {"--dry-run": "plan", "--post-bulk": "post-bulk", "--cells": "explore"}.get("".join(given), "run")
    return [verb, *kept, *cells]


def _tell(stop: InputNeeded) -> None:
    """Print what waits for a person: an evening's stop on stdout, as the answer that it is, unless JSON is there."""
    text = str(stop)
    if not stop.is_of_an_evening:
        say(f"per-source-eval: {text}")
    elif stop.printed:
        say(text)
    else:
        answer(text)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

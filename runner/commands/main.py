"""The command line: a verb and its words, or the specification's line of flags without one.

stdout is the answer, stderr is progress and errors. Exit codes are those of runner/base/errors.py. What only some
command lines need is imported where they need it: a help loads nothing but the table of verbs.
"""

import gc
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from runner import __version__
from runner.base.errors import DEFECT, BackendError, EvalError, InputError, InputNeeded
from runner.commands.verbs import actions, actions_help, command_of, found_verb, one_screen


def start() -> int:
    """Return the exit code of this process's command line, once the process has what any of them needs.

    Under LC_ALL=C with PYTHONUTF8=0, where no file could be opened whose name is not ASCII, Python starts anew.
    """
    if sys.getfilesystemencoding() == "ascii" and not sys.flags.ignore_environment:
        anew = [sys.executable, *sys.orig_argv[1:]]
        os.execve(sys.executable, anew, os.environ | {"PYTHONUTF8": "1"})  # noqa: S606  # no shell
    # A file that is opened in the place of a closed stdin, stdout or stderr would take what is meant for them.
    while (descriptor := os.open(os.devnull, os.O_RDWR)) < 3:
        stream = ("stdin", "stdout", "stderr")[descriptor]
        setattr(sys, stream, os.fdopen(descriptor, "r" if descriptor == 0 else "w"))
    os.close(descriptor)
    take_endings()
    # Records are many small objects and hardly a cycle: looking for cycles took a tenth of the time of a decision.
    gc.set_threshold(50_000, 20, 100)
    try:
        Path.cwd()
    except OSError as error:
        sys.stderr.write(f"per-source-eval: the working folder cannot be used ({error.strerror}); go to another one\n")
        return 2
    code = main(sys.argv[1:])
    gc.freeze()  # what is left goes with the process: to look for cycles in it took .2 s after a decision
    return code


def take_endings() -> None:
    """Have what ends this process stop what it started elsewhere, as Ctrl-C does; nohup's wish is kept."""
    for ending in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(ending) in (signal.SIG_DFL, signal.default_int_handler):
            signal.signal(ending, _interrupt)


_interrupts: list[int] = []
"""The signals that ended this process."""


def _interrupt(number: int, _: object) -> NoReturn:
    _interrupts.append(number)
    raise KeyboardInterrupt


def main(arguments: Sequence[str]) -> int:
    """Return the exit code of a command line; every failure that is the user's to mend is one message."""
    try:
        try:
            return called(arguments)
        except Exception as error:
            # Compiled libraries swallow an interrupt here and there, and fail for it in other words.
            if _interrupts:
                raise KeyboardInterrupt from error
            raise
    except InputNeeded as stop:
        _tell(stop)
        return stop.exit_code
    except EvalError as error:
        _say(str(error))
        return error.exit_code
    except KeyboardInterrupt:
        _say("interrupted; what was finished is kept, run the command again")
        return 130
    except MemoryError:
        _say("the memory is full; what was finished is kept. Free some, or give smaller input.")
        return BackendError.exit_code
    except OSError as error:
        _say(f"{error.filename or 'a file'} cannot be used ({error.strerror or error}).")
        return BackendError.exit_code
    except Exception:  # noqa: BLE001  # a defect must not end with the code of a verdict
        import traceback

        _say(f"a defect of this tool; please report it with the lines below\n{traceback.format_exc()}")
        return DEFECT


def called(arguments: Sequence[str]) -> int:
    """Do what a command line says and return its exit code; errors are raised."""
    # Such an argument would fail later, in whatever first prints or opens it.
    for argument in arguments:
        try:
            argument.encode()
        except UnicodeEncodeError as error:
            raise InputError(f"The argument {argument!r} is not UTF-8.") from error
    if arguments and arguments[0] in ("-h", "--help", "help"):
        arguments = [*arguments[1:], "--help"] if arguments[1:] else []
    if not arguments or arguments[0] == "--version":
        sys.stdout.write(f"{f'per-source-eval {__version__}' if arguments else one_screen()}\n")
        return 0
    # From here on a command line is a verb and its words.
    words = spelled(arguments) if arguments[0].startswith("-") else arguments
    if actions(words[0]) and words[1:] in (["-h"], ["--help"]):
        sys.stdout.write(f"{actions_help(words[0])}\n")
        return 0
    verb, rest = found_verb(words)
    from runner.commands.console import parser_of

    options = parser_of(verb).parse_args(rest)
    options.words = rest
    try:
        command = command_of(verb)
    except ModuleNotFoundError as error:
        raise BackendError(
            f"{error.name} is not installed for {sys.executable}. Run `make setup` in the checkout or, outside of one, "
            "`pip install --force-reinstall per-source-eval`, then try again."
        ) from error
    return command(options) or 0


def spelled(arguments: Sequence[str]) -> list[str]:
    """Return the specification's line of flags as a verb with its words: plan, post-bulk, explore or run.

    --dry-run, --post-bulk and --cells CELL say which it is; all other flags are the verb's own.
    """
    others: list[str] = []
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
            others.append(argument)
    if len(given) > 1:
        raise InputError(f"{' and '.join(sorted(given))} do not go together.")
    if not any(argument.partition("=")[0] == "--source" for argument in others):
        raise InputError("Which source? Give --source NAME, or begin with a verb: per-source-eval --help lists them.")
    verb = {"--dry-run": "plan", "--post-bulk": "post-bulk", "--cells": "explore"}.get("".join(given), "run")
    return [verb, *others, *cells]


def _say(text: str) -> None:
    from runner.base.progress import say

    say(f"per-source-eval: {text}")


def _tell(stop: InputNeeded) -> None:
    """Print what waits for a person: an evening's stop on stdout, as the answer that it is, unless JSON is there."""
    from runner.base.progress import say
    from runner.commands.console import answer

    text = str(stop)
    if not stop.head:
        _say(text)
    elif stop.printed:
        say(text)
    else:
        answer(text)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

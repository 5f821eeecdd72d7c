"""The command `per-source-eval`: what its process needs before anything else is imported, then runner.commands.main."""

import gc
import os
import signal
import sys
from pathlib import Path


def start() -> int:
    """The exit code of this process's command line.

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
    # Whatever ends this process, what it started elsewhere is to be stopped; nohup's wish is kept.
    for ending in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(ending) is signal.SIG_DFL:
            signal.signal(ending, signal.default_int_handler)
    # Records are many small objects and hardly a cycle: looking for cycles took a tenth of the time of a decision.
    gc.set_threshold(50_000, 20, 100)
    try:
        Path.cwd()
    except OSError as error:
        sys.stderr.write(f"per-source-eval: the working folder cannot be used ({error.strerror}); go to another one\n")
        return 2
    try:
        from runner.commands.main import main
    except ModuleNotFoundError as error:
        sys.exit(
            f"{error.name} is not installed for {sys.executable}. Run `make setup` in the checkout or, outside of one, "
            "`pip install --force-reinstall per-source-eval`, then try again."
        )
    except KeyboardInterrupt:
        return 130
    code = main(sys.argv[1:])
    gc.freeze()  # what is left goes with the process: to look for cycles in it took .2 s after a decision
    return code

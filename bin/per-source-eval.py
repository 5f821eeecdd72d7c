#!/usr/bin/env python3
"""The driver: runs itself in the checkout's .venv, then hands over to runner.commands.main."""

import os
import signal
import sys
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[1]
VENV_PYTHON = CHECKOUT / ".venv" / "bin" / "python"

ONLY_ASCII = sys.getfilesystemencoding() == "ascii"
"""As LC_ALL=C with PYTHONUTF8=0 has it, where no file could be opened whose name is not ASCII."""

if ONLY_ASCII or (VENV_PYTHON.exists() and Path(sys.prefix) != CHECKOUT / ".venv"):
    python = str(VENV_PYTHON) if VENV_PYTHON.exists() else sys.executable
    environment = os.environ | ({"PYTHONUTF8": "1"} if ONLY_ASCII else {})
    os.execve(python, [python, str(Path(__file__).resolve()), *sys.argv[1:]], environment)  # noqa: S606  # no shell

# A file that is opened in the place of a closed stdin, stdout or stderr would take what is meant for them.
while (descriptor := os.open(os.devnull, os.O_RDWR)) < 3:
    stream = ("stdin", "stdout", "stderr")[descriptor]
    setattr(sys, stream, os.fdopen(descriptor, "r" if descriptor == 0 else "w"))
os.close(descriptor)

# Whatever ends this process, what it started elsewhere is to be stopped; nohup's wish is kept.
for ending in (signal.SIGTERM, signal.SIGHUP):
    if signal.getsignal(ending) is signal.SIG_DFL:
        signal.signal(ending, signal.default_int_handler)

sys.path.insert(0, str(CHECKOUT))

try:
    from runner.commands.main import main
except ModuleNotFoundError as error:
    sys.exit(f"{error.name} is not installed for {sys.executable}. Run `make setup` in {CHECKOUT}, then try again.")
except KeyboardInterrupt:
    sys.exit(130)

sys.exit(main(sys.argv[1:]))

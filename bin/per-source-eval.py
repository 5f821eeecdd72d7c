#!/usr/bin/env python3
"""The command in a checkout: runs itself in the checkout's .venv, then hands over to runner.commands.start."""

import os
import sys
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[1]
VENV_PYTHON = CHECKOUT / ".venv" / "bin" / "python"

if VENV_PYTHON.exists() and Path(sys.prefix) != CHECKOUT / ".venv":
    python = str(VENV_PYTHON)
    os.execv(python, [python, str(Path(__file__).resolve()), *sys.argv[1:]])  # noqa: S606  # no shell

sys.path.insert(0, str(CHECKOUT))

from runner.commands.start import start  # noqa: E402  # the checkout's own

if __name__ == "__main__":  # a process that helps to read a corpus imports this file too
    sys.exit(start())

#!/bin/sh
# fmt: off
''':'
# A shell hands over to the checkout's .venv by these lines, so that Python starts once; for Python they are text.
checkout=$(dirname "$(dirname "$(readlink -f "$0")")")
python=$checkout/.venv/bin/python
[ -x "$python" ] || python=python3
exec "$python" "$0" "$@"
'''  # noqa: D300, D400, D415
# fmt: on
# The command in a checkout: runs in the checkout's .venv, whichever Python it was given to.

import os
import sys

CHECKOUT = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))  # noqa: PTH120  # pathlib takes longer to load
VENV = os.path.join(CHECKOUT, ".venv")  # noqa: PTH118

if sys.prefix != VENV and os.path.exists(python := f"{VENV}/bin/python"):  # noqa: PTH110
    os.execv(python, [python, *sys.argv])  # noqa: S606  # no shell

sys.path.insert(0, CHECKOUT)

from runner.commands.main import start  # noqa: E402  # the checkout's own

sys.exit(start())

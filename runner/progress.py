"""What a person sees while a command runs: on stderr, so that stdout stays the answer."""

import sys


def say(text: str) -> None:
    """One line of progress."""
    print(text, file=sys.stderr, flush=True)


def bar(label: str, done: int, total: int) -> None:
    """A bar that redraws itself on a terminal, a line at the end elsewhere."""
    if sys.stderr.isatty():
        filled = 30 * done // max(total, 1)
        end = "\n" if done >= total else ""
        print(f"\r{label} [{'#' * filled}{'.' * (30 - filled)}] {done}/{total}", end=end, file=sys.stderr, flush=True)
    elif done >= total:
        say(f"{label} {done}/{total}")

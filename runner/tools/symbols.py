"""The symbols that consoles are shown, and what stands for them if a console cannot print them."""

import os
from dataclasses import dataclass, fields
from typing import TextIO

ASCII_VARIABLE = "PER_SOURCE_EVAL_ASCII"
"""Set to anything but the empty string, it asks for plain signs everywhere."""


@dataclass(frozen=True, slots=True)
class Signs:
    """Typographic signs by their meaning; the defaults need an encoding that has them."""

    delta: str = "Δ"
    tau: str = "τ"
    ok: str = "✓"
    no: str = "✗"
    unsure: str = "?"
    minus: str = "−"
    at_least: str = "≥"
    at_most: str = "≤"
    arrow: str = "→"
    up: str = "↑"
    down: str = "↓"

    def of(self, verdict: str) -> str:
        """The sign of a verdict; what is neither "pass" nor "fail" is unsure."""
        return {"pass": self.ok, "fail": self.no}.get(verdict, self.unsure)

    def signed(self, value: float, places: int) -> str:
        """A number rounded to `places`, with a sign even if it is not negative."""
        return f"{round(value, places) + 0.0:+.{places}f}".replace("-", self.minus)  # + 0.0 turns -0.0 into 0.0


ASCII = Signs(
    delta="d",
    tau="tau",
    ok="[ok]",
    no="[x]",
    unsure="[?]",
    minus="-",
    at_least=">=",
    at_most="<=",
    arrow="->",
    up="^",
    down="v",
)


def signs_for(stream: TextIO, *, ascii_only: bool = False) -> Signs:
    """The signs that `stream` can print (all, without an encoding); ASCII if a flag or ASCII_VARIABLE asks for it."""
    if ascii_only or os.environ.get(ASCII_VARIABLE):
        return ASCII
    signs = Signs()
    try:
        for field in fields(signs):
            getattr(signs, field.name).encode(stream.encoding or "utf-8")
    except (UnicodeEncodeError, LookupError):
        return ASCII
    return signs

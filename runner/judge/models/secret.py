"""A key that the environment has, and texts without it."""

import os
import re

from runner.base.errors import InputError
from runner.base.given_files import printable

ANTHROPIC_KEY = "ANTHROPIC_API_KEY"
JUDGE_KEY = "PSE_JUDGE_API_KEY"
"""Variables of the environment that hold judges' keys."""

SHORTEST = 8
"""Characters of the shortest key that is looked for in texts: a shorter one stands in words that say nothing of it."""


class Secret:
    """A key; it is `value` alone that shows it."""

    def __init__(self, variable: str, value: str) -> None:
        self.variable = variable
        self.value = value

    def __repr__(self) -> str:
        return f"Secret({self.variable})"

    def without(self, text: str) -> str:
        """The text with [key] wherever the key stood, in any case, its slashes escaped or not."""
        if len(self.value) < SHORTEST:
            return text
        return re.sub(re.escape(self.value).replace("/", r"\\?/"), "[key]", text, flags=re.IGNORECASE)

    def shown(self, text: str, longest: int = 300) -> str:
        """A service's words as a message can show them: printable, cut, and without the key."""
        return printable(" ".join(self.without(text).split()), longest)


def secret_of(variable: str) -> Secret:
    """The variable's key, an InputError, which does not show it, where there is none or it is no key."""
    value = os.environ.get(variable, "").strip()
    if not value:
        raise InputError(f"The environment has no {variable}. Put the service's key there; it is written nowhere.")
    if not re.fullmatch(r"[!-~]{1,4096}", value):
        raise InputError(f"What the environment has as {variable} is no key: a space, or signs beyond ASCII.")
    return Secret(variable, value)

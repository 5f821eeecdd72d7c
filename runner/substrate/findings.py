"""What a check of the substrate hands back."""

from collections.abc import Sequence
from dataclasses import dataclass

EXAMPLES = 5
"""Examples a finding names at most."""


@dataclass(frozen=True, slots=True)
class Finding:
    """What one check found: `count` of `of` things are wrong, a few of them named in `examples`.

    `fault` is False where nothing is wrong, and in notes, which say something and blame nothing.
    """

    name: str
    fault: bool
    count: int
    of: int
    sentence: str
    examples: tuple[str, ...] = ()


def finding(
    name: str, examples: Sequence[str], of: int, what: str, so: str = "", *, count: int | None = None
) -> Finding:
    """A fault where there is anything to count, with the sentence "{count} of {of} {what}", then what follows of it.

    `count` is the number of examples where it is not given.
    """
    count = len(examples) if count is None else count
    sentence = f"{count:,} of {of:,} {what}{f': {so}' if count and so else ''}."
    return Finding(name, count > 0, count, of, sentence, tuple(examples[:EXAMPLES]))


def chunk_names(ids: Sequence[int]) -> list[str]:
    """Chunks as examples name them."""
    return [f"chunk {chunk_id}" for chunk_id in ids]

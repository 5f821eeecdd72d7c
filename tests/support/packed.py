"""Packed files of a record as text, for tests that look into them or edit them."""

import bz2
from pathlib import Path


def unpacked(path: Path) -> str:
    return bz2.decompress(path.read_bytes()).decode()


def repack(path: Path, old: str, new: str) -> None:
    """Replace the first of something in a packed file."""
    text = unpacked(path)
    assert old in text
    path.write_bytes(bz2.compress(text.replace(old, new, 1).encode()))

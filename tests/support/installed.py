"""Distributions of one module, laid out as pip installs them, for tests of plug-ins."""

import importlib
import sys
from pathlib import Path

import pytest

from runner.base import plug_ins


class Site:
    """A folder on sys.path with distributions in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.modules: set[str] = set()

    def install(self, name: str, source: str, entries: dict[str, str], *, version: str = "0.1") -> None:
        """One distribution, or another version in its place; `entries` are "group:name" and "module:value"."""
        (self.folder / f"{name}.py").write_text(source, encoding="utf-8")
        info = self.folder / f"{name}.dist-info"
        info.mkdir(exist_ok=True)
        groups: dict[str, list[str]] = {}
        for place, value in entries.items():
            group, part = place.split(":")
            groups.setdefault(group, []).append(f"{part} = {value}")
        said = [f"[per_source_eval.{group}]\n" + "\n".join(lines) for group, lines in groups.items()]
        (info / "entry_points.txt").write_text("\n".join(said) + "\n", encoding="utf-8")
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        (info / "RECORD").write_text(f"{name}.py,,\n{name}.dist-info/METADATA,,\n{name}.dist-info/RECORD,,\n")
        self.modules.add(name)
        self.forget()

    def forget(self) -> None:
        """What a new process would not know."""
        importlib.invalidate_caches()
        plug_ins._entries.cache_clear()
        for name in self.modules:
            sys.modules.pop(name, None)


@pytest.fixture(name="site")
def _site(tmp_path, monkeypatch):
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.syspath_prepend(folder)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # two texts of one second would share it
    site = Site(folder)
    yield site
    site.forget()

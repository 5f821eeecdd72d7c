"""The built wheel in an environment of its own and an empty folder: the command does what it does in the checkout."""

import ast
import doctest
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path
from typing import NamedTuple

import pytest

from runner.base.places import CACHE_VARIABLE, CHECKOUT

pytestmark = pytest.mark.slow

CORPUS = CHECKOUT / "eval-sets" / "demo" / "corpus"


@pytest.fixture(scope="module", name="wheel")
def _wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if importlib.util.find_spec("hatchling") is None:
        message = "hatchling, the build backend, is not installed: no wheel was built"
        if os.environ.get("CI"):
            pytest.fail(message)
        pytest.skip(message)
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=CHECKOUT, check=True, capture_output=True)
    (found,) = folder.glob("*.whl")
    return found


class Installed(NamedTuple):
    """An environment that holds the wheel and sees the packages of this one, and an empty folder to work in."""

    environment: Path
    folder: Path

    def __call__(self, *arguments: str, code: int = 0) -> str:
        """What the command prints on stdout."""
        own = {"PATH": "/usr/bin:/bin", "HOME": str(self.folder), "PYTHONDONTWRITEBYTECODE": "1", "HF_HUB_OFFLINE": "1"}
        own[CACHE_VARIABLE] = str(CHECKOUT / ".cache")  # what `make demo` embedded is not embedded again
        command = [str(self.environment / "bin" / "per-source-eval"), *arguments]
        done = subprocess.run(command, cwd=self.folder, env=own, capture_output=True, text=True, check=False)
        assert done.returncode == code, done.stdout + done.stderr
        assert str(CHECKOUT) not in (done.stdout + done.stderr).replace(own[CACHE_VARIABLE], "")
        return done.stdout

    def files(self) -> dict[Path, tuple[int, int]]:
        """Size and time of every file of the environment."""
        found = (path for path in self.environment.rglob("*") if path.is_file())
        return {path: (path.stat().st_size, path.stat().st_mtime_ns) for path in found}


@pytest.fixture(name="installed")
def _installed(wheel: Path, tmp_path: Path) -> Installed:
    environment = tmp_path / "environment"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(environment)], check=True)
    pip = [sys.executable, "-m", "pip", "--python", str(environment / "bin" / "python"), "--quiet"]
    subprocess.run([*pip, "install", "--no-deps", "--no-index", "--no-compile", str(wheel)], check=True)
    (packages,) = environment.glob("lib/python*/site-packages")
    (packages / "shared.pth").write_text(sysconfig.get_path("purelib") + "\n")
    (tmp_path / "empty").mkdir()
    return Installed(environment, tmp_path / "empty")


def test_the_wheel_carries_committed_templates_and_the_demo_and_nothing_that_a_run_wrote(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    listed = subprocess.run(
        ["git", "ls-files", "templates", "eval-sets/demo"], cwd=CHECKOUT, capture_output=True, text=True, check=True
    )
    own = {name.removeprefix("runner/own/") for name in names if name.startswith("runner/own/")}
    assert own == set(listed.stdout.split())
    assert {name.split("/")[0] for name in names if ".dist-info/" not in name} == {"chunkers", "runner", "samplers"}


@pytest.mark.model
def test_the_demo_is_decided_checked_and_shown_in_an_empty_folder(installed: Installed) -> None:
    before = installed.files()
    assert "chosen is" in installed("choose", "demo", "recommended")
    version = installed.folder / "eval-sets" / "demo" / "v1"
    assert json.loads((version / "decision.json").read_text())["chosen"]["cell"]
    assert installed("view", "demo").strip() == (version / "results.html").as_uri()
    installed("verify", "demo", "--deep")
    assert installed("--source=demo", "--dry-run").splitlines()[-1] == "decision recorded"
    page = (version / "results.html").read_text(encoding="utf-8")
    assert "per-source-eval verify demo" in page
    assert "bin/per-source-eval.py verify" not in page
    assert installed.files() == before


def test_what_only_reads_writes_nothing_and_knows_the_demo(installed: Installed) -> None:
    assert installed("--source=demo", "--dry-run", code=1).splitlines()[-1].startswith("undecided: ")
    assert "62 queries" in (said := installed("next", "demo"))
    assert re.findall(r"per-source-eval .*", said)[0] == "per-source-eval run demo"
    installed("sources")
    installed("--help")
    assert list(installed.folder.iterdir()) == []


def test_a_source_is_begun_and_the_tools_work_in_an_empty_folder(installed: Installed) -> None:
    before = installed.files()
    shutil.copytree(CORPUS, installed.folder / "bills")
    installed("init", "bills", "--corpus-path", "bills")
    version = installed.folder / "eval-sets" / "bills" / "v1"
    assert {path.name for path in version.iterdir()} >= {"plan.yaml", "judge-v1.md", "corpus.jsonl"}
    assert installed("plan", "bills", code=1).splitlines()[-1].startswith("undecided: ")
    checks = json.loads(installed("doctor", "--quick", "--json"))
    assert checks["ok"]
    installed("grade", "--demo")
    installed("grade", "--playground", "playground.html")
    assert (installed.folder / "playground.html").stat().st_size > 10_000
    assert installed.files() == before


def test_a_retriever_is_evaluated_in_ten_lines_of_python_with_nothing_but_the_wheel(installed: Installed) -> None:
    documented = (CHECKOUT / "docs" / "tools.md").read_text(encoding="utf-8").split("```python")[1].split("```")[0]
    lines = (
        doctest.script_from_examples(documented)
        + """
import runner
print(runner.__file__)
print(dict(results.table()[["cell", "gate"]].values))
results.html("page.html")
"""
    )
    python = [str(installed.environment / "bin" / "python"), "-I", "-c", lines]
    done = subprocess.run(python, cwd=installed.folder, capture_output=True, text=True, check=True, env={})
    place, gates = done.stdout.splitlines()
    assert Path(place).is_relative_to(installed.environment)
    assert ast.literal_eval(gates) == {"bm25 x whole_doc": "pass", "trec:mine": "pass", "trec:stuck": "fail"}
    assert b"trec:mine" in (installed.folder / "page.html").read_bytes()

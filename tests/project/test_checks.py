"""The files that run the checks elsewhere agree with pyproject.toml, which holds the pins."""

import json
import os
import re
import subprocess
import tomllib
from importlib.metadata import version
from typing import Any

import pytest
import yaml

from runner import __version__
from runner.base.places import CHECKOUT

PYPROJECT = tomllib.loads((CHECKOUT / "pyproject.toml").read_text(encoding="utf-8"))
PINS = dict(pin.split("==") for pin in PYPROJECT["project"]["optional-dependencies"]["dev"])
MAKEFILE = (CHECKOUT / "Makefile").read_text(encoding="utf-8")


def loaded(name: str) -> Any:
    return yaml.load((CHECKOUT / name).read_text(encoding="utf-8"), yaml.BaseLoader)  # it leaves `on` a string


def test_the_workflow_runs_what_continuous_integration_runs_here() -> None:
    workflow = loaded(".github/workflows/ci.yml")
    assert set(workflow["on"]) == {"push", "pull_request"}
    (job,) = workflow["jobs"].values()
    assert [step["run"] for step in job["steps"] if "run" in step] == [".ci/run"]
    assert os.access(CHECKOUT / ".ci" / "run", os.X_OK)


def test_the_workflow_begins_with_the_oldest_python_that_is_supported() -> None:
    (job,) = loaded(".github/workflows/ci.yml")["jobs"].values()
    matrix = job["strategy"]["matrix"]
    assert matrix["python"] == ["3.11", "3.12", "3.13"]
    assert PYPROJECT["project"]["requires-python"] == f">={matrix['python'][0]}"
    assert {name.split("-")[0] for name in matrix["os"]} == {"ubuntu", "macos"}


def test_a_release_is_published_by_trusted_publishing_alone() -> None:
    workflow = loaded(".github/workflows/publish.yml")
    assert workflow["on"] == {"release": {"types": ["published"]}}
    assert workflow["permissions"] == {}
    build, publish = workflow["jobs"]["build"], workflow["jobs"]["publish"]
    assert (build["permissions"], publish["permissions"]) == ({"contents": "read"}, {"id-token": "write"})
    assert publish["needs"] == "build"
    assert "secrets." not in str(workflow)
    (check,) = (step["run"] for step in build["steps"] if step.get("name") == "The tag is this version")
    for tag, code in ((f"v{__version__}", 0), (f"v{__version__}1", 1)):
        done = subprocess.run(
            ["bash", "-c", check], cwd=CHECKOUT, env={"GITHUB_REF_NAME": tag, "PATH": "/usr/bin:/bin"}
        )
        assert done.returncode == code


def test_the_image_runs_the_command_without_root_on_a_supported_python() -> None:
    lines = re.sub(r"\\\n *", "", (CHECKOUT / "Containerfile").read_text(encoding="utf-8")).splitlines()
    words = [line.split() for line in lines if line and not line.startswith("#")]
    stages = [line for line in words if line[0] == "FROM"]
    assert {line[1] for line in stages} == {f"python:{PYPROJECT['project']['requires-python'][2:]}-slim"}
    last = words[words.index(stages[-1]) :]
    assert [line[1].removeprefix("--from=") for line in last if line[0] == "COPY"] == [stages[0][3]]
    assert [line[1] for line in last if line[0] == "USER"] == ["1000"]
    (command,) = PYPROJECT["project"]["scripts"]
    assert [json.loads(line[1]) for line in last if line[0] == "ENTRYPOINT"] == [[command]]
    assert ["ARG", "EXTRAS"] in words  # none unless asked for: the packaged encoder needs no torch
    assert any(line[-2:] == ["runner.embed.packaged_weights", "minilm-l6-v2"] for line in words)


def hooks() -> dict[str, str]:
    (repository,) = loaded(".pre-commit-config.yaml")["repos"]
    return {hook["id"]: hook["entry"] for hook in repository["hooks"]}


def test_the_hooks_are_the_checks_of_make_check() -> None:
    recipe = re.search(r"^check:.*\n((?:\t.*\n)+)", MAKEFILE, re.MULTILINE)
    assert recipe is not None
    checks = re.findall(r"\$\(BIN\)/(.+?)(?: \.)?$", recipe[1], re.MULTILINE)
    assert [entry.removeprefix(".venv/bin/").replace(" --force-exclude", "") for entry in hooks().values()] == checks


@pytest.mark.parametrize("tool", ["ruff", "mypy", "import-linter"])
def test_the_programs_of_the_hooks_have_the_pinned_versions(tool: str) -> None:
    assert all(entry.startswith(".venv/bin/") for entry in hooks().values())
    assert version(tool) == PINS[tool]


def test_the_tests_build_the_wheel_with_what_everybody_builds_it_with() -> None:
    (backend,) = PYPROJECT["build-system"]["requires"]
    assert dict([backend.split("==")]).items() <= PINS.items()


def test_the_citation_names_this_version_and_licence() -> None:
    citation = loaded("CITATION.cff")
    assert citation["version"] == __version__
    assert citation["license"] == PYPROJECT["project"]["license"]
    assert citation["title"] == PYPROJECT["project"]["name"]
    assert {"cff-version", "message", "authors"} <= set(citation)

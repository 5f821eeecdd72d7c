"""The GitHub Actions for other repositories: what they declare holds together, and their steps run here as there.

A runner is stood in for: inputs go into the environment, a step runs by the bash line that GitHub documents, outputs
and summary are files. The steps that set Python up and install are not run; their words are checked alone.
"""

import os
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from runner.base.places import CHECKOUT
from runner.commands.main import main

ACTIONS = CHECKOUT / "actions"
NAMES = ("determiner", "tripwire")
EXPRESSION = re.compile(r"\$\{\{\s*(.*?)\s*\}\}")


def loaded(name: str) -> dict[str, Any]:
    action: dict[str, Any] = yaml.load((ACTIONS / name / "action.yml").read_text(encoding="utf-8"), yaml.BaseLoader)
    return action


class Ran(NamedTuple):
    code: int
    outputs: dict[str, str]
    summary: str
    log: str


@pytest.fixture(name="ran")
def _ran(tmp_path: Path) -> Callable[..., Ran]:
    """An action run over the workspace `tmp_path/workspace` with these inputs, its script `changed` before."""
    (tmp_path / "workspace").mkdir()

    def run(name: str, changed: Callable[[str], str] = str, **given: str) -> Ran:
        action = loaded(name)
        inputs = {key: row.get("default", "") for key, row in action["inputs"].items()} | {
            key.replace("_", "-"): value for key, value in given.items()
        }
        (step,) = [step for step in action["runs"]["steps"] if "id" in step]
        own = {key: EXPRESSION.sub(lambda m: inputs[m[1].removeprefix("inputs.")], v) for key, v in step["env"].items()}
        for file in ("output", "summary"):
            (tmp_path / file).write_text("")
        environment = os.environ | own
        environment |= {
            "GITHUB_ACTION_PATH": str(ACTIONS / name),
            "GITHUB_WORKSPACE": str(tmp_path / "workspace"),
            "GITHUB_OUTPUT": str(tmp_path / "output"),
            "GITHUB_STEP_SUMMARY": str(tmp_path / "summary"),
            "PATH": f"{CHECKOUT / '.venv' / 'bin'}{os.pathsep}{os.environ['PATH']}",
        }
        script = tmp_path / "step.sh"
        script.write_text(changed(step["run"]))
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", str(script)],
            env=environment,
            cwd=tmp_path / "workspace",
            capture_output=True,
            text=True,
        )
        lines = (tmp_path / "output").read_text().splitlines()
        outputs = dict(line.split("=", 1) for line in lines)
        return Ran(done.returncode, outputs, (tmp_path / "summary").read_text(), done.stdout + done.stderr)

    return run


@pytest.mark.parametrize("name", NAMES)
def test_what_an_action_declares_holds_together(name: str) -> None:
    action = loaded(name)
    assert action["runs"]["using"] == "composite"
    steps = action["runs"]["steps"]
    used = set()
    for step in steps:
        assert ("uses" in step) != ("run" in step)
        assert "run" not in step or step["shell"] == "bash"
        # What a caller gives reaches a shell through the environment alone, where it is no code.
        assert "${{" not in step.get("run", "")
        for value in (*step.get("env", {}).values(), *step.get("with", {}).values()):
            used |= {EXPRESSION.fullmatch(value)[1].removeprefix("inputs.")}  # type: ignore[index]
    assert used == set(action["inputs"])
    assert all(
        row["description"] and ("default" in row) != (row.get("required") == "true")
        for row in action["inputs"].values()
    )
    written = {step["id"]: step["run"] + (ACTIONS / "run.sh").read_text() for step in steps if "id" in step}
    for row in action["outputs"].values():
        step_id, output = re.fullmatch(
            r"steps\.(\w+)\.outputs\.([\w-]+)", EXPRESSION.fullmatch(row["value"])[1]
        ).groups()  # type: ignore[index,union-attr]
        assert f"{output}=" in written[step_id]


def test_the_actions_install_this_repository_and_nothing_by_name() -> None:
    for name in NAMES:
        (install,) = [step["run"] for step in loaded(name)["runs"]["steps"] if step.get("name") == "Install"]
        assert install == 'cd "$GITHUB_ACTION_PATH/../.."\npython -I -m pip install --quiet .\n'
        assert (ACTIONS / name / ".." / "..").resolve() == CHECKOUT
    assert os.access(ACTIONS / "run.sh", os.X_OK)
    for name in NAMES:
        assert loaded(name)["inputs"]["python-version"]["default"] in ("3.11", "3.12", "3.13")


def test_every_action_that_is_used_is_pinned_by_its_commit() -> None:
    files = [*ACTIONS.glob("*/action.yml"), *(CHECKOUT / ".github" / "workflows").glob("*.yml")]
    used = [line for file in files for line in file.read_text(encoding="utf-8").splitlines() if "uses:" in line]
    assert len(used) == 9
    assert [line for line in used if not re.search(r"uses: [\w/-]+@[0-9a-f]{40}  # v\d+\.\d+\.\d+$", line)] == []


@pytest.mark.parametrize("name", NAMES)
def test_no_module_of_the_workspace_is_run(name: str, ran: Callable[..., Ran], tmp_path: Path) -> None:
    owned = tmp_path / "owned"
    for module in ("pip", "secrets", "re", "argparse", "yaml", "runner", "sitecustomize"):
        (tmp_path / "workspace" / f"{module}.py").write_text(f"open({str(owned)!r}, 'a').write(__name__)\n")
    (install,) = [step["run"] for step in loaded(name)["runs"]["steps"] if step.get("name") == "Install"]
    # What is installed counts for nothing here: the words before it are, and their answer.
    installed = ran(name, lambda _: install.replace("install --quiet .", "--version"), source="no_such")
    assert (installed.code, installed.log[:4]) == (0, "pip "), installed.log
    assert ran(name, source="no_such", golden="none", snapshot="none", run="none").code == 2
    assert not owned.exists(), owned.read_text()


@pytest.mark.slow
def test_the_determiner_says_what_is_decided_and_what_is_not(ran: Callable[..., Ran], tmp_path: Path) -> None:
    workspace = tmp_path / "workspace"
    shutil.copytree(CHECKOUT / "eval-sets" / "gao_reports", workspace / "eval-sets" / "gao_reports")
    shutil.copytree(CHECKOUT / "eval-sets" / "bills", workspace / "sets" / "of bills")
    done = ran("determiner", source="gao_reports")
    assert (done.code, done.outputs["decided"], done.outputs["answer"]) == (0, "true", "decision recorded"), done.log
    assert "    decision recorded\n" in done.summary
    undecided = ran("determiner", source="bills", eval_set_path="sets/of bills")
    assert (undecided.code, undecided.outputs["decided"]) == (1, "false"), undecided.log
    assert undecided.outputs["answer"].startswith("undecided: ")
    assert ran("determiner", source="bills", eval_set_path="sets/of bills", require="false").code == 0
    assert "decided" not in (wrong := ran("determiner", source="$(touch owned)", require="false")).outputs
    assert (wrong.code, list(workspace.rglob("owned"))) == (2, [])
    decision = workspace / "eval-sets" / "gao_reports" / "v1" / "decision.json"
    decision.write_bytes(decision.read_bytes().replace(b"e", b"E", 1))
    assert ran("determiner", source="gao_reports").code == 4


@pytest.mark.slow
def test_the_tripwire_fires_when_golden_queries_fall(ran: Callable[..., Ran], tmp_path: Path) -> None:
    workspace = tmp_path / "workspace"
    (workspace / "golden.yaml").write_text(
        yaml.safe_dump([{"name": f"::error::q{n}", "text": f"question {n}", "expected": [f"d{n}"]} for n in range(4)])
    )
    ranked = [f"::error::q{n} Q0 d{n} 1 2.0 t\n::error::q{n} Q0 x{n} 2 1.0 t\n" for n in range(4)]
    run = workspace / "now.run"
    run.write_text("".join(ranked))
    paths = [str(workspace / "golden.yaml"), "--run", str(run), "--snapshot", str(workspace / "was.json")]
    assert main(["tripwire", "update", *paths]) == 0
    inputs = {"golden": "golden.yaml", "run": "now.run", "snapshot": "was.json"}
    assert (done := ran("tripwire", **inputs)).outputs.get("fell") == "false", done.log
    run.write_text("".join(ranked).replace(" d3 1 2.0", " y3 1 2.0"))
    fired = ran("tripwire", **inputs)
    assert (fired.code, fired.outputs["fell"]) == (1, "true")
    between = re.search(r"::stop-commands::(\w{32})\n.*?::\1::", fired.log, re.DOTALL)
    assert between
    assert "::error::" not in fired.log.replace(between[0], "")
    assert ran("tripwire", **inputs, require="false").code == 0
    run.write_text("".join(ranked).replace(" d3 1 2.0", " d3 2 0.5"))  # from first to second
    assert [ran("tripwire", **inputs, tolerance=fall).code for fall in ("0.4", "0.6")] == [1, 0]
    missing = ran("tripwire", **{**inputs, "run": "gone.run"}, require="false")
    assert (missing.code, "fell" in missing.outputs) == (2, False)

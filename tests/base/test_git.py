import os
import shutil
import subprocess
from pathlib import Path

import pytest

from runner.base.git import git_state, ignored, untracked
from tests.conftest import called
from tests.support.repository import commit_all, git


@pytest.fixture(name="repository")
def _repository(tmp_path, monkeypatch):
    """A repository with a tracked, an untracked and an ignored file; no configuration of the user's has a say."""
    for name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    # So that a folder without a repository of its own is in none, wherever the tests run.
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path))
    folder = tmp_path / "in"
    (folder / "v1").mkdir(parents=True)
    git(folder, "init", "-q")
    (folder / ".gitignore").write_text("ignored.txt\n")
    for name in ("tracked.txt", "untracked.txt", "ignored.txt", "ünd spaß.txt"):
        (folder / "v1" / name).write_text(name)
    git(folder, "add", "v1/tracked.txt", "v1/ünd spaß.txt")
    return folder / "v1"


def test_files_that_git_does_not_hold_are_named_also_behind_a_link(repository, tmp_path):
    (repository / "tracked.txt").write_text("other words")
    (tmp_path / "link").symlink_to(repository)
    names = ("tracked.txt", "untracked.txt", "ignored.txt", "ünd spaß.txt", "missing.txt")
    for folder in (repository, tmp_path / "link"):
        found = untracked([folder / name for name in names])
        assert [path.name for path in found] == ["untracked.txt", "ignored.txt"]
    assert ignored(repository) == ["ignored.txt"]


def test_without_git_or_a_repository_nothing_is_said(repository, monkeypatch, tmp_path):
    (tmp_path / "a.txt").write_text("a")
    assert untracked([tmp_path / "a.txt"]) == untracked([]) == ignored(tmp_path) == []
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    assert untracked([repository / "untracked.txt"]) == ignored(repository) == []


def hostile(folder, program):
    """Every setting of a repository that names a program for git to run while it looks at files."""
    with (folder / ".git" / "traps").open("w") as traps:
        traps.write(f"[core]\n pager = {program}\n sshCommand = {program}\n editor = {program}\n")
        traps.write(f'[diff]\n external = {program}\n[diff "x"]\n textconv = {program}\n command = {program}\n')
        traps.write(f'[alias]\n status = !{program}\n rev-parse = !{program}\n[protocol "ext"]\n allow = always\n')
        traps.write(f'[remote "origin"]\n url = ext::{program}\n promisor = true\n partialCloneFilter = blob:none\n')
    with (folder / ".git" / "config").open("a") as config:
        config.write(f"[core]\n fsmonitor = {program} monitor\n hooksPath = {program.parent}\n")
        config.write(f'[filter "x"]\n clean = {program} filter\n required\n[filter "y"]\n process = {program}\n')
        config.write(f'[includeIf "gitdir:**"]\n path = {folder / ".git" / "traps"}\n[include]\n path = traps\n')


def trapped(tmp_path, monkeypatch):
    """A repository with a submodule, both of which have a canary run by whatever git runs, and the canary's cage."""
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    cage, program = tmp_path / "cage", tmp_path / "hooks" / "post-index-change"
    cage.mkdir()
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\nmktemp {cage}/$1XXXXXX >/dev/null\n")
    program.chmod(0o755)
    folder, module = tmp_path / "theirs", tmp_path / "module"
    for each in (folder, module):
        each.mkdir()
        git(each, "init", "-q", "-b", "main")
        (each / ".gitattributes").write_text("*.bin filter=x diff=x\n*.dat filter=y\n")
        for name in ("a.bin", "b.dat", "c.txt"):
            (each / name).write_text(name)
        commit_all(each)
    git(folder, "submodule", "add", "-q", str(module), "module")
    commit_all(folder)
    git(folder, "submodule", "absorbgitdirs")
    hostile(folder, program)
    with (folder / ".git" / "modules" / "module" / "config").open("a") as config:
        config.write(f'[core]\n fsmonitor = {program}\n[filter "x"]\n clean = {program}\n')
    for path in folder.rglob("*.bin"):
        os.utime(path, (1, 1))  # so that the index cannot answer for the file
    return folder, cage


def test_nothing_that_a_strangers_repository_names_is_run(tmp_path, monkeypatch):
    folder, cage = trapped(tmp_path, monkeypatch)
    subprocess.run(["git", "--no-optional-locks", "-C", str(folder), "status"], capture_output=True, timeout=60)
    assert {"monitor", "filter"} <= {path.name[:-6] for path in cage.iterdir()}, "the traps do not work"
    for path in cage.iterdir():
        path.unlink()
    assert git_state(folder) == {"commit": git(folder, "rev-parse", "HEAD"), "branch": "main", "dirty": False}
    untracked([folder / "c.txt"])
    assert called("lock", folder, "--output", tmp_path / "lock.json") == (0, "")
    assert called("verify", folder, "--lock", tmp_path / "lock.json") == (0, "")
    assert not any(cage.iterdir())
    (folder / "a.bin").write_text("other words")
    assert git_state(folder)["dirty"] is True
    # An object that is missing is not fetched from a remote that is a program.
    tree = git(folder, "rev-parse", "HEAD^{tree}")
    (folder / ".git" / "objects" / tree[:2] / tree[2:]).unlink()
    assert set(git_state(folder)) == {"error"}
    assert not any(cage.iterdir())
    subprocess.run(["git", "-C", str(folder), "diff"], capture_output=True, stdin=subprocess.DEVNULL, timeout=60)
    assert any(cage.iterdir()), "the traps do not work"


def worktree(folder):
    git(folder, "worktree", "add", "-q", "-b", "other", str(folder.with_name("tree")))
    return folder.with_name("tree")


def split_index(folder):
    git(folder, "update-index", "--split-index")
    return folder


def below(folder):
    return folder / "deep"


@pytest.mark.parametrize(
    ("seen_from", "form"),
    [
        (Path, "sha256"),
        (below, "sha1"),
        *(pytest.param(each, "sha1", marks=pytest.mark.slow) for each in (worktree, split_index)),
    ],
)
def test_what_is_dirty_is_what_git_calls_dirty(tmp_path, monkeypatch, seen_from, form):
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    folder = tmp_path / "a repository"
    (folder / "deep").mkdir(parents=True)
    git(folder, "init", "-q", "-b", "main", f"--object-format={form}")
    (folder / ".gitignore").write_text("*.log\n")
    for name in ("one.txt", "deep/two.txt"):
        (folder / name).write_text(name)
    commit_all(folder)
    (folder / ".git" / "info" / "exclude").write_text("mine\n")
    place = seen_from(folder)
    root = folder if place.name == "deep" else place
    before = git_state(place)
    assert before["commit"] == git(place, "rev-parse", "HEAD")
    assert before["branch"] == git(place, "branch", "--show-current")
    steps = {
        "ignored": lambda: (root / "a.log").write_text("x"),
        "excluded": lambda: (root / "mine").write_text("x"),
        "touched": lambda: os.utime(root / "one.txt", (1, 1)),
        "untracked": lambda: (root / "new.txt").write_text("x"),
        "staged": lambda: git(root, "add", "new.txt"),
        "committed": lambda: commit_all(root),
        "changed": lambda: (root / "deep" / "two.txt").write_text("x"),
        "checked out": lambda: git(root, "checkout", "-q", "."),
        "deleted": lambda: (root / "one.txt").unlink(),
    }
    seen = {}
    for name, step in steps.items():
        step()
        seen[name] = git_state(place)["dirty"]
        assert seen[name] == bool(git(root, "status", "--porcelain")), name
    assert [name for name, dirty in seen.items() if dirty] == ["untracked", "staged", "changed", "deleted"]


def test_a_submodule_at_another_commit_is_dirty_and_one_that_is_not_checked_out_is_not(tmp_path, monkeypatch):
    folder, _ = trapped(tmp_path, monkeypatch)
    module = folder / "module"
    git(module, "commit", "-qm", "x", "--allow-empty")
    assert git_state(folder)["dirty"] is True
    shutil.rmtree(module)
    module.mkdir()
    assert git_state(folder)["dirty"] is False


def test_a_bare_repository_and_one_without_a_commit_have_no_state(tmp_path, monkeypatch):
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    git(tmp_path, "init", "-q", "--bare", "bare")
    git(tmp_path, "init", "-q", "empty")
    assert [set(git_state(tmp_path / name)) for name in ("bare", "empty")] == [{"error"}, {"error"}]

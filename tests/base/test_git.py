import subprocess

import pytest

from runner.base.git import untracked


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
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    (folder / ".gitignore").write_text("ignored.txt\n")
    for name in ("tracked.txt", "untracked.txt", "ignored.txt", "ünd spaß.txt"):
        (folder / "v1" / name).write_text(name)
    subprocess.run(["git", "-C", str(folder), "add", "v1/tracked.txt", "v1/ünd spaß.txt"], check=True)
    return folder / "v1"


def test_files_that_git_does_not_hold_are_named(repository):
    names = ("tracked.txt", "untracked.txt", "ignored.txt", "ünd spaß.txt", "missing.txt")
    found = untracked([repository / name for name in names])
    assert [path.name for path in found] == ["untracked.txt", "ignored.txt"]


def test_a_tracked_file_stays_tracked_when_it_changes(repository):
    (repository / "tracked.txt").write_text("other words")
    assert untracked([repository / "tracked.txt"]) == []


def test_a_link_to_the_folder_leads_to_the_same_files(repository, tmp_path):
    (tmp_path / "link").symlink_to(repository)
    found = untracked([tmp_path / "link" / name for name in ("tracked.txt", "untracked.txt")])
    assert [path.name for path in found] == ["untracked.txt"]


def test_without_a_repository_nothing_is_said(repository, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "a.txt").write_text("a")
    assert untracked([tmp_path / "out" / "a.txt"]) == []
    assert untracked([]) == []


def test_without_git_nothing_is_said(repository, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    assert untracked([repository / "untracked.txt"]) == []

import hashlib
import json
import os
import shutil
from pathlib import Path

import falsify_eval.lock as falsify
import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.base.canonical import json_bytes
from runner.base.errors import InputError
from runner.eval_set import door
from runner.eval_set.door import folder_differences, is_edited, lock_folder
from runner.eval_set.shapes.lock import Lock
from tests.conftest import called
from tests.support.repository import commit_all, git


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "state"
    fill(folder, {"bench.jsonl": "one\n", "deep/er/notes.txt": "two", "index.db": "three"})
    return folder


@pytest.fixture
def repo(folder, monkeypatch):
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    git(folder, "init", "-q", "-b", "main")
    commit_all(folder)
    return folder


def fill(folder, files):
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(text.encode())


def kinds(folder, locked):
    return {row["path"]: row["kind"] for row in folder_differences(folder, locked)}


def verified(capsys, folder, path, *flags):
    code, _ = called("verify", folder, "--lock", path, "--json", *flags)
    return code, json.loads(capsys.readouterr().out)


def test_every_file_is_locked_by_its_digest_whatever_its_extension(folder, monkeypatch):
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(folder.parent))  # or git names the mount that holds the folder
    locked = lock_folder(folder)
    assert locked.files == {
        name: hashlib.sha256(text).hexdigest()
        for name, text in {"bench.jsonl": b"one\n", "deep/er/notes.txt": b"two", "index.db": b"three"}.items()
    }
    theirs = falsify.lock_state(folder, tracked_extensions={".jsonl", ".txt", ".db"})["artifacts"]
    assert locked.files == {name: row["sha256"] for name, row in theirs.items()}
    assert locked.folder.git == {"error": "not a git repository"}
    read = Lock.model_validate(json.loads(json_bytes(locked.model_dump())))
    assert not is_edited(read)
    assert folder_differences(folder, read) == []


def test_every_difference_is_named_with_both_digests(folder):
    locked = lock_folder(folder)
    fill(folder, {"bench.jsonl": "One\n", "new.txt": ""})
    (folder / "index.db").unlink()
    edited, empty = (hashlib.sha256(text).hexdigest() for text in (b"One\n", b""))
    assert [tuple(row.values()) for row in folder_differences(folder, locked)] == [
        ("bench.jsonl", "changed", locked.files["bench.jsonl"], edited),
        ("index.db", "missing", locked.files["index.db"], ""),
        ("new.txt", "extra", "", empty),
    ]


FILES = st.dictionaries(
    st.sampled_from(["a.json", "b.txt", "d/a.json", "d/e.npy", "x.db", "x.db-wal", ".fuse_hidden1.json", "é ü.pkl"]),
    st.sampled_from(["", "one", "two"]),
    min_size=1,
)


@given(FILES, FILES)
def test_a_folder_matches_its_lock_exactly_where_no_counted_file_differs(tmp_path_factory, before, after):
    folder = tmp_path_factory.mktemp("property")
    fill(folder, before)
    counted = {name for name in before if not name.endswith(".db-wal") and not name.startswith(".fuse")}
    if not counted:
        with pytest.raises(InputError, match="holds no file to lock"):
            lock_folder(folder)
        return
    locked = lock_folder(folder)
    assert set(locked.files) == counted
    for name in before:
        (folder / name).unlink()
    fill(folder, after)
    later = {name for name in after if not name.endswith("-wal") and not name.startswith(".fuse")}
    assert kinds(folder, locked) == {
        **dict.fromkeys(counted - later, "missing"),
        **dict.fromkeys(later - counted, "extra"),
        **{name: "changed" for name in counted & later if before[name] != after[name]},
    }


EDITS = {
    "root": lambda found: found.update(root_sha256="0" * 64),
    "date": lambda found: found["folder"].update(locked_at="2000-01-01"),
    "git": lambda found: found["folder"].update(git={"error": "none"}),
    "a file gone": lambda found: found["files"].pop("index.db"),
    "a path outside": lambda found: found["files"].update({"../outside.txt": "0" * 64}),
}


@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS)
def test_an_edited_lock_is_noticed_and_leads_to_nothing_outside_of_the_folder(folder, tmp_path, capsys, edit):
    (folder.parent / "outside.txt").write_text("secret")
    found = lock_folder(folder).model_dump()
    edit(found)
    (tmp_path / "lock.json").write_bytes(json_bytes(found))
    code, answer = verified(capsys, folder, tmp_path / "lock.json")
    assert (code, answer["lock_edited"], answer["matches"]) == (4, True, False)
    assert hashlib.sha256(b"secret").hexdigest() not in json.dumps(answer)


@pytest.mark.parametrize(
    "content",
    [
        *(b"", b"{", b"[]", b"1", b"\xff", b'{"schema_version": 3}', b"[" * 100_000),
        b'{"schema_version": 1, "files": {"a": "0"}}',
        b'{"schema_version": 1, "files": {}, "root_sha256": "' + b"0" * 64 + b'"}',
        b'{"version": 1, "generated_at": "", "git": {"error": ""}, "artifacts": {}}',
    ],
)
def test_what_is_not_a_lock_of_a_folder_is_one_input_error_that_names_the_file(folder, tmp_path, content):
    path = tmp_path / "lock.json"
    path.write_bytes(content)
    code, said = called("verify", folder, "--lock", path)
    assert code == 2
    assert "lock.json" in said


def test_a_missing_lock_or_folder_is_an_input_error(folder, tmp_path):
    assert called("verify", folder, "--lock", tmp_path / "none.json")[0] == 2
    for nothing in (tmp_path / "none", folder / "index.db"):
        code, said = called("lock", nothing, "-o", tmp_path / "lock.json")
        assert code == 2
        assert str(nothing) in said


def test_links_count_by_their_text_and_are_not_followed(folder, tmp_path):
    outside = tmp_path / "outside"
    fill(outside, {"a.txt": "secret"})
    for name, target in {"file": outside / "a.txt", "folder": outside, "nowhere": "nothing", "loop": folder}.items():
        (folder / name).symlink_to(target)
    locked = lock_folder(folder)
    assert sorted(locked.files)[2:] == ["file", "folder", "index.db", "loop", "nowhere"]
    fill(outside, {"a.txt": "changed"})
    assert folder_differences(folder, locked) == []
    (folder / "nowhere").unlink()
    (folder / "nowhere").symlink_to("elsewhere")
    (folder / "file").unlink()
    fill(folder, {"file": str(outside / "a.txt")})
    assert kinds(folder, locked) == {"file": "changed", "nowhere": "changed"}


def test_a_pipe_is_refused_without_waiting_for_it(folder):
    os.mkfifo(folder / "pipe")
    with pytest.raises(InputError, match="pipe is a pipe, socket or device"):
        lock_folder(folder)


def test_a_name_that_is_not_utf_8_is_refused_by_lock_and_shown_by_verify(folder, capsys):
    assert called("lock", folder, "-o", folder / "lock.json") == (0, "")
    Path(os.fsdecode(os.fsencode(folder) + b"/caf\xe9\n")).write_text("")
    with pytest.raises(InputError, match=r"caf\\xe9\\n: this name is not UTF-8"):
        lock_folder(folder)
    capsys.readouterr()
    code, found = verified(capsys, folder, folder / "lock.json")
    assert (code, [row["path"] for row in found["differences"]]) == (4, ["caf\\xe9\\n"])


def appended(path):
    path.write_bytes(path.read_bytes() + b"more")


def replaced(path):
    shutil.copy2(path, path.with_suffix(".copy")).replace(path)


@pytest.mark.parametrize("meanwhile", [appended, replaced])
def test_a_file_that_changes_or_is_replaced_while_it_is_read_is_an_input_error(folder, monkeypatch, meanwhile):
    read, locked = door.file_sha256, lock_folder(folder)

    def digest_of(path):
        meanwhile(path)
        return read(path)

    monkeypatch.setattr(door, "file_sha256", digest_of)
    for look in (lock_folder, lambda folder: folder_differences(folder, locked)):
        with pytest.raises(InputError, match="changed while it was read"):
            look(folder)


def test_a_file_that_cannot_be_read_is_an_input_error(folder, monkeypatch):
    def refused(path):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(door, "file_sha256", refused)
    with pytest.raises(InputError, match=r"bench\.jsonl cannot be read \(Permission denied\)"):
        lock_folder(folder)


def test_the_commit_is_locked_and_a_moved_one_is_said(repo, tmp_path, capsys):
    first, path = git(repo, "rev-parse", "HEAD"), tmp_path / "lock.json"
    assert called("lock", repo, "-o", path) == (0, "")
    locked = json.loads(path.read_bytes())
    assert locked["folder"]["git"] == {"commit": first, "branch": "main", "dirty": False}
    assert not any(name.startswith(".git") for name in locked["files"])
    second = commit_all(repo)
    capsys.readouterr()
    code, found = verified(capsys, repo, path)
    assert (code, found["git_moved"], found["git_now"]["commit"]) == (0, True, second)
    assert called("verify", repo, "--lock", path) == (0, "")
    assert capsys.readouterr().out.startswith(f"✓ {repo}: 3 files as locked on ")


def test_a_lock_inside_its_folder_does_not_lock_itself_and_replaces_nothing(folder):
    path = folder / "deep" / "lock.json"
    assert called("lock", folder, "-o", path) == (0, "")
    assert called("verify", folder, "--lock", path) == (0, "")
    before = path.read_bytes()
    assert called("lock", folder, "-o", path)[0] == 2
    assert path.read_bytes() == before
    fill(folder, {"bench.jsonl": "edited"})
    assert called("verify", folder, "--lock", path) == (4, "")

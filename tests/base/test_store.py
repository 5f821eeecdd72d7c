import errno
import json
import logging
import os
import resource
import signal
import subprocess
import sys
import threading
import time

import pytest

from runner.base.errors import BackendError
from runner.base.store import MANIFEST, PIECES, Store, disk_errors, exclusive


@pytest.fixture(name="store")
def _store(tmp_path):
    return Store(tmp_path / ".cache")


class Builder:
    """Writes two files and counts how often it had to."""

    def __init__(self):
        self.calls = 0

    def __call__(self, folder):
        self.calls += 1
        (folder / "sub").mkdir()
        (folder / "a.bin").write_bytes(b"alpha" * 100)
        (folder / "sub" / "b.txt").write_text("beta")


def tree(folder):
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def test_an_artefact_is_built_once_and_found_again(store):
    build = Builder()
    first = store.ensure("stage", {"x": 1}, build)
    assert store.ensure("stage", {"x": 1}, build) == first
    assert build.calls == 1
    assert first.parent.parent == store.root
    assert set(tree(first)) == {"a.bin", "sub/b.txt", MANIFEST}


def test_a_manifest_that_is_laid_out_otherwise_holds(store):
    build = Builder()
    manifest = store.ensure("stage", {"x": [1, 0.5]}, build) / MANIFEST
    manifest.write_text(json.dumps(json.loads(manifest.read_bytes()), indent=4))
    store.ensure("stage", {"x": [1, 0.5]}, build)
    assert build.calls == 1


def test_other_inputs_or_stages_are_other_artefacts(store):
    build = Builder()
    folders = {store.ensure(stage, {"x": x}, build) for stage in ("one", "two") for x in (1, 2)}
    assert len(folders) == build.calls == 4


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (lambda f: (f / "a.bin").write_bytes(b"alpha" * 99), "a.bin is not what was written"),
        (lambda f: (f / "sub" / "b.txt").unlink(), "sub/b.txt is missing"),
        (lambda f: (f / MANIFEST).write_text("{"), f"{MANIFEST} cannot be read"),
        (lambda f: (f / MANIFEST).write_bytes(b"\xff\xfe"), f"{MANIFEST} cannot be read"),
        (
            lambda f: (f / MANIFEST).write_text((f / MANIFEST).read_text().replace('"x": 1', '"x": 2')),
            f"{MANIFEST} is not what was written",
        ),
    ],
)
def test_a_damaged_artefact_is_discarded_with_a_warning_and_made_again(store, caplog, damage, says):
    build = Builder()
    folder = store.ensure("stage", {"x": 1}, build)
    intact = tree(folder)
    damage(folder)
    with caplog.at_level(logging.WARNING):
        assert store.ensure("stage", {"x": 1}, build) == folder
    assert build.calls == 2
    assert tree(folder) == intact
    assert says in caplog.text
    assert str(folder) in caplog.text


def test_a_flipped_byte_anywhere_is_noticed(store):
    build = Builder()
    folder = store.ensure("stage", {"x": 1}, build)
    intact = tree(folder)
    for name, content in intact.items():
        for at in range(0, len(content), max(1, len(content) // 7)):
            flipped = bytearray(content)
            flipped[at] ^= 1
            (folder / name).write_bytes(bytes(flipped))
            store.ensure("stage", {"x": 1}, build)
            assert tree(folder) == intact, (name, at)


def test_a_failed_build_leaves_its_pieces_and_no_manifest(store):
    def fail(folder):
        (folder / PIECES).mkdir()
        (folder / PIECES / "0").write_text("finished")
        (folder / "half").write_text("junk")
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        store.ensure("stage", {}, fail)

    def resume(folder):
        assert set(tree(folder)) == {f"{PIECES}/0"}
        (folder / "whole").write_text("done")

    folder = store.ensure("stage", {}, resume)
    assert set(tree(folder)) == {"whole", MANIFEST}
    assert not (folder / PIECES).exists()


def test_temporary_files_of_killed_writers_are_cleaned_and_never_listed(store):
    def leave(folder):
        (folder / PIECES).mkdir()
        (folder / PIECES / ".tmp-1").write_text("")
        (folder / ".tmp-2").write_text("")
        (folder / "whole").write_text("done")

    folder = store.ensure("stage", {}, leave)
    assert set(json.loads((folder / MANIFEST).read_text())["files"]) == {"whole"}
    assert set(tree(folder)) == {"whole", MANIFEST}


def test_a_kill_between_manifest_and_clean_up_leaves_a_complete_artefact(store):
    build = Builder()
    folder = store.ensure("stage", {}, build)
    (folder / PIECES).mkdir()
    (folder / PIECES / "0").write_text("left over")
    store.ensure("stage", {}, build)
    assert build.calls == 1
    assert not (folder / PIECES).exists()


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_names_the_folder_and_the_way_out(store, number):
    def full(folder):
        raise OSError(number, os.strerror(number))

    with pytest.raises(BackendError, match=rf"disk is full: {store.root}/stage/.*Free some space") as caught:
        store.ensure("stage", {}, full)
    assert caught.value.exit_code == 5


def test_a_disk_that_fills_up_leaves_nothing_half_written(store, tmp_path):
    """A real refusal by the kernel: files of this process may not grow past 4,000 bytes."""
    script = (
        "import resource, signal, sys\n"
        "from pathlib import Path\n"
        "from runner.base.canonical import write_atomic\n"
        "from runner.base.errors import BackendError\n"
        "from runner.base.store import Store\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (4000, 4000))\n"
        "try:\n"
        "    Store(Path(sys.argv[1])).ensure('s', {}, lambda f: write_atomic(f / 'big', bytes(9000)))\n"
        "except BackendError as error:\n"
        "    print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(store.root)], capture_output=True, text=True, check=True, timeout=60
    )
    assert "disk is full" in done.stdout
    assert not [p for p in store.root.rglob("*") if p.is_file() and p.suffix != ".lock"]
    folder = store.ensure("s", {}, lambda f: (f / "big").write_bytes(bytes(9000)))
    assert (folder / "big").stat().st_size == 9000
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] != 4000


def test_a_cache_that_cannot_be_written_is_one_clear_error(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(BackendError, match=r"file.* cannot be written"):
        Store(tmp_path / "file").ensure("stage", {}, Builder())
    with pytest.raises(BackendError, match=r"file.* cannot be written"), exclusive(tmp_path / "file" / "lock", "x"):
        pass
    with pytest.raises(BackendError, match="elsewhere cannot be written"), disk_errors(tmp_path):
        raise PermissionError(errno.EACCES, "Permission denied", "elsewhere")


def test_other_errors_of_a_builder_pass_unchanged(store):
    def fail(folder):
        raise ConnectionResetError(errno.ECONNRESET, "reset")

    with pytest.raises(ConnectionResetError):
        store.ensure("stage", {}, fail)


def test_of_two_that_want_one_artefact_one_builds_and_the_other_says_it_waits(store, caplog):
    building, go_on = threading.Event(), threading.Event()
    calls = []

    def build(folder):
        calls.append(1)
        building.set()
        assert go_on.wait(60)
        (folder / "a").write_text("a")

    folders = []
    threads = [threading.Thread(target=lambda: folders.append(store.ensure("s", {}, build))) for _ in range(2)]
    with caplog.at_level(logging.WARNING):
        threads[0].start()
        assert building.wait(60)
        threads[1].start()
        while "waiting for another run to finish s" not in caplog.text:
            time.sleep(0.005)
        go_on.set()
        for thread in threads:
            thread.join(60)
    assert len(calls) == 1
    assert folders[0] == folders[1]


def test_a_lock_dies_with_its_process(tmp_path):
    script = (
        "import sys, time\n"
        "from pathlib import Path\n"
        "from runner.base.store import exclusive\n"
        "with exclusive(Path(sys.argv[1]), 'x'):\n"
        "    print('held', flush=True)\n"
        "    time.sleep(60)\n"
    )
    lock = tmp_path / "version.lock"
    holder = subprocess.Popen([sys.executable, "-c", script, str(lock)], stdout=subprocess.PIPE)
    assert holder.stdout.readline() == b"held\n"
    entered = threading.Event()

    def enter():
        with exclusive(lock, "another run of this version"):
            entered.set()

    waiter = threading.Thread(target=enter)
    waiter.start()
    assert not entered.wait(0.1)
    holder.send_signal(signal.SIGKILL)
    assert entered.wait(60)
    waiter.join()
    holder.wait()
    holder.stdout.close()

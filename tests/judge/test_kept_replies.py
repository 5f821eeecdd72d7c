"""What is kept of every reply, and what a killed writer or an editor may leave of it."""

import errno
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.base.errors import BackendError, InputError
from runner.embed.cost.prices import Usage
from runner.judge.models.client import Reply
from runner.judge.models.kept_replies import KeptReply, ReplyFiles
from tests.support.judge_rows import said

KEY = "cd" * 32


def reply(text=None, key=KEY, **more):
    more = {"usage": Usage(read=1, cache_written=2, cache_read=3, written=4), "raw": {"id": "m1"}, **more}
    return Reply(key=key, text=said() if text is None else text, model="claude-example-1", **more)


def kept(text=None, **more):
    return as_kept(reply(text, **more))


def as_kept(one):
    return KeptReply(**dict(one), query_id="q01", doc_id="d1", received_on="2026-01-31")


@pytest.fixture(name="files")
def _files(tmp_path):
    return ReplyFiles(tmp_path / "judging", "Claude/Example 1")


def test_a_line_says_whose_reply_it_is_when_it_came_what_it_used_and_all_that_was_received(files, tmp_path):
    assert files.path("batch-0001") == tmp_path / "judging" / "replies" / "claude-example-1" / "batch-0001.jsonl"
    assert files.read("batch-0001") == []
    files.append("batch-0001", kept())
    [line] = files.path("batch-0001").read_text().splitlines()
    assert json.loads(line) == {
        "key": KEY,
        "query_id": "q01",
        "doc_id": "d1",
        "received_on": "2026-01-31",
        "model": "claude-example-1",
        "usage": {"read": 1, "cache_written": 2, "cache_read": 3, "written": 4},
        "text": said(),
        "problem": "",
        "raw": {"id": "m1"},
    }


def test_attempts_are_added_earlier_bytes_stay_and_replies_come_back_as_they_were(files):
    path = files.path("batch-0001")
    written, replies = b"", [reply("prose"), reply("", key="ef" * 32, problem="refused"), reply()]
    for one in replies:
        files.append("batch-0001", as_kept(one))
        assert path.read_bytes().startswith(written)
        written = path.read_bytes()
    assert [Reply(**one.model_dump(include=set(Reply.model_fields))) for one in files.read("batch-0001")] == replies


@given(st.text(st.characters()), st.floats(), st.text(st.characters()))
def test_whatever_a_service_sent_is_kept(text, number, name):
    from tempfile import TemporaryDirectory

    with TemporaryDirectory() as folder:
        files = ReplyFiles(Path(folder), "m")
        one = kept(text, raw={name: [number, None, {"half": "\ud83d"}]})
        files.append("b", one)
        [back] = files.read("b")
    assert repr(back) == repr(one)


def test_a_torn_last_line_is_passed_over_and_cut_off_by_the_next_reply_at_any_length(files):
    files.append("batch-0001", kept("first"))
    path = files.path("batch-0001")
    whole = path.read_bytes()
    for cut in (1, 7, len(whole) - 1):
        path.write_bytes(whole + whole[:cut])
        assert [one.text for one in files.read("batch-0001")] == ["first"]
        files.append("batch-0001", kept("second"))
        assert path.read_bytes().startswith(whole)
        assert [one.text for one in files.read("batch-0001")] == ["first", "second"]
    path.write_bytes(whole[:9])
    assert files.read("batch-0001") == []
    files.append("batch-0001", kept("only"))
    assert [one.text for one in files.read("batch-0001")] == ["only"]


DAMAGE = {
    "no JSON": b"{]\n",
    "blank": b"\n",
    "no UTF-8": b'"\xff"\n',
    "a list": b"[]\n",
    "half a reply": b'{"key": "ab"}\n',
}


@pytest.mark.parametrize("name", DAMAGE)
def test_a_damaged_line_within_a_file_is_named(files, name):
    files.append("batch-0001", kept())
    path = files.path("batch-0001")
    path.write_bytes(path.read_bytes() + DAMAGE[name])
    with pytest.raises(InputError, match=r"batch-0001\.jsonl:2: .*Delete the line; its pair is asked about again"):
        files.read("batch-0001")


def test_a_disk_that_takes_nothing_is_called_that(files, monkeypatch):
    def full(*_, **__):
        raise OSError(errno.ENOSPC, "No space left on device")

    files.append("batch-0001", kept("first"))
    with monkeypatch.context() as patch:
        patch.setattr(Path, "open", full)
        with pytest.raises(BackendError, match=r"The disk is full: .*batch-0001\.jsonl"):
            files.append("batch-0001", kept("second"))
    assert [one.text for one in files.read("batch-0001")] == ["first"]

import json

import pytest

from runner.base.errors import BackendError
from runner.eval_set.shapes.labels import JudgeSpec
from runner.judge.models.requests import Reply
from runner.queries.draft_asks import draft_rows
from runner.queries.drafting import ATTEMPTS, ask_model
from tests.support.anthropic_server import (
    AnthropicServer,
    cut_off,
    not_json,
    overloaded,
    prose,
    rate_limited,
    refusal,
    served,
)
from tests.support.query_fixtures import Drafter, by_id, drafted

DAY = "2026-05-01"


@pytest.fixture
def rows(version):
    documents = list(by_id(version).values())
    return draft_rows(version, documents, documents, 1)


def good(ask):
    kind = ask.schema["properties"]["kind"]["enum"][0]
    return drafted(kind, f'zeppelin "moorings in fog" H.R. {int(ask.key[:6], 16)}', "note")


def test_every_row_is_asked_once_and_answers_come_in_the_order_of_the_rows(rows, tmp_path):
    model = Drafter(good)
    asked = ask_model(rows, model, tmp_path, DAY)
    assert [each.row for each in asked.answers] == rows
    assert asked.answers[0].name == f"row 1, {rows[0].key[:12]} ({rows[0].kind} from {rows[0].doc_id})"
    assert asked.failed == []
    assert [ask.key for ask in model.asked] == [row.key for row in rows]


def test_a_usable_reply_is_kept_and_not_asked_for_again(rows, tmp_path):
    first = ask_model(rows, Drafter(good), tmp_path, DAY)
    model = Drafter(good)
    assert ask_model(rows, model, tmp_path, DAY) == first
    assert model.asked == []


def test_what_cannot_be_read_is_asked_again_and_then_named(rows, tmp_path):
    bad = rows[2].key
    model = Drafter(lambda ask: "I would rather not." if ask.key == bad else good(ask))
    asked = ask_model(rows, model, tmp_path, DAY)
    assert len(asked.answers) == len(rows) - 1
    assert [ask.key for ask in model.asked].count(bad) == ATTEMPTS
    assert len(asked.failed) == 1
    assert asked.failed[0].startswith(f"row 3, {rows[2].name}: the reply: not JSON")


def test_a_final_refusal_is_asked_once(rows, tmp_path):
    bad = rows[0].key

    def write(ask):
        return Reply(ask.key, "", "m", problem="the prompt is too long", final=True) if ask.key == bad else good(ask)

    model = Drafter(write)
    asked = ask_model(rows, model, tmp_path, DAY)
    assert [ask.key for ask in model.asked].count(bad) == 1
    assert asked.failed == [f"row 1, {rows[0].name}: the prompt is too long"]


def test_what_ends_a_session_is_raised_and_what_came_before_is_kept(rows, tmp_path):
    model = Drafter(lambda ask: BackendError("out of money") if ask.key == rows[5].key else good(ask))
    with pytest.raises(BackendError, match="out of money"):
        ask_model(rows, model, tmp_path, DAY)
    again = Drafter(good)
    assert len(ask_model(rows, again, tmp_path, DAY).answers) == len(rows)
    assert [ask.key for ask in again.asked] == [row.key for row in rows[5:]]


def test_a_model_that_gives_up_after_every_row_was_asked_keeps_what_it_gave(rows, tmp_path):
    bad, seen = rows[-1].key, []

    def write(ask):
        if ask.key != bad:
            return good(ask)
        seen.append(ask)
        return "prose" if len(seen) == 1 else BackendError("several in a row came to nothing")

    asked = ask_model(rows, Drafter(write), tmp_path, DAY)
    assert len(asked.answers) == len(rows) - 1
    assert len(asked.failed) == 1


def test_replies_to_strangers_are_passed_over(rows, tmp_path):
    class Stray(Drafter):
        def replies(self, asks):
            yield Reply("f" * 64, good(asks[0]), self.model)
            yield from super().replies(asks)

    assert len(ask_model(rows, Stray(good), tmp_path, DAY).answers) == len(rows)


def answer_of(user):
    kind = user.rsplit("Write one query of the kind ", 1)[1].rstrip(".")
    fence = user.split("<document-")[1][:6]
    return {"kind": kind, "query": f'zeppelin "moorings in fog" H.R. {int(fence, 16)}', "note": "n"}


def opened(server, folder, monkeypatch):
    from runner.judge.models.api import open_model

    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-drafting-0123456789")
    return open_model(JudgeSpec(api="anthropic", model="claude-sonnet-4-6"), "messages", server.url, folder, 5.0)


def test_a_service_with_faults_drafts_what_one_without_does(rows, tmp_path, monkeypatch):
    found = []
    for name, faults in (
        ("calm", []),
        ("stormy", [rate_limited(0), None, overloaded(), prose, None, not_json(), refusal, cut_off]),
    ):
        server = AnthropicServer(grade=answer_of)
        server.faults = list(faults)
        with served(server), opened(server, tmp_path / name, monkeypatch) as model:
            found.append(ask_model(rows, model, tmp_path / name / "reading", DAY))
    assert found[0].answers == found[1].answers
    assert len(found[0].answers) == len(rows)
    text = "".join(path.read_text() for path in tmp_path.rglob("*.json*"))
    assert "sk-ant-drafting" not in text
    spent = [json.loads(path.read_text()) for path in (tmp_path / "calm" / "spend").glob("*.json")]
    assert [row["kind"] for row in spent] == ["judge"]
    assert spent[0]["usd"] > 0

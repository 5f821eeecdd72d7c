"""The evening that judges by itself, against the same judgments through files."""

import json
import shutil
from dataclasses import replace

import pytest

from runner.base.errors import BackendError, InputError
from runner.decide.decide import Choice
from runner.embed.backends import LocalBackend
from runner.embed.cost.ledger import BudgetError
from runner.embed.cost.prices import RemoteOptions
from runner.eval_set.batches import batch_files, read_batch
from runner.eval_set.labels import load_labels, scored
from runner.eval_set.version import load_results
from runner.evening.costs import Asked, costs
from runner.evening.evening import Evening
from runner.evening.status import describe
from runner.judge.answers import Importer
from runner.judge.models.api import JudgeOptions
from runner.judge.models.client import ANTHROPIC_KEY, JUDGE_KEY
from runner.judge.models.prompt import asks_of, instructions
from runner.retrieve.make_runs import CellRuns
from tests.support import anthropic_server as api
from tests.support.small_set import _answer, fake_encoders, make_version, write_corpus, write_plans, write_queries

FIRST, SECOND = "claude-sonnet-4-6", "claude-opus-4-6"
CHOICE = Choice("recommended", "", "a test")


def spoken(row):
    """What the judge says of a row, as a person's answer file has it."""
    said = _answer(row.model_dump())
    return {**said, "passages": [1] if said["grade"] else []}


def second_opinion(row):
    """One grade less than the first judge, where there is one."""
    said = spoken(row)
    return {**said, "grade": max(0, said["grade"] - 1)}


class Grader:
    """Answers the requests that judges of a version get; what is exported is read again where a request is new.

    A document that is shown in part leaves a doubt.
    """

    def __init__(self, version):
        self.version = version
        self.answers = {}

    def __call__(self, user):
        if user not in self.answers:
            system = instructions(self.version.judge_path)
            for path in (
                path for kind in ("batch", "fuller", "double") for path in batch_files(self.version.judging, kind)
            ):
                is_double = path.stem.startswith("double-")
                rows = read_batch(path)
                for row, ask in zip(rows, asks_of(rows, system, SECOND if is_double else FIRST), strict=True):
                    said = second_opinion(row) if is_double else spoken(row)
                    doubt = {"doubt": True} if row.left_out else {}
                    self.answers[ask.user] = {name: said[name] for name in ("passages", "reason", "grade")} | doubt
        return self.answers[user]


@pytest.fixture(name="corpus")
def _corpus(tmp_path):
    return write_corpus(tmp_path / "corpus")


def give(version, path, said, judge, model):
    answers = path.with_name(f"{path.stem}.answers.jsonl")
    answers.write_text("".join(json.dumps(said(row)) + "\n" for row in reversed(read_batch(path))))
    Importer(version).take_file(answers, judge=judge, model=model, judged_on="2026-01-31")


def hired(version, corpus, server, **more):
    options = JudgeOptions(url=server.url, **more)
    return Evening(version, corpus, CHOICE, backend=LocalBackend(fake_encoders), judge=options)


@pytest.fixture(name="opened")
def _opened(waiting_evening, tmp_path, monkeypatch):
    """A version with queries and nothing else but warm caches, and the server that judges it."""
    monkeypatch.setenv("ANTHROPIC_API_KEY", api.KEY)
    version = make_version(tmp_path / "models")
    write_plans(version)  # they draw little: their figures are not what is judged here
    write_queries(version.folder)
    shutil.copytree(make_version(waiting_evening).cache, version.cache)
    server = api.AnthropicServer(grade=Grader(version))
    with api.served(server):
        yield version, server


def test_a_run_counts_the_judging_that_a_dry_run_counts_before_anything_is_embedded(opened, corpus):
    version, server = opened
    hired(version, corpus, server)._sample()
    asked = Asked(RemoteOptions(), judge=JudgeOptions(url=server.url))
    told = costs(version, version.plan(), asked).total
    assert min(told.embedding, told.judging, told.held) > 0
    evening, prepared = hired(version, corpus, server), []
    evening.backend.concurrent = True

    def prepare(work, judging):
        prepared.append(judging)
        raise BackendError("no further")

    evening.backend.prepare = prepare
    with pytest.raises(BackendError, match="no further"):
        evening.run()
    assert prepared == [replace(told, embedding=0.0)]
    assert not server.asked


@pytest.mark.parametrize("share", [0.99, 1.0])
def test_judging_starts_only_where_it_would_end_under_the_ceiling(opened, corpus, monkeypatch, share):
    version, server = opened
    hired(version, corpus, server)._sample()
    total = costs(version, version.plan(), Asked(judge=JudgeOptions(url=server.url))).total
    ceiling = share * total.usd + 0.001
    evening = hired(version, corpus, server, max_usd=ceiling)
    lines, _ = describe(version, asked=Asked(judge=evening.judge, max_usd=ceiling))
    (said,) = [line for line in lines if line.startswith("total: ")]
    assert said.endswith(f"so it would {'start' if share == 1 else 'be refused'}")
    monkeypatch.setattr(CellRuns, "chunk", lambda *_: (_ for _ in ()).throw(KeyError("chunking began")))
    with pytest.raises(KeyError if share == 1 else BudgetError) as caught:
        evening.run()
    assert share == 1 or said in str(caught.value)
    assert not server.asked


@pytest.mark.parametrize("how", ["messages", pytest.param("batches", marks=pytest.mark.slow)])
def test_models_judge_an_evening_in_one_command(opened, corpus, how):
    version, server = opened
    said = hired(version, corpus, server, how=how).run()
    assert "chosen is" in said
    found = load_labels(version.labels_path)
    assert {label.host for label in found} == {"127.0.0.1"}
    assert {label.judge for label in found} == {FIRST, SECOND}
    results = json.loads((version.record / "results.json").read_bytes())
    assert results["judging"]["read_twice"] == sum(label.judge == SECOND for label in found)
    assert results["judging"]["seconds"][0]["judge"] == SECOND
    receipt = json.loads((version.record / "receipt.json").read_bytes())
    assert receipt["spend"]["judging_usd"] > 0


@pytest.mark.parametrize(
    ("trouble", "is_sampled"),
    [
        *(("first missing", False), ("refused", False), ("refused", True), ("second missing", True)),
        *(("in clear", False), ("encoder", False), ("encoder", True)),
    ],
)
def test_a_key_that_is_missing_or_refused_is_noticed_before_anything_long(
    opened, corpus, monkeypatch, trouble, is_sampled
):
    version, server = opened
    evening = hired(version, corpus, server)
    if trouble == "first missing":
        monkeypatch.delenv(ANTHROPIC_KEY)
    elif trouble == "refused":
        server.key = "another"
    elif trouble == "second missing":
        server.key = api.KEY
        judges = evening.plan.judges
        second = judges.second.model_copy(update={"api": "openai"})
        evening.plan = evening.plan.model_copy(update={"judges": judges.model_copy(update={"second": second})})
    elif trouble == "in clear":
        evening.judge = JudgeOptions(url="http://localhost.example.org")
    else:
        shutil.rmtree(version.cache / "run")
        evening.backend.located = lambda name: (_ for _ in ()).throw(BackendError(f"refused for {name}"))
    if is_sampled:
        evening._sample()
    monkeypatch.setattr(CellRuns, "chunk", lambda *_: pytest.fail("chunking began"))
    with pytest.raises((InputError, BackendError)) as caught:
        evening.run()
    wanted = {"second missing": JUDGE_KEY, "encoder": "refused for"}.get(trouble, ANTHROPIC_KEY)
    assert wanted in str(caught.value)
    assert version.corpus_path.exists() == is_sampled
    assert not server.asked


def test_a_plan_without_judges_says_how_to_name_them(opened, corpus):
    version, server = opened
    evening = hired(version, corpus, server)
    evening.plan = version.plan().model_copy(update={"judges": None})
    with pytest.raises(InputError, match="names no judges"):
        evening.run()


@pytest.mark.slow
def test_a_model_reads_what_it_doubts_again_in_the_same_run_and_the_page_counts_it(opened, corpus):
    version, server = opened
    path = version.plan_path(rehearsal=False)
    path.write_text(path.read_text().replace("chars: 12000", "chars: 2000"))
    hired(version, corpus, server).run()
    counted = scored(load_labels(version.labels_path))
    doubted = {label.pair for label in load_labels(version.labels_path) if label.doubt}
    assert doubted
    assert {pair for pair, label in counted.items() if label.is_fuller} == doubted
    assert not any(label.doubt for label in counted.values()), "three times as much is all of these bills"
    facts = load_results(version).labels
    assert (facts.read_more, facts.doubts, facts.unjudged_pairs) == (len(doubted), 0, 0)

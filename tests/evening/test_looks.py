"""An evening with planned looks: what each stops with, what is kept of it, and what nobody can do to it."""

import json
import re
import shutil
from dataclasses import replace

import pytest
import yaml

from runner.base.errors import InputError, InputNeeded, IntegrityError
from runner.decide import look_end
from runner.decide.decide import Choice
from runner.embed.backends import LocalBackend
from runner.eval_set.batches import batch_files, read_batch
from runner.eval_set.labels import load_labels
from runner.eval_set.plan import plan_digest, read_plan
from runner.eval_set.preregistration import check_preregistration
from runner.eval_set.version import load_decision, load_results, numbered
from runner.evening.dry_run import describe
from runner.evening.evening import Evening
from runner.evening.exploration import Exploration
from runner.evening.next_version import open_next
from runner.judge.answers import Importer
from runner.score.looks import Look
from runner.tools.replay.record import recorded
from runner.tools.verify import verify_record
from tests.support.evening_process import CHOICE
from tests.support.small_set import answers, begin, fake_encoders, make_version, query_rows

LOOKS = [25, 29, 33]
KEEPING = Choice("minilm-l6-v2 x fixed_token_512_50", "the money is spent", "a person")


def prepared(folder, looks=LOOKS, n_queries=33):
    """The small set with more queries than it has, and plans that look at them in turn."""
    version = begin(folder)
    rows = query_rows()
    rows += [{**row, "id": f"r{row['id']}", "text": f"{row['text']} again"} for row in rows[: n_queries - len(rows)]]
    version.queries_path.write_text(yaml.safe_dump({"schema_version": 1, "queries": rows}, sort_keys=False))
    for rehearsal in (False, True):
        with version.plan_path(rehearsal=rehearsal).open("a") as stream:
            stream.write(f"looks: {looks}\n")
        path = version.plan_path(rehearsal=rehearsal)
        path.write_text(re.sub(r"(?m)^first: .*", 'first: ["bm25 x whole_doc"]', path.read_text()))
    return version


def evening(version, choice=CHOICE, **more):
    corpus = version.folder.parents[2] / "corpus"
    return Evening(version, corpus, choice, backend=LocalBackend(fake_encoders), **more)


def judged(version):
    for path in answers(version):
        Importer(version).take_file(path, judge="words", model="", judged_on="2026-01-31")


def exported(version):
    return {row.query_id for path in batch_files(version.judging) for row in read_batch(path)}


def undecided(version):
    lines, is_decided = describe(version)
    assert not is_decided
    return lines[-1]


def without_end(patch):
    """No look but the last one ends the version: the small set's figures are not what is looked at."""
    ended = look_end._ended

    def never(inputs, said, look):
        return ended(inputs, said, look) if look.is_last else "next look"

    patch.setattr(look_end, "_ended", never)


@pytest.fixture(name="at_second", scope="session")
def _at_second(tmp_path_factory):
    """A version whose first look is over and whose second one waits for its judges; to be copied, not changed."""
    folder = tmp_path_factory.mktemp("at-second")
    version = prepared(folder)
    with pytest.MonkeyPatch.context() as patch:
        without_end(patch)
        with pytest.raises(InputNeeded):
            evening(version).run()
        judged(version)
        with pytest.raises(InputNeeded):
            evening(version).run()
    return folder


@pytest.fixture(name="second")
def _second(at_second, tmp_path, monkeypatch):
    without_end(monkeypatch)
    shutil.copytree(at_second, tmp_path, dirs_exist_ok=True)
    return make_version(tmp_path)


@pytest.mark.slow
def test_every_look_is_judged_scored_and_kept_in_its_turn_until_the_last_one_is_locked(second):
    version = second
    ids = [row["id"] for row in yaml.safe_load(version.queries_path.read_text())["queries"]]
    first = load_results(version)
    assert (first.look.number, first.look.of, first.look.ended) == (1, 3, "next look")
    assert [query.id for query in first.queries] == ids[:25]
    assert all(len(row.scores["ndcg@10"].per_query) == 25 for row in first.cells)
    assert exported(version) == set(ids[:29])
    assert undecided(version).startswith("undecided: look 2 of 3")
    kept = (version.record / "looks" / "1.json").read_bytes()
    assert verify_record(version, deep=True)[-1] == "demo v1: 1 of 3 looks are over, made anew byte for byte"

    judged(version)
    assert undecided(version) == "undecided: look 2 of 3: everything is there; `run` scores it"
    with pytest.raises(InputNeeded, match="look 3 of 3: queries 30 to 33 of 33"):
        evening(version).run()
    judged(version)
    said = evening(version).run()
    assert "chosen is" in said
    last = load_results(version)
    assert (last.look.number, last.look.ended, len(last.look.kept), len(last.queries)) == (3, "confirmed", 2, 33)
    assert (version.record / "looks" / "1.json").read_bytes() == kept
    locked = json.loads((version.record / "lock.json").read_bytes())["files"]
    assert {"looks/1.json", "looks/2.json"} <= set(locked)
    assert "made anew byte for byte" in " ".join(verify_record(version, deep=True))
    assert describe(version)[1]
    assert evening(version).run() == said


@pytest.mark.slow
def test_one_run_over_all_queries_makes_the_same_figures_as_the_last_look(second, tmp_path):
    """What looks change of results: their own field and the p that allows for them."""
    judged(second)
    with pytest.raises(InputNeeded):
        evening(second).run()
    judged(second)
    evening(second).run()
    once = prepared(tmp_path / "once")
    for rehearsal in (False, True):
        path = once.plan_path(rehearsal=rehearsal)
        path.write_text(path.read_text().replace(f"looks: {LOOKS}\n", ""))
    with pytest.raises(InputNeeded):
        evening(once).run()
    once.labels_path.write_bytes(second.labels_path.read_bytes())
    evening(once).run()
    with_looks, without = load_results(second), load_results(once)
    assert "look" not in without.model_dump()
    assert without.labels == with_looks.labels
    for one, other in zip(with_looks.cells, without.cells, strict=True):
        assert (one.scores, one.differences, one.gate) == (other.scores, other.differences, other.gate)
        if one.test is not None:
            assert one.test.interval == other.test.interval
            assert one.test.e_value == other.test.e_value
            assert one.test.p_gain == pytest.approx(Look.of_plan(LOOKS, 3, 0.05).adjusted(other.test.p_gain), abs=2e-9)


@pytest.mark.slow
def test_a_person_may_end_the_looks_with_a_choice_and_the_lock_closes_what_was_seen(second):
    decision = evening(second, KEEPING).run()
    assert KEEPING.cell in decision
    assert load_results(second).look.number == 1
    assert (load_decision(second).decided_by, load_decision(second).reason) == (KEEPING.by, KEEPING.reason)
    assert "made anew byte for byte" in " ".join(verify_record(second, deep=True))


@pytest.mark.slow
def test_a_choice_waits_for_a_look_that_is_judged_already(second):
    judged(second)
    evening(second, KEEPING).run()
    assert load_results(second).look.number == 2


@pytest.mark.slow
def test_labels_of_a_later_look_are_kept_and_not_used_before_it(second):
    """Another version's labels, or an eager judge's, come early; a look scores its own queries alone."""
    label = load_labels(second.labels_path)[0]
    early = label.model_copy(update={"query_id": "rq08", "batch": "", "grade": 3})
    with second.labels_path.open("a") as stream:
        stream.write(json.dumps(early.model_dump()) + "\n")
    judged(second)
    with pytest.raises(InputNeeded, match="look 3 of 3"):
        evening(second).run()
    results = load_results(second)
    assert results.look.number == 2
    asked = {query.id for query in results.queries}
    labels = load_labels(second.labels_path)
    assert "rq08" not in asked
    assert results.labels.lines == len(labels)
    assert results.labels.pairs == len({(row.query_id, row.doc_id) for row in labels if row.query_id in asked})


def edited(path, **fields):
    value = json.loads(path.read_text())
    path.write_text(json.dumps({**value, **fields}))


TAMPERED = {
    "looks moved in the plan": lambda v: v.plan_path(rehearsal=False).write_text(
        v.plan_path(rehearsal=False).read_text().replace(str(LOOKS), "[25, 33]")
    ),
    "looks taken out of the plan": lambda v: v.plan_path(rehearsal=False).write_text(
        v.plan_path(rehearsal=False).read_text().replace(f"looks: {LOOKS}\n", "")
    ),
    "kept look deleted": lambda v: (v.record / "looks" / "1.json").unlink(),
    "kept look altered": lambda v: edited(v.record / "looks" / "1.json", sentence="All is well."),
    "kept look damaged": lambda v: (v.record / "looks" / "1.json").write_text("{"),
    "look skipped": lambda v: (v.record / "looks" / "1.json").rename(v.record / "looks" / "2.json"),
    "look claimed": lambda v: shutil.copy(v.record / "looks" / "1.json", v.record / "looks" / "2.json"),
    "kept look exchanged with its results": lambda v: (
        edited(v.record / "looks" / "1.json", sentence="All is well."),
        v.results_path.unlink(),
    ),
    "a label left out": lambda v: v.labels_path.write_bytes(v.labels_path.read_bytes().split(b"\n", 1)[1]),
    "a cell added": lambda v: v.plan_path(rehearsal=False).write_text(
        v.plan_path(rehearsal=False).read_text().replace("cells:\n", 'cells:\n  - "bm25-plain x whole_doc"\n', 1)
    ),
}


@pytest.mark.parametrize("how", TAMPERED)
def test_a_look_cannot_be_moved_skipped_repeated_or_altered(second, how):
    judged(second)
    TAMPERED[how](second)
    for touch in (evening(second).run, lambda: verify_record(second, deep=True)):
        with pytest.raises(IntegrityError) as caught:
            touch()
        assert caught.value.exit_code == 4
    assert not (second.record / "lock.json").exists()


@pytest.mark.slow
def test_a_run_that_was_killed_between_a_kept_look_and_its_results_goes_on(second):
    before = second.results_path.read_bytes()
    second.results_path.unlink()
    with pytest.raises(InputNeeded, match="look 2 of 3"):
        evening(second).run()
    assert second.results_path.read_bytes() == before


def test_a_cell_explored_between_looks_is_scored_on_what_is_judged(second):
    explored = Exploration(second, backend=LocalBackend(fake_encoders), cells=["bm25-plain x whole_doc"])
    explored.run()
    assert len(explored.scored[0].queries) == 25
    assert explored.scored[0].look is None


@pytest.mark.slow
def test_a_rehearsal_holds_looks_of_its_own(second):
    rehearsal = replace(second, record=second.folder / "rehearsal", rehearsal=True)
    with pytest.raises(InputNeeded):
        evening(rehearsal).run()
    judged(second)
    with pytest.raises(InputNeeded, match="look"):
        evening(rehearsal).run()
    assert load_results(rehearsal).look.number >= 1
    assert (rehearsal.record / "looks" / "1.json").exists()
    assert load_results(second).look.number == 1


@pytest.mark.slow
def test_a_rehearsal_may_end_at_the_first_queries_and_leave_the_others_to_the_production_plan(tmp_path):
    version = prepared(tmp_path)
    path = version.plan_path(rehearsal=True)
    path.write_text(path.read_text().replace(str(LOOKS), "[25]"))
    rehearsal = replace(version, record=version.folder / "rehearsal", rehearsal=True)
    with pytest.raises(InputNeeded):
        evening(rehearsal).run()
    assert exported(version) == {row["id"] for row in query_rows()}
    runs = [path.read_text() for path in rehearsal.record.glob("runs/*.tsv")]
    asked = {line.split("\t")[0] for run in runs for line in run.splitlines()}
    assert asked == {"query_id", *(row["id"] for row in query_rows())}
    judged(version)
    evening(rehearsal).run()
    results = load_results(rehearsal)
    assert (results.look.number, results.look.of, len(results.queries)) == (1, 1, 25)
    assert "made anew byte for byte" in " ".join(verify_record(rehearsal, deep=True))


@pytest.mark.slow
def test_a_first_look_that_confirms_a_cell_is_locked_and_the_other_queries_need_no_judge(tmp_path):
    version = prepared(tmp_path)
    with pytest.raises(InputNeeded, match="look 1 of 3: queries 1 to 25 of 33"):
        evening(version).run()
    judged(version)
    said = evening(version).run()
    results = load_results(version)
    assert (results.look.ended, len(results.queries), results.outcome.tier) == ("confirmed", 25, "confirmed")
    assert results.outcome.recommended in said
    assert all(row.test.p_gain <= 0.05 for row in results.cells if row.confirmed)
    assert not (version.record / "looks").exists()
    replayed = recorded(version)
    assert list(replayed.run(results.plan.baseline).hits) == replayed.query_ids == [row.id for row in results.queries]
    open_next(version, today="2026-01-31")
    assert numbered(version, 2).plan().looks == LOOKS
    assert "made anew byte for byte" in " ".join(verify_record(version, deep=True))


@pytest.mark.parametrize("rehearsal", [False, True])
def test_looks_that_end_at_another_number_than_the_queries_are_refused_with_what_to_write(tmp_path, rehearsal):
    version = prepared(tmp_path)
    path = version.plan_path(rehearsal=rehearsal)
    path.write_text(path.read_text().replace(str(LOOKS), "[25, 40]"))
    with pytest.raises(InputError, match=r"\[25, 33\]") as caught:
        check_preregistration(version)
    assert str(path) in str(caught.value)
    path.write_text(path.read_text().replace("[25, 40]", "[25, 33]"))
    assert check_preregistration(version).production == plan_digest(read_plan(version.plan_path(rehearsal=False)))

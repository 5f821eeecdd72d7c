"""From a decided or frozen version to the next one: what is carried, what stays in force, what is set side by side."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from runner.base.canonical import file_sha256
from runner.base.errors import InputError, InputNeeded, IntegrityError
from runner.base.places import OWN_FILES
from runner.decide.compared import known_before, previous_version
from runner.decide.policy import HARD_ABOVE, adopt_baseline, bulk_gate
from runner.decide.roster import next_to_evaluate, sibling_result, standing, version_in_force
from runner.embed.backends import LocalBackend
from runner.eval_set.catalog import SOURCES
from runner.eval_set.history import abandoned, earlier, opened
from runner.eval_set.labels import append_labels, load_labels
from runner.eval_set.lock import verify_lock, verify_version
from runner.eval_set.plan import read_plan
from runner.eval_set.preregistration import preregister
from runner.eval_set.shapes.versions import JUDGE_PROMPT
from runner.eval_set.version import corpus_bytes, load_corpus, load_results, newest_version
from runner.evening.evening import Evening
from runner.evening.next_version import abandon, open_next
from runner.evening.status import RECORDED, describe
from runner.judge.carried_labels import NOTHING, carry_labels
from tests.support.evening_process import run
from tests.support.labels import label
from tests.support.small_set import fake_encoders, make_version, unscored, write_plans

NEW_CELL = "minilm-static-384 x speaker_turn_v1"
"""Brings pairs into the pool that no other cell did."""

TODAY = "2026-03-01"
FIRST = "claude-sonnet-4-6"
"""The model that the plan names as first judge."""


@pytest.fixture(name="decided", scope="module")
def _decided(tmp_path_factory):
    """A folder whose v1 is decided, with a pool that is not yet every pair."""
    folder = tmp_path_factory.mktemp("decided")
    version = make_version(folder)
    write_plans(version)
    edit(version.plan_path(rehearsal=False), "pool_depth: 30", "pool_depth: 10")
    run(folder)
    return folder


@pytest.fixture(name="second", scope="module")
def _second(decided, tmp_path_factory):
    """A folder whose v1 is decided and whose v2, with a cell more and one query in other words, is decided too."""
    folder = tmp_path_factory.mktemp("second")
    shutil.copytree(decided, folder, dirs_exist_ok=True)
    open_next(make_version(folder), today=TODAY)
    add_cell(make_version(folder))
    edit(make_version(folder).queries_path, "city bus at night every half hour", "a bus that runs at night")
    run(folder)
    return folder


@pytest.fixture(name="v2")
def _v2(second, tmp_path):
    """The decided v2 in a folder of its own, beside v1."""
    shutil.copytree(second, tmp_path, dirs_exist_ok=True)
    return make_version(tmp_path)


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")


def add_cell(version):
    """NEW_CELL at the end of the open version's cells, as a person adds it."""
    path = version.plan_path(rehearsal=False)
    edit(path, f'  - "{plan_of(version).cells[-1]}"\n', f'  - "{plan_of(version).cells[-1]}"\n  - "{NEW_CELL}"\n')


def frozen(version):
    """The version preregistered, with labels of two judges and of two rounds; none of it decided."""
    preregister(version)
    prompt = file_sha256(version.judge_path)
    made = [
        label("q01", "BILLS-117hr101ih", 3, judge="a", batch="batch-0001"),
        label("q01", "BILLS-117hr102ih", 0, judge="a", batch="batch-0001"),
        label("q02", "BILLS-117hr102ih", 2, judge="a", batch="batch-0002"),
        label("q01", "BILLS-117hr101ih", 2, judge="a", batch="batch-0002", round=2),
        label("q02", "BILLS-117hr102ih", 1, judge="b", batch="double-0001", model="m"),
    ]
    append_labels(version.labels_path, [one.model_copy(update={"prompt_sha256": prompt}) for one in made])
    return version


def follow(version, tmp_path, **named):
    """The next version, open."""
    open_next(version, today=TODAY, **named)
    return make_version(tmp_path)


def last_line(version):
    lines, recorded = describe(version)
    assert recorded == (lines[-1] == RECORDED)
    return lines[-1]


def plan_of(version):
    return read_plan(version.plan_path(rehearsal=False))


def replace_corpus(version, change):
    """The manifest with its rows as `change` makes them."""
    header, rows = load_corpus(version.corpus_path)
    changed = change(list(rows))
    version.corpus_path.write_bytes(corpus_bytes(header.model_copy(update={"n_documents": len(changed)}), changed))


def test_v2_begins_with_v1s_plans_prompt_documents_and_queries_and_its_own_number(v1, tmp_path):
    path = v1.plan_path(rehearsal=True)
    edit(path, "\nversion: 1", "\nversion: 1  # of the rehearsal")
    version = follow(v1, tmp_path)
    for kept in ("queries.yaml", "corpus.jsonl"):
        assert (version.folder / kept).read_bytes() == (v1.folder / kept).read_bytes()
    assert version.judge_path.read_bytes() == v1.judge_path.read_bytes()
    assert (version.work / "corpus.tar.zst").read_bytes() == (v1.work / "corpus.tar.zst").read_bytes()
    for rehearsal in (False, True):
        text = v1.plan_path(rehearsal=rehearsal).read_text().replace("\nversion: 1", "\nversion: 2")
        assert version.plan_path(rehearsal=rehearsal).read_text() == text
    known = opened(version)
    assert (known.previous, known.previous_root_sha256) == (1, verify_lock(v1.folder).root_sha256)
    assert sorted(path.name for path in version.folder.iterdir()) == [
        *("corpus.jsonl", "judge-v2.md", "opened.json", "plan.yaml", "queries.yaml", "rehearsal")
    ]


@pytest.mark.slow
def test_without_corpus_jsonl_the_open_version_draws_anew(v1, tmp_path):
    version = follow(v1, tmp_path)
    version.corpus_path.unlink()
    (tmp_path / "corpus" / "BILLS-117hr101ih.xml").unlink()
    content = version.queries_path.read_text()
    version.queries_path.write_text(content.replace("BILLS-117hr101ih", "BILLS-117hr102ih"))
    rows = yaml.safe_load(version.queries_path.read_text())
    with pytest.raises(InputNeeded, match="pairs to judge"):
        Evening(version, tmp_path / "corpus", backend=LocalBackend(fake_encoders)).run()
    assert len(load_corpus(version.corpus_path)[1]) == 15
    assert yaml.safe_load(version.queries_path.read_text()) == rows
    left = {one.doc_id for one in load_labels(v1.labels_path)} - {
        one.doc_id for one in load_labels(version.labels_path)
    }
    assert left == {"BILLS-117hr101ih"}


def test_an_archive_that_is_not_here_is_told_and_the_documents_are_asked_for(v1, tmp_path):
    (v1.work / "corpus.tar.zst").unlink()
    elsewhere = replace(v1, source=replace(v1.source, corpus=""))
    assert "archive is not here" in open_next(elsewhere, today=TODAY)
    version = make_version(tmp_path)
    edit(version.queries_path, "city bus", "bus")  # for runs that the cache does not have
    with pytest.raises(InputError, match="with --corpus-path"):
        Evening(replace(version, source=elsewhere.source), backend=LocalBackend(fake_encoders)).run()


def test_a_plan_that_the_catalog_has_moved_on_from_is_carried_and_its_faults_are_told(v1):
    moved = replace(v1, source=replace(v1.source, baseline="minilm-l6-v2 x recursive_v1"))
    assert "criterion 2: the production baseline of demo" in open_next(moved, today=TODAY)


def test_of_a_plan_the_version_line_alone_is_changed(version, tmp_path):
    path = version.plan_path(rehearsal=False)
    commented = path.read_text().replace("cells:\n", "cells:  # these\n  # first\n", 1)
    path.write_bytes(commented.replace("\n", "\r\n").encode())
    following = follow(frozen(version), tmp_path)
    text = path.read_bytes().replace(b"\nversion: 1", b"\nversion: 2")
    assert following.plan_path(rehearsal=False).read_bytes() == text


def test_nothing_is_opened_from_what_may_be_edited_or_from_nothing_or_from_a_collection(version, tmp_path):
    elsewhere = make_version(tmp_path / "none")
    collection, observed = (newest_version(name, tmp_path / name) for name in ("beir", "crs_reports"))
    for given, said in (
        (version, "not frozen yet, so no next one is needed: edit it in"),
        (elsewhere, "has not begun"),
        (collection, "compared and never frozen"),
        (observed, "v2 has not begun"),
    ):
        with pytest.raises(InputError, match=said):
            open_next(given, today=TODAY)


@pytest.mark.parametrize("is_frozen", [False, True])
def test_beside_a_decision_one_version_at_a_time_is_open(v1, tmp_path, is_frozen):
    open_next(v1, today=TODAY)
    if is_frozen:
        preregister(make_version(tmp_path))
    with pytest.raises(InputError, match=r"(?s)v2 stands open beside demo v1.*finish it.*version demo.*--abandon"):
        open_next(make_version(tmp_path), today=TODAY)
    with pytest.raises(InputError, match="v2 stands open beside"):
        open_next(v1, today=TODAY)  # of a process that looked before the other one had opened v2


def test_a_decision_without_its_lock_is_completed_first(v1):
    (v1.folder / "lock.json").unlink()
    with pytest.raises(InputError, match="decided and not locked yet"):
        open_next(v1, today=TODAY)


def test_a_frozen_version_is_opened_from_as_it_was_frozen(version):
    frozen(version)
    edit(version.queries_path, "city bus", "bus")
    with pytest.raises(IntegrityError, match=r"queries\.yaml changed.*restore that first"):
        open_next(version, today=TODAY)


@pytest.mark.parametrize("place", ["eval-sets/demo/v2/notes.txt", "eval-sets/demo/.work/demo/v2/judging/batch-0001"])
def test_files_where_the_next_version_goes_are_not_written_over(v1, tmp_path, place):
    (tmp_path / place).parent.mkdir(parents=True)
    (tmp_path / place).touch()
    with pytest.raises(InputError, match=r"though demo v2 is no version\. Move it away"):
        open_next(v1, today=TODAY)


class Died(BaseException):
    """What a kill is to the process that dies: nothing may catch it."""


def dies_at(patch, step):
    """The process dies just before it would put its file or folder number `step` in place."""
    left = [step]

    def dying(original):
        def place(self, target):
            left[0] -= 1
            if left[0] == 0:
                raise Died
            return original(self, target)

        return place

    for name in ("replace", "rename"):
        patch.setattr(Path, name, dying(getattr(Path, name)))


def test_dying_while_v2_is_opened_leaves_v1_in_force_and_the_next_attempt_whole(v1, tmp_path):
    for step in range(1, 50):
        with pytest.MonkeyPatch.context() as patch:
            dies_at(patch, step)
            try:
                open_next(v1, today=TODAY)
                break
            except Died:
                pass
        assert make_version(tmp_path).number == 1
        assert last_line(make_version(tmp_path)) == RECORDED
    assert step > 8
    version = make_version(tmp_path)
    assert plan_of(version).version == 2
    assert not list(version.folder.parent.glob(".tmp-*"))
    assert earlier(version).number == 1


def test_dying_before_the_labels_are_carried_costs_nothing(v1, tmp_path):
    version = follow(v1, tmp_path)
    with pytest.MonkeyPatch.context() as patch:
        dies_at(patch, 2)
        preregister(version)
        with pytest.raises(Died):
            carry_labels(version)
    assert not version.labels_path.exists()
    first = carry_labels(version)
    assert (first.carried, first.left) == (len(load_labels(v1.labels_path)), {})
    whole = version.labels_path.read_bytes()
    assert whole == v1.labels_path.read_bytes()
    assert carry_labels(version) == NOTHING
    assert version.labels_path.read_bytes() == whole


def test_labels_of_every_judge_and_round_are_carried_as_they_are(version, tmp_path):
    frozen(version)
    following = follow(version, tmp_path)
    assert carry_labels(following) == NOTHING, "not before it is preregistered"
    preregister(following)
    assert carry_labels(following).sentence == "5 of 5 labels of demo v1 carried"
    assert following.labels_path.read_bytes() == version.labels_path.read_bytes()
    assert opened(following).previous_root_sha256 is None


def other_words(version):
    """One query in other words and one document in another text."""
    edit(version.queries_path, "dredging of a harbor channel", "deepening of a harbor channel")
    replace_corpus(version, lambda rows: [rows[0].model_copy(update={"sha256": "0" * 64}), *rows[1:]])


def fewer(version):
    """One query and one document are gone."""
    edit(version.queries_path, "id: q01", "id: q99")
    replace_corpus(version, lambda rows: [row for row in rows if row.doc_id != "BILLS-117hr102ih"])


@pytest.mark.parametrize(
    ("change", "left"),
    [
        (other_words, {"whose document changed": 2, "whose query changed": 2}),
        (fewer, {"whose query is gone": 3, "whose document is gone": 2}),
        (lambda version: version.judge_path.write_text("Grade otherwise.\n"), {"whose judge prompt changed": 5}),
        (
            lambda version: edit(version.plan_path(rehearsal=False), FIRST, "another-model"),
            {"first graded by another model than the plan's": 5},
        ),
        (
            lambda version: edit(version.plan_path(rehearsal=False), "chars: 12000", "chars: 2000"),
            {"given on other passages than the plan's": 2},
        ),
    ],
)
def test_what_is_carried_and_why_the_rest_is_left_is_counted(version, tmp_path, change, left):
    frozen(version)
    labels = [row.model_copy(update={"model": FIRST}) for row in load_labels(version.labels_path)]
    version.labels_path.unlink()
    append_labels(version.labels_path, labels)
    following = follow(version, tmp_path)
    change(following)
    preregister(following)
    carried = carry_labels(following)
    assert (carried.left, carried.carried) == (left, 5 - sum(left.values()))
    kept = load_labels(following.labels_path) if carried.carried else []
    assert {row.doc_id for row in kept} <= {"BILLS-117hr102ih"}, "the other one is changed, or longer than is shown"
    assert len(kept) == carried.carried
    assert following.labels_path.exists() == bool(carried.carried)


def test_nothing_is_carried_from_a_v1_that_is_not_what_v2_was_opened_from(v1, tmp_path):
    version = follow(v1, tmp_path)
    preregister(version)
    edit(v1.labels_path, '"grade": 0', '"grade": 3')
    with pytest.raises(IntegrityError, match=r"labels\.jsonl: changed"):
        carry_labels(version)
    (v1.folder / "lock.json").unlink()
    with pytest.raises(IntegrityError, match=r"is not locked any more\. Restore it"):
        carry_labels(version)


def test_a_version_that_names_a_predecessor_that_is_gone_is_not_scored_in_silence(v1, tmp_path):
    version = follow(v1, tmp_path)
    shutil.rmtree(v1.folder)
    with pytest.raises(IntegrityError, match=r"opened from v1, and .* is no version"):
        earlier(version)


def test_while_v2_is_open_v1s_decision_is_in_force_everywhere(v1, tmp_path):
    version = follow(v1, tmp_path)
    lines, recorded = describe(version)
    assert recorded
    assert lines[0] == "demo v2"
    assert lines[-3] == "demo v2 is open: 8 of 8 cells to embed and search"
    assert lines[-2].startswith("in force: demo v1: chosen is ")
    assert lines[-1] == "decision recorded"
    assert not any("undecided" in line for line in lines)

    found = standing(version)
    assert (found.version.number, found.state, found.beside) == (1, "decided", "v2 is open")
    assert found.live == found.decision.chosen.cell
    assert next_to_evaluate([replace(found, source=replace(found.source, policy="evaluate"))]) is None
    assert bulk_gate(found, HARD_ABOVE + 1).startswith("open: demo v1: chosen is ")
    assert version_in_force(version) == v1
    sibling = sibling_result(replace(SOURCES["public_laws"], reuses="demo"), lambda name: version)
    assert sibling.startswith("demo v1: chosen is ")


def test_once_v2_is_locked_it_is_what_determiners_see(v2):
    lines, recorded = describe(v2)
    assert recorded
    assert lines[-2].startswith("demo v2: chosen is ")
    assert not any("in force" in line for line in lines)
    found = standing(v2)
    assert (found.version.number, found.decision.version, found.beside) == (2, 2, "")
    (v2.folder / "lock.json").unlink()
    lines, recorded = describe(v2)
    assert recorded
    assert "demo v2 is open: what was chosen is not locked yet; `run` locks it" in lines
    assert lines[-2].startswith("in force: demo v1")


@pytest.mark.parametrize(("is_frozen", "said"), [(False, "pool_depth: 1; at least 10"), (True, "froze demo v2")])
def test_a_slip_in_the_open_version_does_not_take_v1s_decision_away(v1, tmp_path, is_frozen, said):
    version = follow(v1, tmp_path)
    if is_frozen:
        preregister(version)
    edit(version.plan_path(rehearsal=False), "pool_depth: 10", "pool_depth: 1")
    lines, recorded = describe(version)
    assert recorded
    assert any(said in line for line in lines)
    assert lines[-1] == RECORDED


def test_a_v1_that_was_edited_while_v2_is_open_is_an_integrity_error(v1, tmp_path):
    open_next(v1, today=TODAY)
    edit(v1.folder / "decision.json", '"decided_by": "test"', '"decided_by": "me"')
    for look in (describe, standing, version_in_force):
        with pytest.raises(IntegrityError, match=r"decision\.json: changed"):
            look(make_version(tmp_path))


def test_a_version_that_was_given_up_is_passed_over_and_its_number_is_not_used_again(v1, tmp_path):
    open_next(v1, today=TODAY)
    said = abandon(make_version(tmp_path), reason="too few queries", by="A. Person", today=TODAY)
    assert said.startswith("demo v2 is given up by A. Person: too few queries. demo v1 stays in force.")
    version = make_version(tmp_path)
    assert version == v1
    lines, recorded = describe(version)
    assert recorded
    assert f"v2 abandoned on {TODAY}: {version.folder.with_name('v2') / 'abandoned.json'}" in lines
    assert standing(version).beside == "v2 abandoned"
    assert "demo v3 is open, from demo v1" in open_next(version, today=TODAY)
    third = make_version(tmp_path)
    assert (third.number, earlier(third).number, plan_of(third).version) == (3, 1, 3)
    assert standing(third).beside == "v2 abandoned, v3 is open"


def test_the_only_version_given_up_leaves_a_new_one_to_begin_or_to_open_from_it(version, tmp_path):
    abandon(frozen(version), reason="the judge drifted", by="A. Person", today=TODAY)
    following = make_version(tmp_path)
    assert following.number == 2
    assert last_line(following) == "undecided: documents to sample"
    assert not any("drifted" in line for line in describe(following)[0])
    assert standing(following).beside == "v1 abandoned"
    assert "demo v2 is open, from demo v1: 8 cells, 16 documents, 25 queries." in open_next(following, today=TODAY)
    assert abandoned(earlier(make_version(tmp_path))).reason == "the judge drifted"


def test_what_is_decided_or_not_begun_or_given_up_already_is_not_given_up(v1, tmp_path):
    with pytest.raises(InputError, match="a decision is final"):
        abandon(v1, reason="r", by="b", today=TODAY)
    with pytest.raises(InputError, match="nothing to give up"):
        abandon(make_version(tmp_path / "empty"), reason="r", by="b", today=TODAY)
    version = follow(v1, tmp_path)
    with pytest.raises(InputError, match="--reason TEXT and --by NAME are needed"):
        abandon(version, reason=" ", by="b", today=TODAY)
    abandon(version, reason="r", by="b", today=TODAY)
    with pytest.raises(InputError, match="given up already"):
        abandon(version, reason="r", by="b", today=TODAY)


def test_a_file_that_says_given_up_beside_a_decision_opens_and_hides_nothing(v1, tmp_path):
    open_next(v1, today=TODAY)
    abandon(make_version(tmp_path), reason="r", by="b", today=TODAY)
    shutil.copyfile(v1.folder.with_name("v2") / "abandoned.json", v1.folder / "abandoned.json")
    version = make_version(tmp_path)
    assert version.number == 1
    with pytest.raises(IntegrityError, match=r"decided and abandoned\.json says"):
        verify_version(version)


def test_after_a_decision_by_policy_the_next_version_begins_from_the_catalog(tmp_path):
    version = newest_version("gao_reports", tmp_path)
    adopt_baseline(version, "A. Person", "", today=TODAY)
    said = open_next(newest_version("gao_reports", tmp_path), today=TODAY)
    assert said.startswith("gao_reports v2 is open, from gao_reports v1: 10 cells.")
    following = newest_version("gao_reports", tmp_path)
    assert (following.number, following.plan().version) == (2, 2)
    assert following.judge_path.read_bytes() == (OWN_FILES / "templates" / "judge.md").read_bytes()
    found = standing(following)
    assert (found.state, found.beside) == ("baseline by policy", "v2 is open")
    lines, recorded = describe(following)
    assert recorded
    assert "gao_reports v2 is open: documents to sample" in lines


def test_v2_shows_what_became_of_v1s_queries_documents_labels_and_cells(v1, v2):
    found = load_results(v2).previous
    assert (found.version, found.tier) == (1, "candidate")
    assert found.results_sha256 == file_sha256(v1.folder / "results.json")
    assert found.queries.model_dump() == {"common": 24, "changed": 1, "new": 0, "gone": 0}
    assert found.documents.model_dump() == {"common": 16, "changed": 0, "new": 0, "gone": 0}
    n_kept = sum(one.query_id != "q03" for one in load_labels(v1.labels_path))
    assert found.labels_carried == n_kept
    assert found.changed == []
    assert [cell for cell, row in found.cells.items() if not row.before] == [NEW_CELL]
    assert found.cells.keys() == {row.cell for row in load_results(v2).cells}


def test_movement_is_paired_over_the_queries_that_both_versions_ask_in_the_same_words(v1, v2):
    old, new = load_results(v1), load_results(v2)
    place = [query.id for query in new.queries].index("q03")
    for cell, row in new.previous.cells.items():
        if cell == NEW_CELL:
            assert (row.before, row.difference, row.changed) == ({}, {}, [])
            continue
        then, now = (next(each for each in made.cells if each.cell == cell) for made in (old, new))
        for measure, movement in row.difference.items():
            assert row.before[measure] == then.scores[measure].mean
            pairs = zip(then.scores[measure].per_query, now.scores[measure].per_query, strict=True)
            moved = [after - before for at, (before, after) in enumerate(pairs) if at != place]
            assert movement.mean == pytest.approx(sum(moved) / 24e9, abs=1e-12)
            assert movement.wins == sum(one > 0 for one in moved)
            assert movement.wins + movement.ties + movement.losses == 24


def test_what_v1_tested_and_did_not_confirm_is_a_candidate_at_most_on_a_query_that_it_asked(v1, v2):
    """Else a cell could be given more of the error once its figures are known."""
    before, queries = load_results(v1), load_results(v2).queries
    tested = {row.cell for row in before.cells if row.test and row.test.p_gain is not None and not row.confirmed}
    assert tested
    assert known_before(v2, queries).keys() == tested
    assert known_before(v2, [query.model_copy(update={"text": query.text + "?"}) for query in queries]) == {}
    assert known_before(v1, before.queries) == {}
    abandoned_too = replace(v2, number=3, folder=v2.folder.with_name("v3"))
    assert known_before(abandoned_too, queries).keys() == tested | {NEW_CELL}


def test_over_other_documents_or_by_another_prompt_no_cell_is_comparable(v1, v2):
    whole = load_results(v2)
    (v2.folder / "lock.json").unlink()
    v2.judge_path.write_text("Grade otherwise.\n")
    otherwise = whole.model_copy(update={"digests": whole.digests | {v2.judge_path.name: file_sha256(v2.judge_path)}})
    found = previous_version(v2, otherwise)
    assert found.changed == [JUDGE_PROMPT]
    replace_corpus(v2, lambda rows: rows[:-1])
    found = previous_version(v2, otherwise)
    assert found.documents.gone == 1
    assert not any(row.difference for row in found.cells.values())


def test_recall_by_another_relevant_grade_is_not_set_off_against_the_old_one(v1, v2):
    whole = load_results(v2)
    strict = whole.model_copy(update={"plan": whole.plan.model_copy(update={"relevant_grade": 3})})
    found = previous_version(v2, strict)
    assert found.changed == ["relevant_grade"]
    for row in found.cells.values():
        assert list(row.difference) == (["ndcg@10"] if row.before else [])


def test_a_version_opened_from_an_undecided_one_tells_what_was_kept_and_no_scores(v1, second, tmp_path):
    scored = load_results(make_version(second))
    open_next(unscored(v1), today=TODAY)
    found = previous_version(make_version(tmp_path), scored)
    assert (found.chosen, found.cells, found.queries.common) == ("", {}, 25)

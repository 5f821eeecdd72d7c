"""A doubt about what is not shown: a fuller reading by the same judge decides, and only then the pair counts."""

import pytest

from runner.base.errors import InputError
from runner.eval_set.batches import FULLER, all_rows, batch_files, read_batch
from runner.eval_set.corpus import corpus_documents
from runner.eval_set.labels import load_labels, scored
from runner.judge.prep_labels import export_missing, judging_step, left_to_judge, waiting_files
from runner.judge.second_reading import export_doubles
from runner.retrieve.pool import unjudged
from tests.support.small_judging import answer, everything, export, give, show_part, show_whole

FIRST, OTHER = ("q01", "BILLS-117hr101ih"), ("q02", "BILLS-117hr102ih")


@pytest.fixture(name="doubted")
def _doubted(version):
    """A version with two pairs shown in part and judged, the first of them in doubt, and its fuller batch."""
    export(version, [FIRST, OTHER], show=show_part)
    give(version, answer(*FIRST, 0, doubt=True), answer(*OTHER, 1), judge="first")
    (path,) = exported(version)
    return version, path


def exported(version, show=show_part):
    documents = {document.doc_id: document for document in corpus_documents(version, None)}
    missing = unjudged([FIRST, OTHER], load_labels(version.labels_path))
    return export_missing(version, missing, documents, show)


def fuller(version, **fields):
    return give(version, answer(*FIRST, **fields), name="fuller-0001.jsonl", judge="first")


def test_a_pair_in_doubt_waits_in_a_batch_of_its_own_that_shows_more(doubted):
    version, path = doubted
    labels = load_labels(version.labels_path)
    assert path.name == "fuller-0001.jsonl"
    assert scored(labels).keys() == {OTHER}
    assert unjudged([FIRST, OTHER], labels) == [FIRST]
    (row,) = read_batch(path)
    assert waiting_files(version, [FIRST]) == {path: row}
    assert exported(version) == [path]
    (before,) = [one for one in read_batch(batch_files(version.judging)[0]) if one.pair == FIRST]
    assert (row.pair, row.n_chars - row.left_out) == (FIRST, FULLER * (before.n_chars - before.left_out))
    assert row.shown_by != before.shown_by


def test_the_stop_of_a_person_names_the_fuller_batch_and_how_many_pairs_are_in_doubt(doubted):
    version, _ = doubted
    step = judging_step(version, 2, [FIRST], waiting_files(version, [FIRST]), "run")
    assert "1 of the judged pairs left in doubt" in step.say
    assert "to judge" not in step.say
    assert "2 of 3 pairs to judge; 1 of" in left_to_judge(version, 3, [FIRST, ("q01", "x"), ("q02", "x")])
    assert "fuller-*.jsonl" in step.ways[0]
    assert "batch-*.jsonl" not in step.ways[0]
    assert '"batch": "fuller-0001"' in step.ways[1]


def test_the_fuller_reading_counts_and_a_doubt_that_stays_counts_with_its_grade(doubted):
    version, path = doubted
    assert fuller(version, grade=3, doubt=True).added == 1
    label = scored(load_labels(version.labels_path))[FIRST]
    assert (label.grade, label.doubt, label.is_fuller, label.round) == (3, True, True, 1)
    assert unjudged([FIRST, OTHER], load_labels(version.labels_path)) == []
    assert waiting_files(version, []) == {}
    assert exported(version) == []
    assert label.evidence_sha256 == read_batch(path)[0].evidence_sha256


def test_a_doubt_answered_twice_is_known_and_another_answer_to_it_is_refused(doubted):
    version, _ = doubted
    fuller(version, grade=2, doubt=True)
    content = version.labels_path.read_bytes()
    assert fuller(version, grade=2, doubt=True).known == 1
    for fields in ({"grade": 1, "doubt": True}, {"grade": 2}):
        with pytest.raises(InputError, match="have grade 2, in doubt by first already"):
            fuller(version, **fields)
    assert version.labels_path.read_bytes() == content


def test_a_fuller_reading_by_anybody_but_the_judge_in_doubt_is_refused(doubted):
    version, _ = doubted
    with pytest.raises(InputError, match=r"fuller-0001 shows more of what left first in doubt, and k answers"):
        give(version, answer(*FIRST), name="fuller-0001.jsonl", judge="k")


def test_a_doubt_where_the_whole_text_was_shown_is_refused(version):
    export(version, [FIRST], show=show_whole)
    for name, text in (
        ("a.jsonl", answer(*FIRST, doubt=True)),
        ("a.csv", f"query_id,doc_id,grade,doubt\n{FIRST[0]},{FIRST[1]},1,true"),
    ):
        with pytest.raises(InputError, match=r"batch-0001 shows the whole of BILLS-117hr101ih"):
            give(version, text, name=name)
    assert give(version, f"query_id,doc_id,grade,doubt\n{FIRST[0]},{FIRST[1]},1,false", name="a.csv").added == 1


def test_a_doubt_in_a_table_is_true_or_false_and_nothing_else(version):
    export(version, [FIRST], show=show_part)
    with pytest.raises(InputError, match="doubt: neither true nor false"):
        give(version, f"query_id,doc_id,grade,doubt\n{FIRST[0]},{FIRST[1]},1,maybe", name="a.csv")
    give(version, f"query_id,doc_id,grade,doubt\n{FIRST[0]},{FIRST[1]},1,true", name="a.csv")
    assert load_labels(version.labels_path)[0].doubt


def test_a_second_reader_sees_what_the_grade_that_counts_was_given_on(doubted):
    version, path = doubted
    fuller(version, grade=2)
    done = export_doubles(version, load_labels(version.labels_path), 1.0)
    seen = {row.pair: row.evidence_sha256 for file in done.paths for row in read_batch(file)}
    first = {row.pair: row.evidence_sha256 for row in read_batch(batch_files(version.judging)[0])}
    assert seen == {FIRST: read_batch(path)[0].evidence_sha256, OTHER: first[OTHER]}


def test_a_planted_repeat_of_a_pair_in_doubt_stays_a_repeat(version):
    pairs = everything(version)[:150]
    export(version, pairs, show=show_part)
    rows = list(all_rows(version.judging))
    repeated = next(row for row in rows if row.batch == "batch-0002" and row.pair in {one.pair for one in rows[:100]})
    give(version, answer(*repeated.pair, 1, doubt=True), name="batch-0001.jsonl")
    give(version, answer(*repeated.pair, 1), name="batch-0002.jsonl")
    assert unjudged([repeated.pair], load_labels(version.labels_path)) == [repeated.pair]
    export(version, [repeated.pair], "fuller", show_part)
    give(version, answer(*repeated.pair, 2), name="fuller-0001.jsonl")
    labels = load_labels(version.labels_path)
    assert [(label.batch, label.round) for label in labels] == [
        ("batch-0001", 1),
        ("batch-0002", 2),
        ("fuller-0001", 1),
    ]
    assert scored(labels)[repeated.pair].grade == 2


def test_a_killed_export_of_fuller_batches_goes_on_as_if_it_had_not_been(doubted):
    version, path = doubted
    content = path.read_bytes()
    path.unlink()
    assert exported(version) == [path]
    assert path.read_bytes() == content
    fuller(version, grade=1, doubt=True)
    path.unlink()
    export(version, [OTHER], "fuller", show_part)
    assert batch_files(version.judging, "fuller") == [path], "no label is lost with its file"
    assert scored(load_labels(version.labels_path))[FIRST].grade == 1

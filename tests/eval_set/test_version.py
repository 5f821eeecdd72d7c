import json
from functools import partial

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from runner.base.errors import InputError, IntegrityError
from runner.base.places import CACHE_VARIABLE, CHECKOUT
from runner.eval_set import version as eval_set
from runner.eval_set.catalog import SOURCES
from runner.eval_set.labels import append_labels, label_prefix, load_labels
from runner.eval_set.preregistration import preregister, registered_cells
from runner.eval_set.version import (
    alone,
    corpus_bytes,
    load_corpus,
    load_queries,
    newest_version,
    open_version,
    to_read,
)
from tests.support.labels import label
from tests.support.small_set import edit_plan, make_version, query_rows


def edit_queries(version, rows):
    version.queries_path.write_text(yaml.safe_dump({"schema_version": 1, "queries": rows}))


def test_the_newest_version_is_opened_and_a_first_one_where_there_is_none(tmp_path):
    workspace = (tmp_path / "set", tmp_path / "work", tmp_path / "cache")
    assert open_version(*workspace, SOURCES["demo"]).number == 1
    assert not list(tmp_path.iterdir())
    for name in ("v2", "v10", "v9-old", "version", "v"):
        (tmp_path / "set" / name).mkdir(parents=True)
        (tmp_path / "set" / name / "plan.yaml").touch()
    (tmp_path / "set" / "v11").write_text("a file")
    (tmp_path / "set" / "v12").mkdir()  # without a plan it is no version, and hides none
    version = open_version(*workspace, SOURCES["demo"])
    assert (version.number, version.folder, version.judge_path.name) == (10, tmp_path / "set" / "v10", "judge-v10.md")


def test_a_folder_of_versions_is_worked_on_beside_it_and_the_checkouts_own_in_the_checkout(tmp_path, monkeypatch):
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "cache"))
    elsewhere = newest_version("demo", tmp_path)
    assert (elsewhere.folder, elsewhere.work) == (tmp_path / "v1", tmp_path / ".work" / "demo" / "v1")
    assert elsewhere.cache == tmp_path / "cache"
    own = CHECKOUT / "eval-sets" / "demo"
    assert newest_version("demo", own) == newest_version("demo")
    assert newest_version("demo").work == CHECKOUT / ".work" / "demo" / "v1"
    for wrong in (own / "v1", own / "v1" / "plan.yaml"):
        with pytest.raises(InputError, match="is a version or a file; give the folder that holds v1/"):
            newest_version("demo", wrong)
    (tmp_path / "circle").symlink_to(tmp_path / "circle")
    for wrong in (tmp_path / ("a" * 300), tmp_path / "circle"):
        with pytest.raises(InputError, match="cannot be used"):
            newest_version("demo", wrong)


@pytest.fixture
def unpacked(tmp_path, monkeypatch):
    """A workplace of an installed wheel, without the demo; what comes with the wheel lies in `packaged`."""
    own = tmp_path / "packaged" / "eval-sets" / "demo" / "v1"
    (own / "rehearsal").mkdir(parents=True)
    for name in ("plan.yaml", "queries.yaml", "rehearsal/plan.yaml"):
        (own / name).write_text(name)
    for name, value in {
        "INSTALLED": True,
        "OWN_FILES": tmp_path / "packaged",
        "WORKPLACE": tmp_path / "here",
        "EVAL_SETS": tmp_path / "here" / "eval-sets",
    }.items():
        monkeypatch.setattr(eval_set, name, value)
    (tmp_path / "here").mkdir()
    return own


@pytest.mark.parametrize("rehearsal", [False, True])
def test_the_demo_of_a_wheel_is_read_where_it_lies_until_something_is_written(unpacked, tmp_path, rehearsal):
    version = newest_version("demo", rehearsal=rehearsal)
    read = to_read(version)
    assert (read.folder, read.flags, read.work) == (unpacked, "demo", version.work)
    assert read.record == (unpacked / "rehearsal" if rehearsal else unpacked)
    assert list((tmp_path / "here").iterdir()) == []
    with alone(version):
        assert version.folder == tmp_path / "here" / "eval-sets" / "demo" / "v1"
        assert version.queries_path.read_text() == "queries.yaml"
        version.queries_path.write_text("changed")
    with alone(version):
        assert version.queries_path.read_text() == "changed"
    assert to_read(version) == version
    assert (unpacked / "queries.yaml").read_text() == "queries.yaml"


def test_the_demo_of_a_wheel_can_be_written_wherever_the_wheel_lies(unpacked):
    """Of a package whose folders are read-only, its modes must not be copied with it."""
    packaged = unpacked.parents[2]
    paths = [packaged, *packaged.rglob("*")]
    for path in paths:
        path.chmod(0o555 if path.is_dir() else 0o444)
    version = newest_version("demo")
    for _ in range(2):
        with alone(version):
            copied = [version.folder.parent, *version.folder.parent.rglob("*")]
            assert [path for path in copied if not path.stat().st_mode & 0o200] == []
    for path in paths:
        path.chmod(0o755)


def test_a_rehearsal_shares_queries_corpus_and_labels_and_nothing_else(tmp_path):
    record, rehearsal = make_version(tmp_path), make_version(tmp_path, rehearsal=True)
    assert record.queries_path == rehearsal.queries_path
    assert record.corpus_path == rehearsal.corpus_path
    assert record.labels_path == rehearsal.labels_path
    assert rehearsal.record == record.record / "rehearsal"
    for path in ("run_path", "chunk_run_path", "cell_path"):
        assert getattr(rehearsal, path)("bm25 x whole_doc").is_relative_to(record.record / "rehearsal")
    assert (record.name, rehearsal.name) == ("demo v1", "demo v1 (rehearsal)")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"id": "q01"}, "the same id twice: 'q01'"),
        ({"text": query_rows()[0]["text"]}, "the same text twice: 'loans for growers"),
        ({"id": "q 2"}, "queries.1{name}: id: "),
        ({"id": 2}, "queries.1{name}: id: not text (found 2)"),
        ({"text": ""}, "queries.1{name}: text: "),
        ({"kind": ""}, "queries.1{name}: kind: "),
        ({"origin": "a guess"}, "queries.1{name}: origin: "),
        ({"grade": 3}, "queries.1{name}: grade: not a known field"),
    ],
)
def test_a_query_that_cannot_be_used_is_named_with_its_place(version, change, said):
    rows = query_rows()
    rows[1].update(change)
    edit_queries(version, rows)
    with pytest.raises(InputError) as caught:
        load_queries(version.queries_path)
    assert str(version.queries_path) in str(caught.value)
    name = f" ({rows[1]['id']!r})" if isinstance(rows[1]["id"], str) else ""
    assert said.format(name=name) in str(caught.value)


def test_the_manifest_reads_back_as_it_was_written(version):
    header, rows = load_corpus(version.corpus_path)
    assert (header.n_documents, header.n_read, header.source, header.quarantined) == (16, 16, "demo", [])
    assert corpus_bytes(header, reversed(rows)) == version.corpus_path.read_bytes()


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        (lambda lines: [], "is empty"),
        (lambda lines: lines[:-1], "16 documents expected"),
        (lambda lines: [*lines, lines[-1]], "16 documents expected"),
        (lambda lines: [lines[0], lines[2], lines[1], *lines[3:]], "out of order"),
        (lambda lines: [*lines[:3], lines[3][:40], *lines[4:]], "corpus.jsonl:4: not JSON"),
        (lambda lines: [lines[1], *lines[1:]], "corpus.jsonl:1: "),
        (lambda lines: [*lines[:2], lines[0], *lines[3:]], "corpus.jsonl:3: "),
    ],
)
def test_a_damaged_manifest_is_named(version, edit, said):
    lines = version.corpus_path.read_text().splitlines()
    version.corpus_path.write_text("".join(line + "\n" for line in edit(lines)))
    with pytest.raises(InputError) as caught:
        load_corpus(version.corpus_path)
    assert str(version.corpus_path) in str(caught.value)
    assert said in str(caught.value)


grades = st.tuples(st.sampled_from(["q1", "q2", "q3"]), st.sampled_from("abcdef"), st.integers(0, 3))


@given(st.lists(st.lists(grades, max_size=4), max_size=4))
def test_appending_labels_keeps_every_earlier_byte(tmp_path_factory, appends):
    path = tmp_path_factory.mktemp("labels") / "labels.jsonl"
    before, known = b"", {}
    for batch in appends:
        fresh = [label(*row) for row in batch]
        fresh = list({one.key: one for one in fresh if one.key not in known}.values())
        append_labels(path, fresh)
        assert path.read_bytes().startswith(before)
        before = path.read_bytes()
        known |= {one.key: one for one in fresh}
        assert load_labels(path) == tuple(known.values())
        assert label_prefix(path).lines == len(known)


def test_labels_cut_in_the_middle_of_a_line_are_not_read(tmp_path):
    path = tmp_path / "labels.jsonl"
    append_labels(path, [label()])
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(InputError, match="ends in the middle of a line"):
        load_labels(path)


def test_a_pair_may_be_labelled_by_two_judges_and_in_two_rounds_but_never_twice_by_one(tmp_path):
    path = tmp_path / "labels.jsonl"
    append_labels(path, [label(), label(judge="k"), label(round=2)])
    assert len(load_labels(path)) == 3
    append_labels(path, [label(grade=0)])
    with pytest.raises(InputError, match=r"labels\.jsonl:4: query q01 and d1 are labelled twice"):
        load_labels(path)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("grade", 4),
        ("grade", "2"),
        ("grade", True),
        ("judge", ""),
        ("round", 0),
        ("prompt_sha256", "ab"),
        ("judged_on", "yesterday"),
        ("spans", [[1]]),
        ("spans", [[-1, 4]]),
        ("mood", "good"),
    ],
)
def test_a_label_of_the_wrong_shape_is_named_with_file_and_line(tmp_path, field, value):
    path = tmp_path / "labels.jsonl"
    append_labels(path, [label()])
    row = {**label("q02").model_dump(), field: value}
    path.write_text(path.read_text() + json.dumps(row) + "\n")
    with pytest.raises(InputError, match=rf"labels\.jsonl:2: {field}"):
        load_labels(path)


def test_a_preregistration_is_written_once_and_stays_as_it_is(version):
    frozen = preregister(version)
    before = (version.preregistration_path.read_bytes(), version.preregistration_path.stat().st_mtime_ns)
    assert preregister(version) == frozen
    assert (version.preregistration_path.read_bytes(), version.preregistration_path.stat().st_mtime_ns) == before


@pytest.mark.parametrize("rehearsal", [False, True])
def test_a_plan_that_breaks_a_criterion_is_not_preregistered(version, rehearsal):
    edit_plan(version, rehearsal=rehearsal, pool_depth=3)
    with pytest.raises(InputError, match="pool_depth: 3"):
        preregister(version)
    assert not version.preregistration_path.exists()


def swap(name, old, new):
    """Exchanges bytes of a file of the version."""

    def change(version):
        path = getattr(version, name)
        path.write_bytes(path.read_bytes().replace(old, new))

    return change


def another_judge(version):
    judges = version.plan().judges.model_dump()
    edit_plan(version, judges={**judges, "first": {"api": "openai", "model": "qwen3-32b"}})


def another_cell(version):
    lost, taken = "minilm-static-384 x section_aware_bills_v1", "minilm-l6-v2 x recursive_v1"
    edit_plan(version, cells=[taken if cell == lost else cell for cell in version.plan().cells])


def without_rehearsal(version):
    version.plan_path(rehearsal=True).unlink()


OTHER_BASELINE = "minilm-static-384 x fixed_token_512_50"
CHANGES = {
    swap("queries_path", b"loans for", b"loan for"): "queries.yaml changed",
    swap("corpus_path", b'"n_read": 16', b'"n_read": 17'): "corpus.jsonl changed",
    swap("judge_path", b"\n", b" \n"): "judge-v1.md changed",
    partial(edit_plan, relevant_grade=3): "the rule or the judges of the production plan changed",
    another_judge: "the rule or the judges of the production plan changed",
    partial(edit_plan, rehearsal=True, relevant_grade=1): "the rule or the judges of the rehearsal plan changed",
    partial(edit_plan, rehearsal=True, baseline=OTHER_BASELINE): "the baseline of the rehearsal plan changed",
    another_cell: "the production plan lost minilm-static-384 x section_aware_bills_v1",
    without_rehearsal: "the rehearsal plan is gone",
}


@pytest.mark.parametrize("change", CHANGES, ids=CHANGES.values())
def test_what_a_preregistration_froze_cannot_change(version, change):
    preregister(version)
    before = version.preregistration_path.read_bytes()
    change(version)
    with pytest.raises(IntegrityError) as caught:
        preregister(version)
    assert CHANGES[change] in str(caught.value)
    assert "open the next version" in str(caught.value)
    assert sum(said in str(caught.value) for said in set(CHANGES.values())) == 1
    assert version.preregistration_path.read_bytes() == before


def test_a_cell_that_is_added_later_is_allowed_and_not_registered(version):
    frozen = preregister(version)
    extra = "bm25-okapi x whole_doc"
    edit_plan(version, cells=[*version.plan().cells, extra])
    assert preregister(version) == frozen
    assert extra not in registered_cells(frozen, rehearsal=False)
    assert registered_cells(frozen, rehearsal=False) == frozenset(version.plan().cells) - {extra}


def test_a_rehearsal_that_was_not_registered_has_no_tested_family(version):
    without_rehearsal(version)
    frozen = preregister(version)
    assert frozen.rehearsal is None
    assert registered_cells(frozen, rehearsal=True) == frozenset()


def test_of_many_wrong_queries_five_are_named_and_the_rest_are_counted(version):
    rows = [{"id": f"q{number:02}", "text": "words", "note": 3, "sort": number} for number in range(25)]
    edit_queries(version, [*rows, "a line"])
    with pytest.raises(InputError) as caught:
        load_queries(version.queries_path)
    head, *named, rest = str(caught.value).splitlines()
    assert head == f"{version.queries_path}:"
    assert [line.split("'")[1] for line in named] == ["q00", "q01", "q02", "q03", "q04"]
    assert all(f"{field}: " in named[0] for field in ("kind", "origin", "note", "sort"))
    assert rest == "  - and 21 more"

"""The tripwire: VaultMind's cases, the loopholes that it closes, runs as files, and the demo's committed snapshots."""

import json
import shutil
from fractions import Fraction
from functools import partial

import pytest
import yaml
from hypothesis import assume, given
from hypothesis import strategies as st

from runner.base.canonical import json_bytes, slug
from runner.base.errors import InputError
from runner.base.places import CHECKOUT
from runner.base.records import Hit, Run, Span, parse_cell
from runner.embed.backends import LocalBackend
from runner.eval_set.asked import asked, topic_of
from runner.eval_set.catalog import SOURCES
from runner.eval_set.lock import write_lock
from runner.eval_set.runs import run_bytes
from runner.eval_set.version import load_corpus, load_queries, open_version
from runner.retrieve.make_runs import CellRuns, Wanted
from runner.tools.tripwire import (
    GoldenQuery,
    QueryResult,
    Report,
    compare_to_snapshot,
    hit_at_k,
    load_golden,
    load_snapshot,
    rankings_report,
    reciprocal_rank,
)
from samplers.corpus.parse import read_corpus
from tests.conftest import called

EXAMPLE = CHECKOUT / "eval-sets" / "demo" / "tripwire"
GOLDEN = [
    GoldenQuery(name="q01", text="Who lends money after a frost?", expected=["d1"]),
    GoldenQuery(name="q02", text="buses at night", expected=["d2", "d3"]),
]


@pytest.fixture
def vectors(shared):
    return json.loads((shared / "vectors" / "parity.json").read_bytes())["vaultmind_baseline"]


@pytest.mark.shared
def test_measures_are_those_of_vaultmind(vectors):
    for case in vectors["hit_at_k"]:
        assert hit_at_k(case["results"], case["expected"], case["k"]) == case["out"]
    for case in vectors["reciprocal_rank"]:
        assert reciprocal_rank(case["results"], case["expected"]) == pytest.approx(case["out"], abs=1e-15)


def told(case):
    """A report of a parity case, which names neither texts nor documents; unchecked, since some hold no query."""
    queries = [
        QueryResult.model_construct(text=row["name"], expected=["d1"], result_ids=[], **row) for row in case["queries"]
    ]
    return Report.model_construct(
        k=case["k"], limit=10, queries=queries, hit_at_k=float(case["hit_at_k"]), mrr=float(case["mrr"])
    )


DELIBERATELY_ELSE = {
    "query deleted from current": "is in the snapshot alone",  # a worse query could be deleted to pass
    "query new in current": "is not in the snapshot",  # it would move the means and be held to nothing
    "duplicate snapshot names: last wins": "is twice in the snapshot",  # the first of the two would be held to nothing
    "NaN current passes": "cannot convert float NaN",  # NaN is below nothing
    "tolerance 1 hides everything": "compares nothing",  # no measure can fall by more
}
"""Cases that VaultMind lets pass; here they are errors, each for the reason beside it."""


@pytest.mark.shared
def test_comparisons_are_those_of_vaultmind_but_for_what_it_lets_pass(vectors):
    seen = set()
    for case in vectors["compare"]:
        current, snapshot = told(case["current"]), told(case["snapshot"])
        if case["case"] in DELIBERATELY_ELSE:
            seen.add(case["case"])
            assert case["out"] == {"ok": True, "regressions": []}
            with pytest.raises((InputError, ValueError), match=DELIBERATELY_ELSE[case["case"]]):
                compare_to_snapshot(current, snapshot, case["tolerance"])
        elif "error" in case["out"]:
            with pytest.raises(InputError) as caught:
                compare_to_snapshot(current, snapshot, case["tolerance"])
            assert str(caught.value).startswith(case["out"]["error"])
        else:
            diff = compare_to_snapshot(current, snapshot, case["tolerance"])
            assert {"ok": diff.ok, "regressions": diff.regressions} == case["out"], case["case"]
    assert seen == DELIBERATELY_ELSE.keys()


def report(*rows, k=5, limit=10):
    """A report of queries given as (name, results), each expecting "right"."""
    golden = [GoldenQuery(name=name, text=f"text of {name}", expected=["right"]) for name, _ in rows]
    return rankings_report(dict(rows), golden, k=k, limit=limit)


def at(rank):
    """Ten documents, with the right one at a rank, or without it for 0."""
    return ["right" if place == rank else f"wrong{place}" for place in range(1, 11)]


def ranked(ranks):
    """A report of queries that find the right document at these ranks."""
    return report(*((f"q{number}", at(rank)) for number, rank in enumerate(ranks)))


RANKS = st.lists(st.integers(0, 10), min_size=1, max_size=6)


@given(RANKS, st.data(), st.integers(0, 999).map(lambda n: n / 1000))
def test_it_fires_exactly_where_some_measure_fell_by_more_than_the_tolerance(ranks, data, tolerance):
    later = data.draw(st.lists(st.integers(0, 10), min_size=len(ranks), max_size=len(ranks)))

    def measures(row):
        hits = [Fraction(0 < rank <= 5) for rank in row]
        return [*zip(hits, (Fraction(1, rank) if rank else Fraction(0) for rank in row), strict=True)]

    then, now = measures(ranks), measures(later)
    limit = Fraction(str(tolerance))
    drops = [a - b for old, new in zip(then, now, strict=True) for a, b in zip(old, new, strict=True)]
    assume(all(abs(drop - limit) > Fraction(1, 10**6) or drop == limit for drop in drops))
    diff = compare_to_snapshot(ranked(later), ranked(ranks), tolerance)
    per_query = [text for text in diff.regressions if text.startswith("query ")]
    assert len(per_query) == sum(drop > limit for drop in drops)
    assert diff.ok == (not per_query)  # a mean never falls by more than its most fallen query
    assert {row["name"] for row in diff.fallen} == {f"q{i // 2}" for i, drop in enumerate(drops) if drop > limit}


@pytest.mark.parametrize("cents", range(2, 101))
def test_a_fall_of_exactly_the_tolerance_never_fires(cents):
    def means(value):
        return Report.model_construct(k=5, limit=10, queries=[], hit_at_k=value, mrr=value)

    assert compare_to_snapshot(means((cents - 2) / 100), means(cents / 100)).ok
    assert not compare_to_snapshot(means((cents - 2) / 100 - 1e-9), means(cents / 100)).ok


def edited(found, **changed):
    """A report whose first query is another one, with the same results."""
    first = found.queries[0].model_copy(update=changed)
    return found.model_copy(update={"queries": [first, *found.queries[1:]]})


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda found: report(("b", at(1))), 'query "a" is in the snapshot alone'),
        (lambda found: report(("a", at(1)), ("b", at(1)), ("c", at(1))), 'query "c" is not in the snapshot'),
        (lambda found: edited(found, name="z"), 'query "z" is not in the snapshot'),
        (lambda found: edited(found, text="easier"), 'query "a" had the text "text of a"'),
        (lambda found: edited(found, expected=["right", "wrong1"]), 'query "a" expected right'),
        (lambda found: edited(found, name="b"), 'query "b" is twice in the golden queries'),
        (lambda found: report(("a", at(1)), ("b", at(1)), limit=9), "limit 9 instead of 10"),
        (lambda found: report(("a", at(1)), ("b", at(1)), k=4), "k mismatch: snapshot k=5, current k=4"),
    ],
)
def test_what_cannot_be_compared_is_an_error_that_says_how_to_accept_it(change, said):
    snapshot = report(("a", at(2)), ("b", at(2)))
    with pytest.raises(InputError) as caught:
        compare_to_snapshot(change(snapshot), snapshot)
    assert said in str(caught.value)
    assert "run `tripwire update`" in str(caught.value)


def test_the_first_ids_of_a_ranking_count():
    ids = ["d9", "d3", *map(str, range(20)), "d1"]
    found = rankings_report({"q01": ids, "q02": ids}, GOLDEN, k=1, limit=10)
    assert [row.result_ids for row in found.queries] == [ids[:10]] * 2
    assert (found.hit_at_k, found.mrr) == (0.0, 0.25)


def write_golden(path, golden=GOLDEN):
    path.write_text(yaml.safe_dump([query.model_dump() for query in golden], allow_unicode=True))
    return path


ENTRY = "- {name: a, text: t, expected: [d]}\n"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "at least one query"),
        (ENTRY + "- text", "entry 2"),
        (ENTRY + "- {name: b, text: t}", "entry 2: expected"),
        (ENTRY + "- {name: b, text: t, expected: []}", "entry 2: expected"),
        (ENTRY + "- {name: b, text: t, expected: [1]}", "entry 2: expected.0"),
        (ENTRY + "- {name: ' ', text: t, expected: [d]}", "entry 2: name"),
        (ENTRY + '- {name: b, text: "\\ud800", expected: [d]}', "golden.yaml"),
        (ENTRY + "- {name: b, text: t, expected: [d], k: 3}", "entry 2: k"),
        (ENTRY + ENTRY, '"a" names two entries'),
        ("- {name: a, name: b", "is not YAML"),
        (None, "golden.yaml"),
    ],
)
def test_a_wrong_golden_file_is_an_input_error_that_names_file_and_entry(tmp_path, content, said):
    path = tmp_path / "golden.yaml"
    if content is not None:
        path.write_text(content)
    with pytest.raises(InputError) as caught:
        load_golden(path)
    assert str(path) in str(caught.value)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        (lambda s: s.update(hit_at_k=0.1), "was edited"),
        (lambda s: s["queries"][0].update(reciprocal_rank=0.1), "was edited"),
        (lambda s: s["queries"][0]["result_ids"].reverse(), "was edited"),
        (lambda s: s["queries"].append(s["queries"][0]), "was edited"),
        (lambda s: s.update(k=1), "was edited"),
        (lambda s: s["queries"][0].update(hit_at_k=True), "queries.0: hit_at_k"),
        (lambda s: s.update(queries=[]), "queries"),
        (lambda s: s.update(k=0), "k: "),
    ],
)
def test_a_snapshot_that_a_hand_edited_is_an_input_error(tmp_path, edit, said):
    told = json.loads(json_bytes(report(("a", at(2)), ("b", at(4))).model_dump()))
    edit(told)
    path = tmp_path / "snapshot.json"
    path.write_text(json.dumps(told))
    with pytest.raises(InputError) as caught:
        load_snapshot(path)
    assert str(path) in str(caught.value)
    assert said in str(caught.value)


RUN = Run(
    "bm25 x whole_doc",
    {
        "q01": (Hit("d1", 3.0, Span(0, 1)), Hit("d2", 2.0, Span(0, 1))),
        "q02": (Hit("d9", 2.0, Span(0, 1)), Hit("d3", 1.0, Span(0, 1))),
    },
)


call = partial(called, "tripwire")


@pytest.fixture(name="files")
def _files(tmp_path):
    """Golden queries, a run file outside of any version, and where a snapshot goes."""
    run = tmp_path / "run.tsv"
    run.write_bytes(run_bytes(RUN))
    return write_golden(tmp_path / "golden.yaml"), run, tmp_path / "snapshot.json"


def arguments(files, action="check", **more):
    golden, run, snapshot = files
    flags = {"--run": run, "--snapshot": snapshot} | {f"--{name}": value for name, value in more.items()}
    return [action, golden, *(part for flag in flags.items() for part in flag)]


def test_update_then_check_is_nothing_and_a_worse_run_fires(files, capsys):
    _, run, snapshot = files
    assert call(*arguments(files))[0] == 2
    assert not snapshot.exists()
    assert call(*arguments(files, "update")) == (0, "")
    before = snapshot.read_bytes(), snapshot.stat().st_mtime_ns
    assert call(*arguments(files)) == call(*arguments(files, "update")) == (0, "")
    run.write_bytes(run_bytes(Run(RUN.cell, RUN.hits | {"q01": RUN.hits["q01"][1:]})))
    capsys.readouterr()
    assert call(*arguments(files)) == (1, "")
    assert capsys.readouterr().out.splitlines()[-2:] == ["  q01 before: d1, d2", "  q01 after: d2"]
    assert (snapshot.read_bytes(), snapshot.stat().st_mtime_ns) == before
    assert call(*arguments(files), "--json") == (1, "")
    answer = json.loads(capsys.readouterr().out)
    assert answer["ok"] is False
    assert len(answer["regressions"]) == 4
    assert answer["fallen"] == [{"name": "q01", "before": ["d1", "d2"], "after": ["d2"]}]
    assert answer["report"]["mrr"] == 0.25


def test_update_takes_other_queries_and_another_limit(files):
    golden, run, snapshot = files
    call(*arguments(files, "update"))
    run.write_bytes(run_bytes(Run(RUN.cell, {"q01": RUN.hits["q01"][1:], "q03": RUN.hits["q02"]})))
    write_golden(golden, [GOLDEN[0], GoldenQuery(name="q03", text="new", expected=["d9"])])
    assert call(*arguments(files))[0] == 2
    assert call(*arguments(files, "update", limit=5)) == (0, "")
    assert [row.name for row in load_snapshot(snapshot).queries] == ["q01", "q03"]
    assert call(*arguments(files, limit=5)) == (0, "")


def test_update_overwrites_nothing_but_a_snapshot(files):
    snapshot = files[2]
    for content in ("{}", "text", '{"k": 5}'):
        snapshot.write_text(content)
        assert call(*arguments(files, "update"))[0] == 2
        assert snapshot.read_text() == content


def test_a_trec_run_is_read_as_well(files):
    _, run, snapshot = files
    assert call(*arguments(files, "update")) == (0, "")
    before = snapshot.read_bytes()
    run.write_text("q02 Q0 d3 2 1.0 tag\nq02 Q0 d9 1 2.0 tag\nq01 Q0 d2 2 0.5 tag\nq01 Q0 d1 1 0.75 tag\n")
    assert call(*arguments(files)) == (0, "")
    snapshot.unlink()
    call(*arguments(files, "update"))
    assert snapshot.read_bytes() == before


# A query without a line may never have been asked, so it is an error and not a score of 0.
LACKING = run_bytes(Run(RUN.cell, {"q01": RUN.hits["q01"]}))


@pytest.mark.parametrize("content", [b"", b"q01 Q0 d1 1 1.0 tag\n", b"text", LACKING])
def test_a_run_without_a_golden_query_or_without_form_is_an_input_error(files, content):
    files[1].write_bytes(content)
    code, said = call(*arguments(files, "update"))
    assert code == 2
    assert str(files[1]) in said


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"k": 0}, "1 <= k <= limit"),
        ({"k": 11}, "1 <= k <= limit"),
        ({"tolerance": "-0.01"}, "compares nothing"),
        ({"tolerance": "nan"}, "compares nothing"),
        ({"tolerance": "1"}, "compares nothing"),
        ({"run": "-"}, "not from standard input"),
        ({"run": "none.tsv"}, "none.tsv does not exist"),
    ],
)
def test_wrong_flags_are_exit_2(files, more, said):
    call(*arguments(files, "update"))
    code, heard = call(*arguments(files, **more))
    assert code == 2
    assert said in heard


def committed(cell):
    return EXAMPLE / f"{slug(cell)}.json"


def test_the_demos_bm25_finds_what_its_committed_snapshot_says(tmp_path, capsys):
    """Over a copy of the demo's committed version, whose runs are not committed: BM25 retrieves from its bills."""
    left_out = shutil.ignore_patterns("*.html", "results.json", "decision.json", "lock.json", "receipt.json")
    shutil.copytree(EXAMPLE.parent / "v1", tmp_path / "demo" / "v1", ignore=left_out)
    version = open_version(tmp_path / "demo", tmp_path / "work", tmp_path / "cache", SOURCES["demo"])
    sampled = {row.doc_id for row in load_corpus(version.corpus_path)[1]}
    documents = read_corpus(CHECKOUT / SOURCES["demo"].corpus, "bills").documents
    backend = LocalBackend(lambda name: pytest.fail(name))
    cell = "bm25 x whole_doc"
    CellRuns(version, lambda: [d for d in documents if d.doc_id in sampled], backend).make([Wanted(parse_cell(cell))])
    snapshot = tmp_path / "snapshot.json"
    shutil.copy(committed(cell), snapshot)
    files = EXAMPLE / "golden.yaml", version.run_path(cell), snapshot
    assert call(*arguments(files)) == (0, ""), capsys.readouterr().out
    # A snapshot below what is found today would let as much fall unseen.
    assert call(*arguments(files, "update")) == (0, "")
    assert snapshot.read_bytes() == committed(cell).read_bytes()


def test_the_demos_golden_queries_are_its_queries_and_its_documents_of_grade_3():
    version = open_version(EXAMPLE.parent, EXAMPLE, EXAMPLE, SOURCES["demo"])
    assert version.folder == EXAMPLE.parent / "v1"
    texts = {query.id: query.text for query in asked(load_queries(version.queries_path))}
    best = {}
    for line in version.labels_path.read_text().splitlines():
        label = json.loads(line)
        if label["grade"] == 3 and label["judge"] == "claude":
            best.setdefault(label["query_id"], set()).add(label["doc_id"])
    golden = load_golden(EXAMPLE / "golden.yaml")
    assert [query.text for query in golden] == [texts[query.name] for query in golden]
    assert [query.expected for query in golden] == [sorted(best[topic_of(query.name)]) for query in golden]


@pytest.mark.parametrize("cell", ["bm25 x whole_doc", "minilm-l6-v2 x fixed_token_512_50"])
def test_a_committed_snapshot_is_of_the_golden_queries(cell):
    snapshot = load_snapshot(committed(cell))
    golden = load_golden(EXAMPLE / "golden.yaml")
    same = rankings_report({row.name: row.result_ids for row in snapshot.queries}, golden)
    assert json_bytes(same.model_dump()) == json_bytes(snapshot.model_dump())


def test_a_changed_file_of_a_locked_version_is_exit_4(files, tmp_path):
    golden, run, snapshot = files
    for name in ("runs/run.tsv", "labels.jsonl"):
        path = tmp_path / "v1" / name
        path.parent.mkdir(exist_ok=True, parents=True)
        shutil.copy(run, path)
    write_lock(tmp_path / "v1")
    locked = golden, tmp_path / "v1" / "runs" / "run.tsv", snapshot
    assert call(*arguments(locked, "update")) == (0, "")
    (tmp_path / "v1" / "labels.jsonl").write_text("")
    code, said = call(*arguments(locked))
    assert code == 4
    assert "labels.jsonl: changed" in said

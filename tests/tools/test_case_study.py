"""Every broken predictor gets the verdict that the page says, and the page is what the study gives."""

import json
import re
import shutil
from contextlib import redirect_stdout
from copy import deepcopy
from dataclasses import replace
from functools import cache
from io import StringIO

import numpy as np
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from runner.base.canonical import file_sha256, json_bytes, slug
from runner.base.errors import BackendError, InputError, IntegrityError
from runner.base.places import CHECKOUT
from runner.base.records import Chunk, Hit, Query, Run, Span
from runner.base.terminal import ASCII
from runner.commands.tools import case_study
from runner.embed.backends import LocalBackend
from runner.embed.encoder import InProcessEncoder
from runner.embed.probe import probe
from runner.eval_set.catalog import SOURCES, EncoderSpec
from runner.eval_set.plan import default_plan_text
from runner.eval_set.shapes.plan import Plan
from runner.eval_set.version import newest_version
from runner.evening.external import ExternalEvaluation
from runner.gate.graded_gate import graded_gate
from runner.retrieve.bm25 import bm25_run
from runner.tools.case_study.case_study import Subject, hidden, neighbours_sharing, ranked, read_subject, study
from runner.tools.case_study.page import BLOCKS, check_page, check_study, study_lines, with_blocks, write_study
from runner.tools.case_study.zoo import ZOO, zoo_of
from runner.tools.case_study.zoo_lists import (
    nearest,
    nearly_constant_vectors,
    run_of,
    text_hash_vectors,
    token_hash_vectors,
)
from tests.support.small_set import fake_encoders, few_draws

PAGES = [CHECKOUT / "docs" / f"case-study-{name}.md" for name in ("scifact", "nfcorpus")]
TOPICS = 20
ENGINE = "bm25 x whole_doc"
DENSE = "minilm-l6-v2 x whole_doc"
HYBRID = "rrf(bm25,minilm-l6-v2) x whole_doc"
EMPTY = "".join(f"<!-- generated: {name} -->\n<!-- end of generated -->\n" for name in BLOCKS)
PLAN = Plan.model_validate(yaml.safe_load(few_draws(default_plan_text(SOURCES["beir"], rehearsal=False))))


@cache
def subject(*, paired=False, strata=False):
    """Twenty topics of two queries and four documents, queries of a topic far apart unless `paired`; and 120 others."""
    words = [[f"w{topic}x{n}" for n in range(4)] for topic in range(TOPICS)]
    texts = {f"x{number:03d}": f"common{number % 9} common{number % 7} rest{number}" for number in range(120)}
    qrels, queries = {}, []
    for topic, terms in enumerate(words):
        for rank in range(4):
            filler = " ".join(f"common{(topic + rank + n) % 9}" for n in range(6 + rank))
            texts[f"d{topic:02d}{rank}"] = f"{' '.join(terms[: 4 - rank])} {filler}"
    order = [divmod(place, 2) if paired else divmod(place, TOPICS)[::-1] for place in range(2 * TOPICS)]
    for number, (topic, half) in enumerate(order):
        asked = " ".join(words[topic][2 * half : 2 * half + 2])
        query = Query(
            f"q{number:02d}", f"common1 common2 {asked}", "topic", "harvested", stratum=f"s{topic % 2 * strata}"
        )
        queries.append(query)
        qrels[query.query_id] = {f"d{topic:02d}{rank}": 3 - rank for rank in range(3)}
    chunks = [Chunk(doc_id, 0, Span(0, len(text)), "", len(text.split())) for doc_id, text in texts.items()]
    asked = {query.query_id: query.text for query in queries}
    engines = {
        f"{variant} x whole_doc": bm25_run(f"{variant} x whole_doc", variant, asked, chunks, list(texts.values())).run
        for variant in ("bm25", "bm25-okapi")
    }
    lengths = {doc_id: len(text) for doc_id, text in texts.items()}
    digests, okapi = {"corpus": "ab" * 32}, "bm25-okapi x whole_doc"
    return Subject("twenty|topics", digests, PLAN, queries, qrels, texts, lengths, engines, {}, okapi)


@cache
def found(**kind):
    return study(subject(**kind))


def row(name, **kind):
    (only,) = [row for row in found(**kind)["systems"] if row["name"] == name]
    return only


@pytest.mark.parametrize("broken", ZOO, ids=lambda broken: broken.name)
def test_every_broken_predictor_gets_the_verdict_that_is_claimed_for_it(broken):
    # Here neighbouring queries ask for different things, so that "depends" is a refusal.
    expected = {"depends": "fail"}.get(broken.expected, broken.expected)
    assert row(broken.name, strata=True)["graded"]["verdict"] == expected


def test_real_engines_pass():
    assert [r["graded"]["verdict"] for r in found()["systems"] if r["kind"] == "engine"] == ["pass", "pass"]


def test_off_by_one_passes_where_neighbouring_queries_share_their_answers():
    twins = subject(paired=True)
    (off,) = [broken for broken in ZOO if broken.name == "off by one"]
    run = run_of(off.name, twins.material, off.lists(twins.material))
    ones = dict.fromkeys(twins.document_lengths, 1)
    gate = graded_gate(
        run, list(run.hits), twins.qrels, twins.material.strata, ones, ones, draws=200, tau=0.05, alpha=0.05, seed=1
    )
    assert gate.verdict == "pass"
    assert neighbours_sharing(twins) == TOPICS
    assert row("off by one")["graded"]["verdict"] == "fail"
    assert found()["collection"]["neighbours_sharing"] == 0


def test_a_favourite_of_the_source_is_in_the_zoo_only_where_there_are_sources():
    assert "source prior" in {broken.name for broken in zoo_of(subject(strata=True).material)}
    assert "source prior" not in {broken.name for broken in zoo_of(subject().material)}


def test_without_a_dense_engine_there_is_no_deaf_encoder():
    names = {broken.name for broken in zoo_of(replace(subject(), dense="").material)}
    assert {broken.name for broken in ZOO} - names == {"deaf encoder", "source prior"}


def test_what_the_gate_cannot_refuse_says_what_finds_it_and_nothing_else_does():
    assert all((broken.expected == "fail") == (not broken.caught_by) for broken in ZOO)


def test_every_list_has_known_documents_and_every_run_has_them_once():
    material = subject(strata=True).material
    for broken in zoo_of(material):
        lists = broken.lists(material)
        assert len(lists) == len(material.query_ids), broken.name
        assert {doc_id for documents in lists for doc_id in documents} <= set(material.doc_ids), broken.name
        run = run_of(broken.name, material, lists)
        assert all(len({hit.doc_id for hit in hits}) == len(hits) > 0 for hits in run.hits.values()), broken.name


def test_documents_that_are_judged_but_not_in_the_corpus_are_never_returned():
    lacking = subject().material
    qrels = {query_id: {**grades, "gone": 9} for query_id, grades in lacking.qrels.items()}
    material = replace(lacking, qrels=qrels)
    for broken in zoo_of(material):
        assert "gone" not in {doc_id for documents in broken.lists(material) for doc_id in documents}, broken.name


def test_a_predictor_that_judges_itself_reports_a_perfect_score():
    assert row("favourite, self-judged")["reported"] == {"ndcg@10": 1.0, "recall@10": 1.0, "mrr@10": 1.0}
    assert row("favourite, self-judged")["scores"]["ndcg@10"] < 0.05


def test_documents_that_count_twice_raise_the_report_above_the_score():
    doubled = row("engine, each hit twice")
    assert doubled["reported"]["ndcg@10"] > doubled["scores"]["ndcg@10"]
    assert doubled["reported"]["recall@10"] == pytest.approx(doubled["scores"]["recall@10"])


@pytest.mark.parametrize("vectors", [text_hash_vectors, token_hash_vectors])
def test_the_probe_of_encoders_refuses_hashes(vectors):
    class Hashing(InProcessEncoder):
        batch_tokens = 512
        spec = EncoderSpec("hashing", "planted/hashing", "0" * 40, vectors(["a"]).shape[1], 32)

        def identity(self):
            return {"encoder": "hashing"}

        def token_counts(self, texts, side):
            return np.array([len(text.split()) for text in texts], np.int64)

        def encode(self, texts, side):
            rows = vectors(texts)
            return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)

    with pytest.raises(BackendError, match="paraphrases"):
        probe(Hashing())


def test_vectors_that_are_one_but_for_noise_are_alike_to_two_nines():
    vectors = nearly_constant_vectors(50, np.random.default_rng(0))
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    assert (unit @ unit.T).min() > 0.99


def test_a_collection_of_next_to_nothing_is_studied_without_a_fall():
    texts = {"d1": "one", "d2": "two words", "d3": "and three words"}
    queries = [Query(name, name, "topic", "harvested") for name in ("qa", "qb", "qc")]
    hits = {"qa": (), "qb": (Hit("d1", 1.0, Span(0, 1)),), "qc": ()}
    lengths = {doc_id: len(text) for doc_id, text in texts.items()}
    tiny = Subject("tiny", {}, PLAN, queries, {"qb": {"d2": 1}}, texts, lengths, {ENGINE: Run(ENGINE, hits)}, {}, "")
    rows = study(tiny)["systems"]
    assert all(row["graded"]["verdict"] != "pass" for row in rows)
    assert all(row["single_gold"] == [] for row in rows)
    assert "tiny" in with_blocks(EMPTY, study(tiny))


@given(st.integers(1, 150), st.data())
def test_nearest_is_the_sorted_list_of_cosines(n_documents, data):
    whole = st.integers(-3, 3)
    documents = data.draw(arrays(np.float64, (n_documents, 3), elements=whole))
    query = data.draw(arrays(np.float64, 3, elements=whole))
    ids = [f"d{number:03d}" for number in range(n_documents)]
    norms = np.sqrt((documents**2).sum(axis=1))
    cosines = (documents @ query) / np.where(norms == 0, 1, norms)
    expected = sorted(range(n_documents), key=lambda number: (-cosines[number], number))[:100]
    assert nearest(query[None], documents, ids) == [[ids[number] for number in expected]]


def made_up(name, ndcg, *, kind="broken", reported=None, verdict="fail", recall=0.4, zero=1, golds="fail"):
    scores = {"ndcg@10": ndcg, "recall@10": recall, "mrr@10": ndcg}
    nulls = [
        {"name": null, "mean": 0.1, "delta": ndcg - 0.1, "p": 0.0005, "verdict": verdict}
        for null in ("permuted qrels", "shuffled top 10")
    ]
    return {
        "name": name,
        "kind": kind,
        "broken": "is broken",
        "met": "anywhere",
        "expected": verdict,
        "caught_by": "",
        "scores": scores,
        "reported": {**scores, "ndcg@10": ndcg if reported is None else reported},
        "zero": zero,
        "difference": {"mean": 0.1, "low": 0.0, "high": 0.2},
        "graded": {"verdict": verdict, "nulls": nulls},
        "single_gold": [{"measure": "recall@10", "real": recall, "verdict": golds, "nulls": []}],
        "diagnosis": "",
    }


ENGINES = [
    made_up(name, ndcg, kind="engine", verdict="pass", recall=0.5) for name, ndcg in (("strong", 0.6), ("weak", 0.4))
]


@pytest.mark.parametrize(
    ("system", "expected"),
    [
        (made_up("x", 0.01), "nothing: 0.0100 gives it away"),
        (made_up("x", 0.05), "0.0500 looks like a weak engine"),
        (made_up("x", 0.4), "0.4000 looks like a weak engine"),
        (made_up("x", 0.5), "a table ranks it above 1 of 2 real engines, weak (0.4000) among them"),
        (made_up("x", 0.01, recall=0.5), "its Recall@10 is that of strong"),
        (made_up("x", 0.01, reported=0.04), "reports 0.0400; over all queries and judgments it scores 0.0100"),
        (made_up("x", 0.01, verdict="pass", zero=6), "6 of 10 queries score 0"),
        (made_up("x", 0.01, verdict="pass", zero=5), "nothing: 0.0100 gives it away"),
        (made_up("x", 0.01, golds="pass"), "nulls A to D pass it"),
    ],
)
def test_what_a_table_hides_follows_from_the_figures(system, expected):
    assert hidden(system, ranked([*ENGINES, system]), 10) == expected


def small_study():
    wreck = made_up("a | wreck", 0.01, reported=1.0, recall=0.5)
    rows = ranked([*ENGINES, wreck, made_up("reads", 0.3, verdict="pass", golds="pass")])
    facts = {"name": "tiny", "documents": 1234, "queries": 10, "judged_pairs": 20}
    facts |= {"neighbours_sharing": 3, "sha256": {}}
    gate = {"draws": 200, "tau": 0.05, "alpha": 0.05, "seed": 1}
    systems = [{**row, "hidden": hidden(row, rows, 10)} for row in rows]
    return {"collection": facts, "gate": gate, "baseline": "strong", "systems": systems}


def test_the_table_on_a_terminal():
    assert (
        "\n".join(study_lines(small_study(), ASCII))
        == """\
tiny: 1,234 documents, 10 queries; * is broken

    system                                    ndcg@10  recall@10     mrr@10  gate             A-D      refused by
  1 * a | wreck                                1.0000     0.5000     0.0100  [x] fail         [x]      permuted qrels, \
shuffled top 10
  2 strong                                     0.6000     0.5000     0.6000  [ok] pass        [x]
  3 weak                                       0.4000     0.5000     0.4000  [ok] pass        [x]
  4 * reads                                    0.3000     0.4000     0.3000  [ok] pass        [ok]

gate: nulls on graded judgments, nDCG@10; A-D: four nulls on single golds, recall@10 and mrr@10

what the three scores would have hidden:
   1 a | wreck: reports 1.0000; over all queries and judgments it scores 0.0100; a table ranks it above 2 of 2 real \
engines, strong (0.6000) among them; its Recall@10 is that of strong
   4 reads: 0.3000 looks like a weak engine

The gate passes 2 of 2 real engines and refuses 1 of 2 broken predictors."""
    )


def test_a_study_is_the_same_bytes_twice():
    assert json_bytes(study(subject())) == json_bytes(found())


def lines_of(study):
    """The lines of every block by its name."""
    numbered = list(enumerate(study["systems"], start=1))
    return {name: "\n".join(block(study, numbered)).split("\n") for name, block in BLOCKS.items()}


def widths(lines):
    return {len(re.findall(r"(?<!\\)\|", line)) for line in lines if line.startswith("|")}


def test_every_block_has_lines_and_tables_of_one_width():
    for name, lines in lines_of(found()).items():
        assert any(lines), name
        assert len(widths(lines)) <= 1, name


HOSTILE = "a | b <img src=x onerror=alert(1)> [x](https://y) **z** `c`\n\n# H\r\n<!-- end of generated --> \x1b[31m"


def test_hostile_names_are_shown_as_they_are_and_open_no_markup():
    hostile = deepcopy(found())
    hostile["collection"]["name"] = hostile["baseline"] = HOSTILE
    for row in hostile["systems"]:
        row["name"], row["hidden"] = HOSTILE, f"a table ranks it above {HOSTILE}"
    plain = lines_of(found())
    for name, lines in lines_of(hostile).items():
        text = "\n".join(lines)
        assert [line[:2] for line in lines] == [line[:2] for line in plain[name]] or name == "measured on"
        assert len(lines) == len(plain[name])
        assert widths(lines) == widths(plain[name])
        assert not re.search(r"<|\x1b|\r|(?<!\\)\]\(|(?<!\\)`", text)
        assert ("\\\\x1b\\[31m" in text) == (name != "blind table"), name
    page = with_blocks(EMPTY, hostile)
    assert with_blocks(page, hostile) == page


def test_what_finds_nothing_is_told_so_and_not_that_it_fits_other_queries(monkeypatch):
    monkeypatch.setattr("runner.tools.case_study.case_study.zoo_of", lambda material: [])  # it is about an engine
    twenty = subject()
    strangers = {
        query.query_id: tuple(Hit(f"x{(3 * place + n) % 120:03d}", 3.0 - n, Span(0, 1)) for n in range(3))
        for place, query in enumerate(twenty.queries)
    }
    finds_nothing = Run("trec:nothing", strangers)
    said = study(replace(twenty, engines={**twenty.engines, finds_nothing.cell: finds_nothing}))
    (row,) = [row for row in said["systems"] if row["name"] == finds_nothing.cell]
    assert row["scores"]["ndcg@10"] == 0
    assert len({tuple(hit.doc_id for hit in hits) for hits in strangers.values()}) == len(strangers)
    (line,) = [line for line in lines_of(said)["diagnoses"] if finds_nothing.cell in line]
    assert "trec:nothing: no query gets a relevant document" in line
    assert "the run fails" not in line


def test_a_diagnosis_begins_with_its_cause():
    rows = found()["systems"]
    assert {row["name"] for row in rows if row["cause"]} >= {
        row["name"] for row in rows if row["broken"] and row["graded"]["verdict"] == "fail"
    }
    assert all(row["diagnosis"].startswith(row["cause"]) for row in rows)


@pytest.fixture
def page(tmp_path):
    path = tmp_path / "page.md"
    blocks = "".join(f"## {name}\n<!-- generated: {name} -->\nold\n<!-- end of generated -->\n" for name in BLOCKS)
    path.write_text(f"Before.\n{blocks}After.\n", encoding="utf-8")
    return path


def test_a_written_page_checks_and_a_touched_one_does_not(page):
    assert [path.suffix for path in write_study(found(), page)] == [".md", ".json"]
    assert "byte for byte" in check_study(found(), page)
    text = page.read_text(encoding="utf-8")
    assert text.startswith("Before.\n")
    assert text.endswith("After.\n")
    assert "\nold\n" not in text
    assert with_blocks(text, found()) == text
    page.with_suffix(".json").write_text("{}", encoding="utf-8")
    with pytest.raises(IntegrityError, match=r"page\.json: not what"):
        check_study(found(), page)
    page.write_text(text.replace("0.", "1.", 1), encoding="utf-8")
    with pytest.raises(IntegrityError, match=r"page\.md and .*page\.json: not what"):
        check_study(found(), page)


@pytest.mark.parametrize("text", ["no blocks", "<!-- generated: other -->\n<!-- end of generated -->"])
def test_a_page_without_known_blocks_is_refused_and_left_alone(tmp_path, text):
    path = tmp_path / "page.md"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match="blind table"):
        write_study(found(), path)
    assert [entry.name for entry in tmp_path.iterdir()] == ["page.md"]


SWALLOWED = "<!-- generated: blind table -->\nProse.\n<!-- generated: zoo -->\nold\n<!-- end of generated -->\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (SWALLOWED, r"page\.md:1: '<!-- generated: blind table -->' opens a block that does not end"),
        (f"Before.\r\n{SWALLOWED}", r"page\.md:2: '<!-- generated: blind table -->' opens"),
        (
            "<!-- generated: zoo -->\n<!-- end of generated -->\n<!-- generated: nulls -->\n",
            r"md:3: .*nulls -->' opens",
        ),
        ("<!-- generated: zoo --> \n<!-- end of generated -->\n", r"md:1: '<!-- generated: zoo --> ' opens"),
    ],
)
def test_a_block_that_does_not_end_is_named_and_no_prose_is_swallowed(tmp_path, text, message):
    path = tmp_path / "page.md"
    path.write_bytes(text.encode())
    for refused in (lambda: write_study(small_study(), path), lambda: check_page(path, written=False)):
        with pytest.raises(InputError, match=message):
            refused()
    assert path.read_bytes() == text.encode()


def test_a_page_keeps_its_line_ends(page):
    write_study(found(), page)
    plain = page.read_bytes()
    crlf = plain.replace(b"\n", b"\r\n")
    page.write_bytes(crlf.replace(b"0.", b"1."))
    write_study(found(), page)
    assert page.read_bytes() == crlf
    assert "byte for byte" in check_study(found(), page)
    mixed = b"Before.\n" + crlf.removeprefix(b"Before.\r\n")
    page.write_bytes(mixed)
    write_study(found(), page)
    assert page.read_bytes() == mixed


@pytest.mark.parametrize("option", ["--write", "--check"])
@pytest.mark.parametrize("name", ["page.json", "page.JSON", "gone.md", "folder", "no-blocks.md"])
def test_what_is_wrong_with_a_page_is_said_before_the_study(tmp_path, option, name):
    (tmp_path / "page.json").write_text("{}", encoding="utf-8")
    (tmp_path / "page.JSON").write_text("{}", encoding="utf-8")
    (tmp_path / "no-blocks.md").write_text("no blocks", encoding="utf-8")
    (tmp_path / "folder").mkdir()
    with pytest.raises(InputError, match=name):  # and not that there is no such version folder
        case_study([str(tmp_path / "version"), option, str(tmp_path / name)])
    assert (tmp_path / "page.json").read_bytes() == b"{}"


def test_a_page_to_check_without_its_figures_is_refused_before_the_study(tmp_path, page):
    with pytest.raises(InputError, match=r"page\.json cannot be read"):
        case_study([str(tmp_path / "version"), "--check", str(page)])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The version folder of an external evaluation of the twenty topics, by BM25 and an encoder without weights."""
    root = tmp_path_factory.mktemp("external")
    collection = root / "twenty"
    collection.mkdir()
    topics = subject()
    rows = [{"_id": doc_id, "title": "", "text": text} for doc_id, text in topics.document_texts.items()]
    queries = [{"_id": query.query_id, "text": query.text} for query in topics.queries]
    judged = [f"{q}\t{d}\t{grade}" for q, grades in topics.qrels.items() for d, grade in grades.items()]
    for name, lines in (("corpus", rows), ("queries", queries)):
        text = "".join(json.dumps(line) + "\n" for line in lines)
        (collection / f"{name}.jsonl").write_text(text, encoding="utf-8")
    (collection / "qrels.tsv").write_text("\n".join(["query-id\tcorpus-id\tscore", *judged, ""]), encoding="utf-8")
    plan = yaml.safe_load(few_draws(default_plan_text(SOURCES["beir"], rehearsal=False)))
    plan["cells"] = [ENGINE, HYBRID, DENSE]
    version = newest_version("beir", root / "set")
    version.folder.mkdir(parents=True)
    version.plan_path(rehearsal=False).write_text(yaml.safe_dump(plan), encoding="utf-8")
    ExternalEvaluation(replace(version, cache=root / ".cache"), collection, backend=LocalBackend(fake_encoders)).run()
    return version.folder


@pytest.fixture(scope="module")
def said(folder):
    """What the command answers in JSON; nothing was written for it."""
    before, stdout = sorted(folder.parent.rglob("*")), StringIO()
    with redirect_stdout(stdout):
        assert case_study([str(folder), "--json"]) == 0
    assert sorted(folder.parent.rglob("*")) == before
    return json.loads(stdout.getvalue())


def test_the_command_reads_a_folder_writes_nothing_and_judges_engines_as_the_evaluation_did(folder, said):
    assert said["collection"]["name"] == "twenty"
    assert said["baseline"] == ENGINE
    answered = {row["name"]: row for row in said["systems"]}
    assert "deaf encoder" in answered
    engines = {name for name, row in answered.items() if row["kind"] == "engine"}
    assert engines == {ENGINE, DENSE, HYBRID}
    for cell in json.loads((folder / "results.json").read_bytes())["cells"]:
        row = answered[cell["cell"]]
        assert row["scores"]["ndcg@10"] == pytest.approx(cell["scores"]["ndcg@10"]["mean"], abs=1e-9)
        assert row["diagnosis"] == cell["diagnosis"]
        assert [null["p"] for null in row["graded"]["nulls"]] == [null["p"] for null in cell["gate"]["nulls"]]
        assert [gold["verdict"] for gold in row["single_gold"]] == [gold["verdict"] for gold in cell["single_gold"]]


def test_the_command_writes_and_checks_a_page(folder, said, page, capsys, monkeypatch):
    monkeypatch.setattr("runner.tools.case_study.case_study.study", lambda subject: deepcopy(said))
    assert case_study([str(folder), "--write", str(page)]) == 0
    assert case_study([str(folder), "--check", str(page)]) == 0
    assert "byte for byte" in capsys.readouterr().out
    assert json.loads(page.with_suffix(".json").read_bytes()) == said


@pytest.mark.parametrize("content", [None, "{}", '{"kind": "production"}'])
def test_a_folder_that_is_no_external_evaluation_is_refused(tmp_path, content):
    if content is not None:
        (tmp_path / "results.json").write_text(content, encoding="utf-8")
    with pytest.raises(InputError, match=r"results\.json"):
        case_study([str(tmp_path)])


def test_a_collection_in_which_nothing_is_relevant_is_refused(folder, tmp_path):
    version = shutil.copytree(folder, tmp_path / "v1")
    (version / "qrels.txt").write_text("q00 0 d000 0\nq00 0 gone 1\n", encoding="utf-8")
    results = json.loads((version / "results.json").read_bytes())
    results["labels"]["sha256"] = file_sha256(version / "qrels.txt")
    (version / "results.json").write_bytes(json_bytes(results))
    with pytest.raises(InputError, match="no document of the corpus is relevant"):
        case_study([str(version)])


@pytest.mark.parametrize("name", ["qrels.txt", "queries.yaml", "corpus.jsonl"])
def test_an_edited_file_of_the_collection_is_found(folder, tmp_path, name):
    version = shutil.copytree(folder, tmp_path / "v1")
    with (version / name).open("ab") as stream:
        stream.write(b"\n")
    with pytest.raises(IntegrityError, match=rf"v1.{re.escape(name)} is not the file .* run the driver again"):
        read_subject(version)


@pytest.mark.parametrize("cell", [ENGINE, DENSE])
def test_an_edited_or_exchanged_run_is_found(folder, tmp_path, cell):
    version = shutil.copytree(folder, tmp_path / "v1")
    run = version / "runs" / f"{slug(cell)}.tsv"
    rows = run.read_text(encoding="utf-8").split("\n")
    run.write_text("\n".join([*rows[:-2], ""]), encoding="utf-8")  # without its last hit
    with pytest.raises(IntegrityError, match=rf"{slug(cell)}\.tsv is not the run of {cell} that .* the driver again"):
        read_subject(version)
    shutil.copy(version / "cells" / f"{slug(HYBRID)}.json", version / "cells" / f"{slug(cell)}.json")
    shutil.copy(version / "runs" / f"{slug(HYBRID)}.tsv", run)
    with pytest.raises(IntegrityError, match=rf"is not the run of {cell} that"):
        read_subject(version)


def test_a_version_that_is_not_the_newest_is_refused(folder, tmp_path):
    version = shutil.copytree(folder, tmp_path / "v1")
    (tmp_path / "v2").mkdir()
    (tmp_path / "v2" / "plan.yaml").write_bytes((version / "plan.yaml").read_bytes())
    with pytest.raises(InputError, match="v2"):
        case_study([str(version)])


@pytest.fixture(params=PAGES, ids=lambda path: path.stem)
def published_page(request):
    return request.param


def published(path):
    return json.loads(path.with_suffix(".json").read_bytes())


def test_the_published_page_shows_the_published_figures(published_page):
    text = published_page.read_text(encoding="utf-8")
    assert with_blocks(text, published(published_page)) == text
    assert set(re.findall(r"<!-- generated: (.+?) -->", text)) == set(BLOCKS)


def test_the_published_page_has_figures_in_its_blocks_alone(published_page):
    prose = re.sub(
        r"<!-- generated: .*?<!-- end of generated -->", "", published_page.read_text(encoding="utf-8"), flags=re.DOTALL
    )
    assert re.findall(r"\d\.\d|\d %|\bof \d+\b", prose) == []


def test_the_published_page_says_which_broken_predictors_pass_and_what_finds_them(published_page):
    text = published_page.read_text(encoding="utf-8")
    (block,) = re.findall(r"<!-- generated: passed -->(.*?)<!-- end of generated -->", text, re.DOTALL)
    passed = [
        row
        for row in published(published_page)["systems"]
        if row["kind"] == "broken" and row["graded"]["verdict"] == "pass"
    ]
    assert {"oracle", "leaky half", "lucky few", "hybrid with a dead arm"} <= {row["name"] for row in passed}
    for row in passed:
        assert row["expected"] != "fail", row["name"]
        assert f"| {row['name']} |" in block
        assert row["caught_by"] in block


def test_the_published_verdicts_are_those_that_the_zoo_claims(published_page):
    claimed = {broken.name: broken.expected for broken in ZOO}
    for row in published(published_page)["systems"]:
        if row["kind"] == "engine":
            assert row["graded"]["verdict"] == "pass"
        elif claimed[row["name"]] != "depends":
            assert row["graded"]["verdict"] == claimed[row["name"]], row["name"]

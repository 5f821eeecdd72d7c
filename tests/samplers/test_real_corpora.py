"""What the readers and chunkers make of all real files, and that the documents say so."""

import json
from collections import defaultdict

import pytest
import yaml

from chunkers.registry import limit_of
from runner.base.places import CHECKOUT
from runner.embed.chunk_corpus import chunk_corpus
from runner.embed.chunk_health import chunk_health
from runner.eval_set.catalog import SOURCES
from samplers.corpus.parse import read_corpus
from samplers.registry import SAMPLERS, source_format
from tests.support.corpora import PARTS, whole_corpora
from tests.support.corpora_table import FOLDERS, PAGE, with_table


@pytest.mark.slow
@pytest.mark.shared
def test_the_table_of_real_files_is_what_the_readers_make_of_them(shared, tmp_path):
    text = PAGE.read_text(encoding="utf-8")
    corpora = whole_corpora(shared, tmp_path / "corpora")
    assert with_table(text, corpora) == text, "python -m tests.support.corpora_table SHARED"


COMMITTED = sorted(path.parent.parent.name for path in CHECKOUT.glob("eval-sets/*/v1/corpus.jsonl"))


@pytest.mark.shared
@pytest.mark.parametrize("source", [name for name in COMMITTED if name in SAMPLERS])
def test_every_document_of_a_committed_corpus_is_read_as_it_was(shared, source):
    """Text, title and sections of some 4,200 real documents, by their digests: what readers made of them is frozen."""
    version = CHECKOUT / "eval-sets" / source / "v1"
    rows = map(json.loads, (version / "corpus.jsonl").read_text(encoding="utf-8").splitlines())
    wanted = {row["doc_id"]: row["sha256"] for row in rows if "doc_id" in row}
    options = yaml.safe_load((version / "plan.yaml").read_text(encoding="utf-8"))["sample"].get("options", [])
    row, digests = source_format(source), defaultdict(set)
    for path in (path for part in PARTS for path in (shared / part / source).rglob("*") if path.is_file()):
        for document in row.read(path.read_bytes(), path.name, frozenset(options)).documents:
            digests[document.doc_id].add(document.sha256)
    assert [doc_id for doc_id, digest in wanted.items() if digest not in digests[doc_id]] == []


@pytest.mark.slow
@pytest.mark.shared
@pytest.mark.parametrize("folder", [name for name in FOLDERS if name != "cbo_cost_estimates"])
def test_a_structural_chunker_covers_every_real_document_within_its_limit_and_is_not_degenerate(shared, folder):
    source = SOURCES[folder]
    documents = read_corpus(shared / "corpora" / folder, source.reader).documents
    limit = limit_of(source.structural_chunker)
    health = chunk_health(chunk_corpus(documents, source.structural_chunker), documents, limit)
    assert health.coverage == 1.0
    assert 0 < health.tokens_p50 <= health.tokens_max <= limit
    assert health.degenerate == []

"""The shape of corpus.jsonl, the manifest of the sample."""

from typing import Annotated, Literal

from pydantic import Field

from runner.base.schema import Count, FrozenModel, Sha256, Sparse
from runner.eval_set.shapes.plan import Sample


class Quarantined(FrozenModel):
    """A file that could not be read, and why."""

    file: str
    reason: str


class CorpusHeader(FrozenModel):
    """The first row of corpus.jsonl: how the sample was drawn and from what."""

    schema_version: Literal[1]
    source: str
    reader: str
    sample: Sample
    n_read: Count
    n_documents: Count
    quarantined: list[Quarantined]
    archive_sha256: Sha256


GIVEN_QRELS = "given qrels"
"""Who judged documents that a Python program gave with their qrels."""


class CollectionFacts(Sparse):
    """What an external collection held, and the digests of its files.

    `missing_documents` are judged and not in the corpus; they stay in the qrels, as published figures have it.
    `queries_unjudged` belong to other splits and were left out. `renormalised` counts documents and judged queries
    whose text was not in NFC. `own_documents` are queries that are documents themselves, left out of their own lists.
    `language` is that of most documents if it is not English. `judged_by` is who judged documents that a Python program
    gave, and empty for a published collection.
    """

    name: Annotated[str, Field(min_length=1)]
    split: str
    empty_documents: Count
    queries_unjudged: Count
    missing_documents: Count
    renormalised: Count = 0
    own_documents: Count = 0
    language: str = ""
    judged_by: str = ""
    corpus_sha256: Sha256
    queries_sha256: Sha256
    qrels_sha256: Sha256


class CollectionSizes(CollectionFacts):
    """The same, and how large the collection is, which results say elsewhere."""

    documents: Count
    queries: Count
    judged_pairs: Count


class CollectionFile(CollectionSizes):
    """collection.json; `made` has the digests of what the collection became, by file name."""

    schema_version: Literal[1]
    made: dict[str, Sha256] = Field(default_factory=dict)


class SourceFile(FrozenModel):
    """The publisher's file that a document was read from: its package and edition at govinfo, address and digest."""

    package: str
    edition: str
    url: str
    sha256: Sha256


class CorpusRow(Sparse):
    """A further row of corpus.jsonl: one sampled document, without its text; `status` is as in the record.

    `file` stands where one file of govinfo holds the document and no other.
    """

    doc_id: str
    url: str
    sha256: Sha256
    stratum: str
    family: str
    n_chars: Count
    status: str = ""
    file: SourceFile | None = None

"""An external collection as a version's files: documents, every judged query, and the published qrels."""

from pathlib import Path

import yaml

from runner.base.canonical import file_sha256, json_bytes, read_json, write_atomic
from runner.base.errors import InputError, IntegrityError
from runner.base.given_files import display
from runner.base.places import DRIVER
from runner.base.progress import say
from runner.base.records import Document, Qrels, bm25_in
from runner.base.schema import checked
from runner.eval_set.corpus import EXTERNAL_READER, archive_path, manifest_row, write_archive
from runner.eval_set.shapes.corpus import CollectionFile, CorpusHeader, Quarantined
from runner.eval_set.shapes.plan import Plan
from runner.eval_set.trec import read_trec_qrels, trec_qrels_bytes
from runner.eval_set.version import Version, corpus_bytes, load_corpus, load_queries
from samplers.sources.beir import Collection, CollectionDigests


def keep_collection(version: Version, plan: Plan, collection: Collection, judged_by: str = "") -> None:
    """Write the version's corpus, queries and qrels; warn of a language that bm25 does not read.

    `judged_by` says who judges what a Python program gave; it is empty for a published collection.
    """
    documents = kept_documents(collection, plan)
    common = {"kind": "given" if judged_by else "published", "origin": "harvested"}
    rows = [{"id": query_id, "text": text, **common} for query_id, text in collection.queries.items()]
    for row in rows:
        if row["id"] in collection.sources:
            row["source_document"] = collection.sources[row["id"]]
    listed = yaml.safe_dump({"schema_version": 1, "queries": rows}, sort_keys=False, width=1_000_000)
    write_atomic(version.queries_path, listed.encode())
    # The archive is written on the way: the header names its digest.
    header = CorpusHeader(
        schema_version=1,
        source=version.source.name,
        reader=EXTERNAL_READER,
        sample=plan.sample,
        n_read=len(collection.documents),
        n_documents=len(documents),
        quarantined=[
            Quarantined(file=file_name, reason=f"document {doc_id} has neither title nor text")
            for doc_id, file_name in collection.empty.items()
        ],
        archive_sha256=write_archive(archive_path(version), documents),
    )
    write_atomic(version.corpus_path, corpus_bytes(header, map(manifest_row, documents)))
    facts = _facts(collection, judged_by)
    keep_qrels(version, facts, collection.qrels)
    if not judged_by:
        say(
            f"documents: {len(documents)} of {len(collection.documents)}; left out without title and text: "
            f"{len(collection.empty)}; repeated rows: {collection.n_duplicates}; "
            f"judged queries: {len(collection.queries)}; others left out: {collection.n_unjudged_queries}; "
            f"texts that were not in NFC: {facts.renormalised}; "
            f"queries whose own document is left out of their list: {facts.own_documents}"
        )
    if facts.language:
        say(
            f"warning: the documents look {facts.language.capitalize()}, and bm25 stems and drops stop words as English"
            f"; give the plan a cell '{bm25_in(facts.language)} x whole_doc'"
        )


def keep_qrels(version: Version, facts: CollectionFile, qrels: Qrels) -> None:
    """Write qrels.txt, and collection.json with the facts of a collection that is judged so."""
    write_atomic(version.qrels_path, trec_qrels_bytes(qrels))
    # This file comes last: its presence means that the others are there, and as it names them.
    made = {path.name: file_sha256(path) for path in _made(version)}
    whole = facts.model_copy(update={"judged_pairs": sum(map(len, qrels.values())), "made": made})
    write_atomic(version.collection_path, json_bytes(whole.model_dump()))


def _made(version: Version) -> tuple[Path, ...]:
    return version.corpus_path, version.queries_path, version.qrels_path


def kept_documents(collection: Collection, plan: Plan) -> tuple[Document, ...]:
    """Return all documents if the sample's size allows, else the judged ones and others in hash order; in id order."""
    from samplers.corpus.sampling import in_hash_order

    size = plan.sample.size
    if len(collection.documents) <= size:
        return collection.documents
    # Judged documents come first: without one of them no published figure could be met.
    wanted = {doc_id for grades in collection.qrels.values() for doc_id in grades}
    judged = [document for document in collection.documents if document.doc_id in wanted]
    if len(judged) > size:
        raise InputError(
            f"sample.size in the plan is {size}; {len(judged)} documents of {collection.name} are judged, and a sample "
            f"keeps them all. Ask for {len(judged)} or more."
        )
    others = [document for document in collection.documents if document.doc_id not in wanted]
    # Others fill the seats that are left, by hash, so that a larger sample holds every smaller one.
    drawn = [*judged, *in_hash_order(others, plan.sample.seed)[: size - len(judged)]]
    return tuple(sorted(drawn, key=lambda document: document.doc_id))


def own_documents(version: Version) -> frozenset[str]:
    """Return the queries of a collection that are documents themselves, where the qrels do not grade that.

    A query of ArguAna or Quora finds itself first. BEIR and MTEB leave that out, and so do published scores. What a
    program gives may number both from 1.
    """
    if version.source.policy != "external" or collection_facts(version).judged_by:
        return frozenset()
    qrels, documents = read_trec_qrels(version.qrels_path), {row.doc_id for row in load_corpus(version.corpus_path)[1]}
    asked = (query.id for query in load_queries(version.queries_path))
    return frozenset(each for each in asked if each in documents and each not in qrels.get(each, {}))


def collection_facts(version: Version) -> CollectionFile:
    """Return collection.json; an IntegrityError if a file that was made from the collection is gone or edited."""
    facts = checked(CollectionFile, read_json(version.collection_path), version.collection_path)
    for path in _made(version):
        if not path.is_file() or file_sha256(path) != facts.made.get(path.name):
            raise IntegrityError(
                f"{path} is gone, or not what was made from the collection. Delete {version.collection_path} and run "
                f"with --corpus-path to make it again: {DRIVER} run {version.flags} --corpus-path FOLDER"
            )
    return facts


def check_same_collection(version: Version, given: CollectionDigests, *, qrels: bool = True) -> None:
    """Raise InputError, which names what differs, unless the version was made from files of these digests."""
    known = collection_facts(version)
    differ = {
        "corpus": known.corpus_sha256 != given.corpus,
        "queries": known.queries_sha256 != given.queries,
        "qrels": qrels and known.qrels_sha256 != given.qrels,
    }
    if any(differ.values()):
        raise InputError(
            f"This is not the collection that {display(version.folder)} was made from: "
            f"{', '.join(name for name, differs in differ.items() if differs)} differ. Give another folder "
            "(--eval-set-path; from Python folder=) to evaluate it as well."
        )


def _facts(collection: Collection, judged_by: str) -> CollectionFile:
    from samplers.corpus.language import language_of

    language = language_of(document.text for document in collection.documents)
    return CollectionFile(
        schema_version=1,
        name=collection.name,
        split=collection.split,
        documents=len(collection.documents) + len(collection.empty),
        empty_documents=len(collection.empty),
        queries=len(collection.queries),
        queries_unjudged=collection.n_unjudged_queries,
        judged_pairs=sum(map(len, collection.qrels.values())),
        missing_documents=len(collection.missing_documents),
        renormalised=collection.n_renormalised,
        own_documents=0 if judged_by else len(collection.own),
        language="" if language == "english" else language,
        judged_by=judged_by,
        corpus_sha256=collection.sha256.corpus,
        queries_sha256=collection.sha256.queries,
        qrels_sha256=collection.sha256.qrels,
    )

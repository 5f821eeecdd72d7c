"""The sampled documents of a version: drawn once, named by the manifest, kept whole in an archive outside git."""

import io
import json
import tarfile
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from runner.canonical import json_bytes, sha256, write_atomic
from runner.errors import InputError, Outstanding
from runner.eval_set import DRIVER, Version, corpus_bytes, load_corpus
from runner.progress import say
from runner.records import Document, Section, Span
from runner.schemas import CorpusHeader, CorpusRow, Plan, Quarantined

if TYPE_CHECKING:
    from samplers.beir import Collection

EXTERNAL_READER = "beir"
"""The reader of a collection, which is three files with the documents in one of them."""


def archive_path(version: Version) -> Path:
    """Where the archive of a version's documents lies."""
    return version.work / "corpus.tar.zst"


def corpus_documents(version: Version, plan: Plan, corpus_path: Path | None) -> tuple[Document, ...]:
    """The version's documents in id order.

    Drawn from `corpus_path` where there is no manifest yet; afterwards read from the archive, or, where that is
    gone, from `corpus_path` again, in which case every document must be what the manifest says.
    """
    if not version.corpus_path.exists():
        if corpus_path is None:
            raise Outstanding(
                f"{version.name} has no corpus yet. Give a folder of its documents: "
                f"{DRIVER} {version.flags}{' --rehearse' if version.rehearsal else ''} --corpus-path FOLDER"
            )
        return _draw(version, plan, corpus_path)
    header, rows = load_corpus(version.corpus_path)
    documents = _from_archive(archive_path(version), header)
    if documents is None:
        documents = _from_folder(version, header, rows, corpus_path)
        write_archive(archive_path(version), documents)
    return documents


def _draw(version: Version, plan: Plan, corpus_path: Path) -> tuple[Document, ...]:
    from samplers.folder import read_folder
    from samplers.sampling import stratified_sample

    reading = read_folder(corpus_path, version.source.reader)
    say(
        f"documents read: {len(reading.documents)}; files quarantined: {len(reading.quarantined)}; equal ones left "
        f"out: {reading.n_duplicates}; files of other kinds ignored: {reading.n_ignored}"
    )
    chosen = stratified_sample(reading.documents, plan.sample.size, plan.sample.seed)
    documents = tuple(sorted(chosen, key=lambda document: document.doc_id))
    header = CorpusHeader(
        schema_version=1,
        source=version.source.name,
        reader=version.source.reader,
        sample=plan.sample,
        n_read=len(reading.documents),
        n_documents=len(documents),
        quarantined=[Quarantined(file=str(name), reason=reason) for name, reason in reading.quarantined],
        archive_sha256=write_archive(archive_path(version), documents),
    )
    # The manifest comes after the archive that it names, so that its presence means both are there.
    write_atomic(version.corpus_path, corpus_bytes(header, (manifest_row(document) for document in documents)))
    return documents


def manifest_row(document: Document) -> CorpusRow:
    """A document's row of corpus.jsonl."""
    return CorpusRow(
        doc_id=document.doc_id,
        url=document.url,
        sha256=document.sha256,
        stratum=document.stratum,
        family=document.family,
        n_chars=len(document.text),
    )


def _from_folder(
    version: Version, header: CorpusHeader, rows: Iterable[CorpusRow], corpus_path: Path | None
) -> tuple[Document, ...]:
    if corpus_path is None:
        raise InputError(
            f"The documents of {version.name} are not here: {archive_path(version)} is "
            "missing. Put the archive back, or give the folder that they were drawn from with --corpus-path."
        )
    found = {document.doc_id: document for document in _read(corpus_path, header.reader)}
    missing = [row.doc_id for row in rows if row.doc_id not in found]
    changed = [row.doc_id for row in rows if row.doc_id in found and manifest_row(found[row.doc_id]) != row]
    if missing or changed:
        groups = (("missing", missing), ("changed", changed))
        listed = "; ".join(f"{len(ids)} {what}: {', '.join(ids[:5])}" for what, ids in groups if ids)
        raise InputError(
            f"{corpus_path} does not hold the documents of {version.corpus_path} ({listed}). "
            "Give the folder that they were drawn from, or put the archive back."
        )
    return tuple(found[row.doc_id] for row in rows)


def _read(folder: Path, reader: str) -> tuple[Document, ...]:
    if reader == EXTERNAL_READER:
        return read_external(folder).documents
    from samplers.folder import read_folder

    return read_folder(folder, reader).documents


def read_external(folder: Path) -> "Collection":
    """The collection in a folder, its titles held against the room that chunkers have for them."""
    from chunkers.contexts import TITLE_TOKENS
    from chunkers.tokens import count_tokens
    from samplers.beir import read_collection

    return read_collection(folder, title_fits=lambda title: count_tokens(title) <= TITLE_TOKENS)


def write_archive(path: Path, documents: Iterable[Document]) -> str:
    """The SHA-256 of the uncompressed archive: compressed bytes differ between library versions."""
    import zstandard

    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for document in documents:
            content = json_bytes(asdict(document))
            member = tarfile.TarInfo(f"documents/{document.doc_id}.json")
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    content = buffer.getvalue()
    write_atomic(path, zstandard.ZstdCompressor(level=10).compress(content))
    return sha256(content)


def _from_archive(path: Path, header: CorpusHeader) -> tuple[Document, ...] | None:
    """The archived documents, None where the archive is missing or is not what the manifest names."""
    import zstandard

    if not path.exists():
        return None
    try:
        content = zstandard.ZstdDecompressor().decompress(path.read_bytes())
    except zstandard.ZstdError:
        content = b""
    if sha256(content) != header.archive_sha256:
        say(f"warning: {path} is damaged and is set aside; the documents are read again")
        path.replace(path.with_suffix(".damaged"))
        return None
    with tarfile.open(fileobj=io.BytesIO(content)) as archive:
        members = [archive.extractfile(member) for member in archive.getmembers() if member.isfile()]
        return tuple(_document(json.loads(member.read())) for member in members if member is not None)


def _document(fields: dict[str, Any]) -> Document:
    sections = tuple(
        Section(Span(**row["span"]), row["level"], row["kind"], row["label"]) for row in fields.pop("sections")
    )
    return Document(**fields, sections=sections)

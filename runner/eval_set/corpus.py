"""The sampled documents of a version: drawn once, named by the manifest, kept whole in an archive outside git."""

import hashlib
import io
import json
import tarfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from runner.base.canonical import json_bytes, parse_json, sha256, write_atomic
from runner.base.errors import InputError, InputNeeded
from runner.base.places import DRIVER
from runner.base.progress import say
from runner.base.records import Document, Section, Span
from runner.eval_set.catalog import SourceSpec
from runner.eval_set.plan import DEFAULT_SEED
from runner.eval_set.shapes.corpus import CorpusHeader, CorpusRow, Quarantined, SourceFile
from runner.eval_set.shapes.plan import Sample
from runner.eval_set.version import Version, corpus_bytes, load_corpus

if TYPE_CHECKING:
    from samplers.corpus.parse import Reading
    from samplers.sources.beir import Collection

EXTERNAL_READER = "beir"
"""The reader of a collection, which is three files with the documents in one of them."""


def archive_path(version: Version) -> Path:
    """Return where the archive of a version's documents lies."""
    return version.work / "corpus.tar.zst"


def corpus_documents(version: Version, corpus_path: Path | None) -> tuple[Document, ...]:
    """Return the version's documents in id order, from the archive, which is written again if it is gone or damaged.

    Then they come from `corpus_path`, and every document must be what the manifest says. InputNeeded if no corpus
    was sampled yet.
    """
    documents = archived_documents(version)
    if documents is None:
        documents = listed_documents(version, corpus_path)
        path = archive_path(version)
        if path.exists():
            say(f"warning: {path} is damaged and is set aside; the documents are read again")
            path.replace(path.with_suffix(".damaged"))
        write_archive(path, documents)
    return documents


def archive_fault(version: Version) -> str:
    """Return what is wrong with the archive, and which it is, where `archived_documents` found none."""
    path = archive_path(version)
    if not path.exists():
        return f"{path} is missing"
    return f"{path} is damaged: it is not the archive that {version.corpus_path} names"


def need_corpus(version: Version) -> None:
    """Raise InputNeeded, which says how to bring a corpus, unless one was sampled."""
    if not version.corpus_path.exists():
        run = f"{DRIVER} run {version.viewed}"
        raise InputNeeded(
            "documents to sample: there is no corpus yet",
            [
                "Give them, one of:\n"
                f"{run} --corpus-path PATH      a folder, a ZIP or the substrate's database\n"
                f"{run} --live      from the publisher"
            ],
        )


def sample_to_draw(version: Version) -> Sample:
    """Return the sample that the plan asks for, or will ask for once it is written from the catalog."""
    if version.plan_path(rehearsal=False).exists():
        return version.plan(rehearsal=False).sample
    source = version.source
    fields = None if source.fields is None else dict(source.fields)
    return Sample.model_validate({"size": source.sample_size, "seed": DEFAULT_SEED, "documents": fields})


def fetched_corpus(version: Version) -> Path:
    """Return a folder with a draw of the source's live feed, finished if an earlier run began it."""
    from samplers.feeds.fetch import fetch
    from samplers.feeds.request import FetchRequest

    folder, sample = version.work / "live", sample_to_draw(version)
    request = FetchRequest(size=sample.size, seed=sample.seed, options=sample.told)
    fetch(version.source.name, folder, request, say)
    return folder


@dataclass(frozen=True)
class Drawn:
    """A sample in id order, and what it was drawn from; `report` is the readiness report in JSON's types."""

    documents: tuple[Document, ...]
    reading: "Reading"
    report: dict[str, Any]


def texts_to_show(version: Version) -> dict[str, Document] | None:
    """Return the version's documents by id if all of them, by their digests, come with this tool.

    None for other documents, whose words are not ours to show, and for a source without such a corpus.
    """
    folder = version.embedded_corpus
    if folder is None or not folder.exists():
        return None
    as_it_is = [(path, path.lstat().st_size, path.lstat().st_mtime_ns) for path in sorted(folder.rglob("*"))]
    ours = _embedded(folder, version.source.reader, sample_to_draw(version).told, tuple(as_it_is))
    rows = load_corpus(version.corpus_path)[1]
    shown = {row.doc_id: ours[row.doc_id, row.sha256] for row in rows if (row.doc_id, row.sha256) in ours}
    return shown if len(shown) == len(rows) else None


@lru_cache(maxsize=1)
def _embedded(
    folder: Path, reader: str, options: frozenset[str], _: tuple[tuple[Path, int, int], ...]
) -> dict[tuple[str, str], Document]:
    """Return the documents of an embedded corpus by id and digest, read once while its files are the same.

    Content tells them from others, since another corpus may have documents of the same ids.
    """
    from samplers.corpus.parse import read_corpus

    return {(document.doc_id, document.sha256): document for document in read_corpus(folder, reader, options).documents}


def sample_of(source: SourceSpec, sample: Sample, corpus_path: Path) -> Drawn:
    """Return the documents that a plan's sample draws from a corpus; nothing is written."""
    from samplers.corpus.near_duplicates import near_duplicates
    from samplers.corpus.parse import read_corpus
    from samplers.corpus.readiness import readiness
    from samplers.corpus.sampling import cut_families, stratified_sample
    from samplers.registry import source_format

    reading = read_corpus(corpus_path, source.reader, sample.told)
    clusters = near_duplicates(reading.texts)
    # Near duplicates count as versions of one text, of which one is drawn; parts of one whole are drawn whole.
    families = source_format(source.reader).families
    cards = reading.cards.values()
    chosen = stratified_sample(cards, sample.size, sample.seed, families, clusters)
    for family, (drawn, whole) in cut_families(chosen, cards).items() if families == "parts" else ():
        say(f"{family} is larger than its stratum's seats: {drawn} of its {whole} documents are sampled")
    return Drawn(tuple(map(reading.shelf.document, chosen)), reading, readiness(reading, clusters))


def keep_sample(version: Version, drawn: Drawn) -> None:
    """Put a sample into the version: archive and report into .work, the manifest into the record."""
    from samplers.corpus.readiness import lines
    from samplers.feeds.names import package_file
    from samplers.registry import source_format

    for line in lines(drawn.report):
        say(line)
    if source_format(version.source.reader).families == "versions":
        say(f"sampled: {len(drawn.documents):,}, of versions and near-duplicates one each")
    write_atomic(version.work / "readiness.json", json_bytes(drawn.report))
    header = CorpusHeader(
        schema_version=1,
        source=version.source.name,
        reader=version.source.reader,
        sample=sample_to_draw(version),
        n_read=len(drawn.reading.cards),
        n_documents=len(drawn.documents),
        quarantined=[Quarantined(file=name, reason=reason) for name, reason in drawn.reading.quarantined],
        archive_sha256=write_archive(archive_path(version), drawn.documents),
    )
    rows = []
    for document in drawn.documents:
        # Where one file of govinfo is one document, the manifest says which, so that it can be fetched again.
        published = package_file(version.source.name, document.doc_id)
        read_from = drawn.reading.cards[document.doc_id].file
        rows.append(manifest_row(document, published and SourceFile(**published._asdict(), sha256=read_from)))
    # The manifest comes after the archive that it names, so that its presence means both are there.
    write_atomic(version.corpus_path, corpus_bytes(header, rows))


def manifest_row(document: Document, file: SourceFile | None = None) -> CorpusRow:
    """Return a document's row of corpus.jsonl, with the publisher's file that it was read from."""
    return CorpusRow(
        doc_id=document.doc_id,
        url=document.url,
        sha256=document.sha256,
        stratum=document.stratum,
        family=document.family,
        n_chars=len(document.text),
        status=document.status,
        file=file,
    )


def listed_documents(version: Version, corpus_path: Path | None) -> tuple[Document, ...]:
    """Return the manifest's documents as `corpus_path` holds them; InputError if one is missing or another."""
    from samplers.corpus.parse import read_corpus

    header, rows = load_corpus(version.corpus_path)
    if corpus_path is None:
        raise InputError(
            f"The documents of {version.name} are not here: {archive_fault(version)}. "
            "Copy the archive there from the machine that drew them, or give the folder that they were drawn from with "
            "--corpus-path."
        )
    # Held against the manifest: later additions to the folder are no part of the sample.
    if header.reader == EXTERNAL_READER:
        by_id = {document.doc_id: document for document in read_external(corpus_path).documents}
    else:
        reading = read_corpus(corpus_path, header.reader, header.sample.told)
        listed = [reading.cards[row.doc_id] for row in rows if row.doc_id in reading.cards]
        by_id = {card.doc_id: reading.shelf.document(card) for card in listed}
    missing = [row.doc_id for row in rows if row.doc_id not in by_id]
    changed = [row.doc_id for row in rows if row.doc_id in by_id and by_id[row.doc_id].sha256 != row.sha256]
    if missing or changed:
        groups = (("missing", missing), ("changed", changed))
        differing = "; ".join(f"{len(ids)} {what}: {', '.join(ids[:5])}" for what, ids in groups if ids)
        raise InputError(
            f"{corpus_path} does not hold the documents of {version.corpus_path} ({differing}). "
            "Restore them there, give the folder that they were drawn from, or put the archive back."
        )
    # Stratum, family and status are those of the draw: files beside the documents (a bill's status) may be others now.
    return tuple(
        replace(by_id[row.doc_id], url=row.url, stratum=row.stratum, family=row.family, status=row.status)
        for row in rows
    )


def read_external(folder: Path) -> "Collection":
    """Return the collection in a folder, its titles held against the room that chunkers have for them."""
    from samplers.sources.beir import read_collection

    return read_collection(folder, title_fits=title_fits)


def title_fits(title: str) -> bool:
    """Return whether a collection's title is short enough to be every chunk's context."""
    from chunkers.contexts import TITLE_TOKENS
    from chunkers.tokens import count_tokens

    return count_tokens(title) <= TITLE_TOKENS


def write_archive(path: Path, documents: Iterable[Document]) -> str:
    """Write the archive; return the SHA-256 of the uncompressed one: compressed bytes differ between libraries."""
    import zstandard

    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for document in documents:
            # Laid out in this way for good, since corpus.jsonl has the digest of these bytes.
            fields = {name: value for name, value in asdict(document).items() if name != "status" or value}
            content = (json.dumps(fields, sort_keys=True, indent=1, ensure_ascii=False) + "\n").encode()
            member = tarfile.TarInfo(f"documents/{document.doc_id}.json")
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    write_atomic(path, zstandard.ZstdCompressor(level=10).compress(buffer.getvalue()))
    return sha256(buffer.getvalue())


def _content(path: Path, header: CorpusHeader) -> bytes:
    """Return the tar in an archive; ValueError unless it has the manifest's digest, found before it is held whole."""
    # A bound before anything is unpacked: a few kilobytes can stand for more than fits into memory. Real texts unpack
    # to 5 to 12 times their archive. What the manifest says of them counts for nothing: it comes with the archive.
    most = 16_000_000 + 100 * path.stat().st_size
    seen, digest = 0, hashlib.sha256()
    for piece in _unpacked(path):
        seen += len(piece)
        if seen > most:
            raise ValueError(f"it unpacks to more than {most / 1e6:.0f} MB")
        digest.update(piece)
    if digest.hexdigest() != header.archive_sha256:
        raise ValueError(f"its SHA-256 is {digest.hexdigest()}, and {header.archive_sha256} is due")
    # Unpacked a second time, now that the digest vouches for it.
    return b"".join(_unpacked(path))


def _unpacked(path: Path) -> Iterator[bytes]:
    import zstandard

    try:
        with path.open("rb") as file, zstandard.ZstdDecompressor().stream_reader(file) as stream:
            while piece := stream.read(1 << 20):
                yield piece
    except zstandard.ZstdError as error:
        raise ValueError(f"it is not an archive of zstandard ({error})") from error


def _documents(content: bytes, rows: Sequence[CorpusRow]) -> tuple[Document, ...]:
    """Return the documents in a tar; ValueError if it has a link, a name too many or too few, or another content."""
    with tarfile.open(fileobj=io.BytesIO(content), mode="r:") as archive:
        # Plain files alone, and of exactly the manifest's names: neither links nor paths that lead elsewhere.
        members = archive.getmembers()
        if not all(member.type == tarfile.REGTYPE and member.sparse is None for member in members):
            raise ValueError("it holds a link, a folder or a device")
        if sorted(member.name for member in members) != sorted(f"documents/{row.doc_id}.json" for row in rows):
            raise ValueError("it holds other files than the manifest's documents")
        files = [archive.extractfile(member) for member in members]
        return tuple(_document(parse_json(file.read())) for file in files if file is not None)


_UNREADABLE = (ValueError, KeyError, TypeError, AttributeError, tarfile.TarError)
"""What a damaged or hostile archive makes the parsers raise."""


def archived_documents(version: Version) -> tuple[Document, ...] | None:
    """Return the archived documents; None if the archive is missing or is not what the manifest names.

    The archive may have been copied here from another machine: its digest, the names of its files and each document are
    held to corpus.jsonl. Nothing is written. InputNeeded if no corpus was sampled yet.
    """
    need_corpus(version)
    path, (header, rows) = archive_path(version), load_corpus(version.corpus_path)
    if not path.is_file():
        return None
    try:
        documents = _documents(_content(path, header), rows)
        pairs = zip(documents, rows, strict=True)
        # The digest may have been forged together with the manifest; each document is held to its own row.
        is_listed = all(manifest_row(document, row.file) == row for document, row in pairs)
    except _UNREADABLE:
        return None
    return documents if is_listed else None


def _document(fields: dict[str, Any]) -> Document:
    sections = tuple(
        Section(Span(**row["span"]), row["level"], row["kind"], row["label"]) for row in fields.pop("sections")
    )
    return Document(**fields, sections=sections)

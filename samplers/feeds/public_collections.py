"""Public collections into a folder of BEIR's layout: from a folder or ZIP, from BEIR's archives, from Hugging Face.

Nothing of what is read names a place to write to: an archive is read in place, member by member, within the limits of
`samplers.corpus.inputs`, and three files of fixed names are written. They appear together or not at all.
"""

import io
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import NamedTuple

from runner.base.canonical import JSON, json_bytes, sha256, write_atomic
from runner.base.errors import DocumentError, InputError
from runner.base.given_files import decoded, display, parsed, printable, quoted
from runner.base.store import disk_errors
from samplers.corpus.inputs import CorpusFile, corpus_files
from samplers.feeds.client import Client, Clock
from samplers.feeds.endpoints import ENDPOINTS, Endpoints, Refused
from samplers.feeds.request import Say
from samplers.sources.beir import collection_digests

RECORD = "collection-source.json"
"""Beside the three files: where they came from, with the SHA-256 of every file that was read and of the three."""

MOST_BYTES = 8_000_000_000
"""Written at most, and of one file that is read: MS MARCO, the largest of BEIR, has 3.1 GB of documents."""

_ROWS = 1_000
_BEIR = f"{ENDPOINTS['beir'].origin}/thakur/BEIR/datasets"
_HUB = ENDPOINTS["huggingface"].origin
_ARCHIVE_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,60}")
_DATASET_NAME = re.compile(r"[\w-][\w.-]{0,95}/[\w-][\w.-]{0,95}", re.ASCII)
_REVISION = re.compile(r"[\w.-][\w./-]{0,100}", re.ASCII)
_SHARD = re.compile(r"-\d{5}-of-\d{5}$")
_SPLIT = re.compile(r"[\w-]{1,40}", re.ASCII)
_SUFFIXES = (".jsonl", ".parquet", ".tsv")
_RELEVANCE_FOLDERS = ("qrels", "default", "data")
_IDS = ("_id", "id")
_HINT = (
    "Looked for: corpus.jsonl, queries.jsonl and qrels/SPLIT.tsv, or corpus/, queries/ and qrels/, default/ or data/ "
    "with SPLIT in .parquet or .jsonl."
)

Row = Mapping[str, JSON]


class Imported(NamedTuple):
    """How many documents, queries and judged pairs were written, and from how many files."""

    documents: int
    queries: int
    pairs: int
    files: int


@dataclass(frozen=True)
class Origin:
    """Where a collection came from; `revision` is the commit of a dataset, "" for an archive or a folder."""

    name: str
    url: str = ""
    revision: str = ""


class FetchPlan(NamedTuple):
    """How a collection is fetched: the commit or branch of a dataset, mirrors, and the most that may come."""

    revision: str = ""
    split: str = "test"
    mirrors: Mapping[str, str] = {}
    max_mb: int = 500


def import_collection(place: Path, to: Path, split: str, origin: Origin | None = None) -> Imported:
    """Write the collection at `place`, a folder or a ZIP, into the new folder `to`, in BEIR's layout.

    InputError for a place without documents, queries or judgments of the split, for a row that is none, and for a
    folder that exists.
    """
    if not _SPLIT.fullmatch(split):
        raise InputError(f"--split: {printable(split, 60)!r} is no name of a split, such as test.")
    if to.exists():
        raise InputError(f"{display(to)} exists. Give --to a new folder.")
    with disk_errors(to), corpus_files(place, "collection") as files:
        to.parent.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(dir=to.parent, prefix=f".{to.name}-") as scratch:
            made = Path(scratch) / to.name
            made.mkdir()
            done = _written(_by_role(files, split, place), made, split, origin or Origin(place.resolve().name))
            made.rename(to)
    return done


def fetch_collection(
    name: str, to: Path, plan: FetchPlan, caches: Path, say: Say, clock: Clock | None = None
) -> Imported:
    """Download a collection and write it into the new folder `to`: NAME of BEIR's archives, OWNER/NAME of the hub.

    InputError for a name that is neither and a folder that exists; BackendError for a server or a network that gave
    out, and for more than `max_mb`.
    """
    if to.exists():
        raise InputError(f"{display(to)} exists. Give --to a new folder.")
    if not (_ARCHIVE_NAME.fullmatch(name) or _DATASET_NAME.fullmatch(name)):
        raise InputError(
            f"{printable(name, 100)!r} is neither an archive of BEIR (scifact) nor OWNER/NAME of a dataset."
        )
    if plan.revision and not _REVISION.fullmatch(plan.revision):
        raise InputError(f"--revision: {printable(plan.revision, 100)!r} is no commit, branch or tag.")
    endpoints = Endpoints(plan.mirrors)
    with (
        disk_errors(to),
        TemporaryDirectory(prefix="per-source-eval-") as scratch,
        Client(endpoints, 10.0, caches, clock or Clock(), say) as client,
    ):
        limit = plan.max_mb * 1_000_000
        if "/" in name:
            place = Path(scratch) / "dataset"
            origin = _from_hub(client, name, plan, place, limit, say)
        else:
            origin, place = Origin(name, f"{_BEIR}/{name}.zip"), Path(scratch) / f"{name}.zip"
            say(f"fetching {origin.url}")
            place.write_bytes(client.file(origin.url, "zip", limit).data)
        return import_collection(place, to, plan.split, origin)


def _from_hub(client: Client, name: str, plan: FetchPlan, place: Path, limit: int, say: Say) -> Origin:
    """Put the files of a dataset that make a collection below `place`; judgments may lie in NAME-qrels beside it."""
    origin, paths = _listed(client, name, plan.revision)
    roles = {path: _role(path, plan.split) for path in paths}
    wanted = [(origin, path, path) for path, role in roles.items() if role]
    if "qrels" not in roles.values():
        other, paths = _listed(client, f"{name}-qrels", "")
        wanted += [(other, path, f"qrels/{path}") for path in paths if _role(f"qrels/{path}", plan.split)]
    for number, (source, path, kept) in enumerate(wanted):
        say(f"fetching {source.name} {printable(path)}")
        data = client.file(f"{_HUB}/datasets/{source.name}/resolve/{source.revision}/{path}", "file", limit).data
        limit -= len(data)
        target = place / f"{number:05d}" / PurePosixPath(kept).parent.name / PurePosixPath(kept).name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
    if not wanted:
        raise InputError(f"The dataset {name} has no files of a collection. {_HINT}")
    return origin


def _listed(client: Client, name: str, revision: str) -> tuple[Origin, list[str]]:
    """A dataset at its commit, and the paths of its files that are safe names; Refused for another answer."""
    url = f"{_HUB}/api/datasets/{name}" + (f"/revision/{revision}" if revision else "")
    found = client.json(url)
    sha = found.get("sha") if isinstance(found, dict) else None
    rows = found.get("siblings") if isinstance(found, dict) else None
    if not (isinstance(sha, str) and re.fullmatch(r"[0-9a-f]{40}", sha) and isinstance(rows, list)):
        raise Refused(f"{url} lists no files of a dataset at a commit.")
    paths = [row.get("rfilename") for row in rows if isinstance(row, dict)]
    return Origin(name, url, sha), sorted(
        path
        for path in paths
        if isinstance(path, str) and re.fullmatch(r"(?!\.)[\w-][\w./-]*", path, re.ASCII) and ".." not in path
    )


def _role(place: str, split: str) -> str:
    """What a file of a collection is by its place: "corpus", "queries", "qrels" of the split, or ""."""
    path = PurePosixPath(place)
    stem, folder = _SHARD.sub("", path.stem), path.parent.name
    if path.suffix not in _SUFFIXES:
        return ""
    for role in ("corpus", "queries"):
        if path.suffix != ".tsv" and (folder == role or (stem == role and folder not in _RELEVANCE_FOLDERS)):
            return role
    is_judged = (folder in _RELEVANCE_FOLDERS and stem == split) or (stem == "qrels" and split == "test")
    return "qrels" if is_judged else ""


def _by_role(files: Sequence[CorpusFile], split: str, place: Path) -> dict[str, list[CorpusFile]]:
    found: dict[str, list[CorpusFile]] = {"corpus": [], "queries": [], "qrels": []}
    for file in files:
        role = _role(file.place, split)
        if role and file.is_regular and not file.leads_out:
            found[role].append(file)
    if lacking := [role for role, own in found.items() if not own]:
        raise InputError(f"{display(place)} has no {' and no '.join(lacking)} (split {split}). {_HINT}")
    return found


def _written(found: Mapping[str, Sequence[CorpusFile]], made: Path, split: str, origin: Origin) -> Imported:
    read: dict[str, str] = {}
    qrels_name = "qrels/test.tsv" if split == "test" else "qrels.tsv"
    (made / qrels_name).parent.mkdir(exist_ok=True)
    makers: dict[str, tuple[str, str, Callable[[Row, str], str]]] = {
        "corpus": ("corpus.jsonl", "", lambda row, where: _json_row(row, where, ("title", "text"))),
        "queries": ("queries.jsonl", "", lambda row, where: _json_row(row, where, ("text",))),
        "qrels": (qrels_name, "query-id\tcorpus-id\tscore\n", _qrels_row),
    }
    counts: dict[str, int] = {}
    room = MOST_BYTES
    for role, (name, head, line) in makers.items():
        with (made / name).open("w", encoding="utf-8", newline="\n") as out:
            out.write(head)
            count = 0
            for file in found[role]:
                for where, row in _rows(file, read):
                    text = line(row, where)
                    room -= len(text)
                    if room < 0:
                        raise InputError(f"{where}: the collection has more than {MOST_BYTES / 1e9:.0f} GB of text.")
                    out.write(text)
                    count += 1
        if not count:
            raise InputError(f"{printable(found[role][0].place)} has no row. {_HINT}")
        counts[role] = count
    record = {
        "schema_version": 1,
        "name": origin.name,
        "url": origin.url,
        "revision": origin.revision,
        "split": split,
        "read": read,
        "written": collection_digests(made)._asdict(),
    }
    write_atomic(made / RECORD, json_bytes(record))
    return Imported(counts["corpus"], counts["queries"], counts["qrels"], len(read))


def _rows(file: CorpusFile, read: dict[str, str]) -> Iterator[tuple[str, Row]]:
    """Every row of a file with its place; the file's digest goes into `read`. InputError for what cannot be read."""
    place = printable(file.place, 500)
    if file.size > MOST_BYTES:
        raise InputError(f"{place} has {file.size / 1e9:.1f} GB, more than the {MOST_BYTES / 1e9:.0f} GB allowed.")
    try:
        data = file.load()
    except DocumentError as error:
        raise InputError(f"{place}: {error.reason}. Fetch the collection again, or take the file out.") from error
    read[place] = sha256(data)
    if file.place.endswith(".parquet"):
        yield from _parquet_rows(data, place)
        return
    lines = enumerate(io.BytesIO(data), start=1)
    if file.place.endswith(".jsonl"):
        for number, line in lines:
            if line.strip():
                row = parsed(decoded(line, f"{place}:{number}"), f"{place}:{number}", "One object a line is expected.")
                if not isinstance(row, dict):
                    raise InputError(f"{place}:{number}: {quoted(row)}, not an object.")
                yield f"{place}:{number}", row
        return
    for number, line in lines:
        cells = decoded(line, f"{place}:{number}").rstrip("\r\n").split("\t")
        if cells != [""] and len(cells) != 3:
            raise InputError(f"{place}:{number}: {len(cells)} columns, and three are expected, parted by tabs.")
        if cells == [""] or (number == 1 and not re.fullmatch(r"-?\d+(?:\.\d+)?", cells[-1])):
            continue  # a header
        yield f"{place}:{number}", dict(zip(("query-id", "corpus-id", "score"), cells, strict=True))


def _parquet_rows(data: bytes, place: str) -> Iterator[tuple[str, Row]]:
    try:
        import pyarrow as arrow  # type: ignore[import-untyped]
        import pyarrow.parquet as parquet  # type: ignore[import-untyped]
    except ImportError as error:
        raise InputError(f"{place} is Parquet, which pyarrow reads: pip install 'per-source-eval[export]'.") from error
    number = 0
    try:
        table = parquet.ParquetFile(io.BytesIO(data))
        known = [name for name in table.schema_arrow.names if name in _COLUMNS]
        for batch in table.iter_batches(batch_size=_ROWS, columns=known):
            for row in batch.to_pylist():
                number += 1
                yield f"{place}, row {number}", row
    except (arrow.ArrowException, OSError, ValueError) as error:
        raise InputError(f"{place} is no Parquet that can be read ({printable(str(error), 200)}).") from error


_COLUMNS = frozenset((*_IDS, "title", "text", "query-id", "corpus-id", "score"))


def _json_row(row: Row, where: str, fields: Sequence[str]) -> str:
    known = next((name for name in _IDS if name in row), "_id")
    made: dict[str, JSON] = {"_id": _word(row, known, where)}
    for name in fields:
        value = row.get(name)
        if not isinstance(value, str | None):
            raise InputError(f"{where}: {name} is {quoted(value)}, not a text.")
        made[name] = value or ""
    return json.dumps(made, ensure_ascii=False) + "\n"


def _qrels_row(row: Row, where: str) -> str:
    score = row.get("score")
    if isinstance(score, float) and score.is_integer():
        score = int(score)
    words = [_word({**row, "score": score}, name, where) for name in ("query-id", "corpus-id", "score")]
    return "\t".join(words) + "\n"


def _word(row: Row, name: str, where: str) -> str:
    """A field without white space as text; hubs have numbers for ids too."""
    value = row.get(name)
    text = str(value) if isinstance(value, int) and not isinstance(value, bool) else value
    if not isinstance(text, str) or not re.fullmatch(r"\S+", text):
        raise InputError(f"{where}: {name} is {quoted(value)}, not a text without white space.")
    return text

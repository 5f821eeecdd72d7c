"""queries.yaml as people keep it: read with its problems named, and added to with every byte that was there kept."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from runner.base.canonical import refuse_special, write_atomic
from runner.base.csv_files import QUERY, QUERY_FACTS, Faults, csv_rows
from runner.base.errors import InputError
from runner.base.given_files import printable
from runner.base.plain_yaml import read_yaml
from runner.base.records import ASKED, PERSON, by_model
from runner.base.schema import checked
from runner.base.store import disk_errors
from runner.eval_set.shapes.queries import Queries, QueryRow
from runner.queries.kinds import KINDS

MOST_QUERIES = 2_000
"""Of one file. People judge a few hundred; comparing each with each is quadratic."""

_HEAD = """\
# Queries of {name}. source_document is the document that was being read; it is judged like any other, and no label.
schema_version: 1
queries:
"""
_FORM = "Write the list as one item a line, each with a dash, and as the last thing in the file; then run again."
_BOM = b"\xef\xbb\xbf"


_FACTS = QUERY_FACTS | dict.fromkeys(("paraphrased", "kind", "origin", "stratum", "note"), "")


def read_queries(path: Path) -> list[QueryRow]:
    """Return the rows of a file like queries.yaml, or of a CSV file.

    An InputError names every field or row that is wrong, or an id twice.
    """
    rows = _csv_queries(path) if is_table(path) else checked(Queries, read_yaml(path), path).queries
    if twice := [query_id for query_id, count in Counter(row.id for row in rows).items() if count > 1]:
        raise InputError(f"{path} has the id {twice[0]} twice. Give every query an id of its own.")
    if len(rows) > MOST_QUERIES:
        raise InputError(f"{path} has {len(rows):,} queries; at most {MOST_QUERIES:,} are read. Split the file.")
    return rows


def is_table(path: Path) -> bool:
    """Return whether a file is CSV by its name."""
    return path.suffix.lower() == ".csv"


def _csv_queries(path: Path) -> list[QueryRow]:
    """Return the rows of a CSV file: a topic of a person's, unless columns say otherwise."""
    faults, rows, ids = Faults(), list[QueryRow](), dict[str, int]()
    for number, row in csv_rows(path, QUERY, _FACTS):
        where, query_id = f"{path}:{number}", row.get("query_id") or f"q{len(ids) + 1:02d}"
        with faults.of_row():
            text, other = (" ".join(row.get(name, "").split()) for name in ("query", "paraphrased"))
            if not text or not (text + other).isprintable():
                raise InputError(f"{where}: there is no query, or one that cannot be shown.")
            if (first := ids.setdefault(query_id, number)) != number:
                raise InputError(f"{where}: the id {printable(query_id)} is that of row {first} too.")
            fields = {
                "id": query_id,
                **({"plain": text, "paraphrased": other} if other else {"text": text}),
                "kind": row.get("kind") or "topic",
                "origin": row.get("origin") or PERSON,
                "source_document": row.get("document", ""),
                "stratum": row.get("stratum", ""),
                "note": row.get("note", ""),
            }
            rows.append(checked(QueryRow, fields, where))
    faults.stop()
    return rows


def append_queries(path: Path, rows: Sequence[QueryRow], name: str) -> None:
    """Return `path` with `rows` at the end of its list, whole or not at all; it is begun if it is not there yet.

    An InputError if the list is written so that nothing can be put at its end.
    """
    if not rows:
        return
    before = b""
    earlier: list[QueryRow] = []
    if path.exists():
        refuse_special(path)
        before, earlier = path.read_bytes(), read_queries(path)
    content = _with_rows(before, rows, name)
    with disk_errors(path):
        trouble = f"nothing can be put at the end of its list of queries. {_FORM}"
        _check_says(path, content, [*earlier, *rows], trouble)
        write_atomic(path, content)


def plain(text: str) -> str:
    """Return a query's text as duplicates are told: without regard to case and white space."""
    return " ".join(text.casefold().split())


def shown(text: str, longest: int = 80) -> str:
    """Return a text as a message shows it: a long one ends in an ellipsis, what is not printable is escaped."""
    cut = text if len(text) <= longest else text[: longest - 1].rstrip() + "\u2026"
    return printable(cut, longest)


def fresh_ids(prefix: str, known: Sequence[str], count: int) -> list[str]:
    """Return the next `count` ids of the form q07, after the highest of that form among the known."""
    endings = [query_id.removeprefix(prefix) for query_id in known if query_id.startswith(prefix)]
    numbers = [int(ending) for ending in endings if ending.isdecimal()]
    first = max(numbers, default=0) + 1
    return [f"{prefix}{number:02d}" for number in range(first, first + count)]


def origin_counts(origins: Iterable[str]) -> dict[str, int]:
    """Return how many queries are of each origin: first people's, then models', then those of a log."""
    counts = Counter(origins)
    in_order = sorted(counts, key=lambda origin: (origin in ASKED, by_model(origin), origin))
    return {origin: counts[origin] for origin in in_order}


def count_line(rows: Sequence[QueryRow]) -> str:
    """Return how many queries there are, and of which origin."""
    listed = ", ".join(f"{count} {origin}" for origin, count in origin_counts(row.origin for row in rows).items())
    return f"{counted(len(rows), 'query', 'queries')} ({listed})" if rows else "no queries"


def counted(count: int, one: str, many: str) -> str:
    """Return a number with its noun."""
    return f"{count} {one if count == 1 else many}"


def quoted(text: str) -> str:
    """Return a text as a double-quoted scalar of YAML, on one line; what is not printable is escaped."""
    return '"' + "".join(_escaped(character) for character in text) + '"'


def _with_rows(before: bytes, rows: Sequence[QueryRow], name: str) -> bytes:
    if not before.removeprefix(_BOM).strip():
        before = _HEAD.format(name=name).encode()
    # New rows follow the file's own line ends and indentation, so that every earlier byte stays.
    newline = "\r\n" if b"\r\n" in before else "\n"
    indent = _indent(before)
    ending = "" if before.endswith(b"\n") else newline
    return before + (ending + "".join(newline.join(_lines(row, indent)) + newline for row in rows)).encode()


def _indent(content: bytes) -> str:
    """Return the white space before the dashes of the list; that of a new file if none has been written."""
    lines = content.decode("utf-8", "replace").splitlines()
    head = next((number for number, line in enumerate(lines) if line.startswith("queries:")), len(lines))
    dashes = (line for line in lines[head + 1 :] if line.lstrip(" ").startswith("- "))
    first = next(dashes, "  -")
    return first[: len(first) - len(first.lstrip(" "))]


def _lines(row: QueryRow, indent: str) -> list[str]:
    # Plain where YAML can take it for nothing else ("no" is false), quoted otherwise.
    fields: dict[str, str] = {
        "id": row.id if re.fullmatch(r"[a-z]\d+", row.id) else quoted(row.id),
        **{str(wording or "text"): quoted(text) for wording, text in row.wordings.items()},
        "kind": row.kind if row.kind in KINDS else quoted(row.kind),
        "origin": row.origin,
        "source_document": quoted(row.source_document),
        "stratum": quoted(row.stratum),
        "note": quoted(row.note),
    }
    lines = [f"{name}: {value}" for name, value in fields.items()]
    return [f"{indent}- {lines[0]}", *(f"{indent}  {line}" for line in lines[1:])]


def _escaped(character: str) -> str:
    if character in '"\\':
        return f"\\{character}"
    if character.isprintable():
        return character
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _check_says(path: Path, content: bytes, expected: Sequence[QueryRow], trouble: str) -> None:
    """Check, in a file elsewhere, that the new bytes say what they should; an InputError if not."""
    with TemporaryDirectory(prefix="per-source-eval-") as folder:
        trial = Path(folder) / path.name
        trial.write_bytes(content)
        try:
            read_back = read_queries(trial)
        except InputError:
            read_back = []
    if read_back != list(expected):
        raise InputError(f"{path}: {trouble}")

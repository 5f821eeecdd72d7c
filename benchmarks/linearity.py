"""CPU seconds of reading, chunking and clustering hostile corpora at 1x and 4x: 4 is linear, 16 would be quadratic.

Each is a shape that once took the square of its size, or that could: many sections, one heading of megabytes over many
sections, many headings, many small files that are alike.
"""

import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from measuring import fastest, row, sized

from chunkers.registry import chunker
from runner.eval_set.catalog import SOURCES
from samplers.corpus.near_duplicates import near_duplicates
from samplers.corpus.parse import read_corpus
from samplers.registry import source_format


def bill(body: str) -> str:
    return f"<bill><legis-body>{body}</legis-body></bill>"


def section(n: int, text: str = "A word.") -> str:
    return f"<section><enum>{n}.</enum><header>H {n}</header><text>{text}</text></section>"


def sections(n: int) -> str:
    return bill("".join(map(section, range(n))))


def long_heading(n: int) -> str:
    """Return one heading of n words over n / 50 sections, each of which has it as context."""
    inner = "".join(section(k, "some words " * 100) for k in range(n // 50))
    return bill(f"<title><enum>I</enum><header>{'Heading ' * n}</header>{inner}</title>")


def headings(n: int) -> str:
    heads = "".join(f'<HD SOURCE="HD{1 + k % 3}">Heading {k}</HD><P>A word.</P>' for k in range(n))
    return f"<RULE><PREAMB><AGENCY>A</AGENCY><SUBJECT>S</SUBJECT></PREAMB><SUPLINF>{heads}</SUPLINF></RULE>"


def turns(n: int) -> str:
    said = "".join(f"    Mr. Name{k % 7}. A word of mine, and another.\n" for k in range(n))
    head = "<html><head><title>- A HEARING</title></head><body><pre>\n[House Hearing, 117 Congress]\n"
    return f"{head}\n    Mr. Smith. The committee will come to order.\n{said}</pre></body></html>"


FILES: dict[str, tuple[str, str, Callable[[int], str], int]] = {
    "sections of a bill": ("bills", "BILLS-117hr1ih.xml", sections, 50_000),
    "words of a heading over sections": ("bills", "BILLS-117hr1ih.xml", long_heading, 50_000),
    "headings of a rule": ("federal_register", "2026-00001.xml", headings, 25_000),
    "turns of a hearing": ("hearing_transcripts", "CHRG-117hhrg1.htm", turns, 25_000),
}
"""A source, a file name, what is in the file, and how many of those are 1x."""


def read_and_chunk(source: str, name: str, data: bytes) -> None:
    split = chunker(SOURCES[source].structural_chunker)
    for document in source_format(source).read(data, name, frozenset()).documents:
        split(document)


def small_bill(number: int) -> str:
    """Return a bill of 60 words of which three are its own: alike, and not alike enough to be one cluster."""
    words = [f"word{k}" for k in range(60)]
    for k in range(3):
        words[(number * (k + 7) + 20 * k) % 60] = f"own{number}x{k}"
    form = f"<form><congress>117th CONGRESS</congress><legis-num>H. R. {number}</legis-num></form>"
    return f"<bill>{form}<legis-body>{section(1, ' '.join(words))}</legis-body></bill>"


def cluster(folder: Path, n: int) -> float:
    folder.mkdir()
    for number in range(1, n + 1):
        (folder / f"BILLS-117hr{number}ih.xml").write_text(small_bill(number))
    return fastest(lambda: near_duplicates(read_corpus(folder, "bills").texts), 1, time.process_time)[0]


def compare(what: str, once: float, four: float) -> None:
    row(f"four times {what}, CPU seconds; once", f"{four:.2f}", f"{once:.2f}", f"{four / once:.1f} times", "4 times")


def main() -> None:
    for name, (source, file, make, most) in FILES.items():
        n = sized(most, 50)
        # Once before, so that imports and tables are not timed.
        read_and_chunk(source, file, make(n).encode())
        once, four = (
            fastest(lambda data=data, s=source, f=file: read_and_chunk(s, f, data), 1, time.process_time)[0]
            for data in (make(n).encode(), make(4 * n).encode())
        )
        compare(f"{n:,} {name}", once, four)
    n = sized(5_000, 50)
    with tempfile.TemporaryDirectory() as folder:
        once, four = (cluster(Path(folder) / str(k), n * k) for k in (1, 4))
    compare(f"{n:,} small bills that are alike", once, four)


if __name__ == "__main__":
    main()

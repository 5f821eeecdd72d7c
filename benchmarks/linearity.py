"""Seconds of reading, chunking and clustering hostile corpora at 1x, 2x and 4x.

    python benchmarks/linearity.py

Each row is a shape that once took the square of its size, or that could: many sections, many headings, one heading of
megabytes over many sections, many small files that are alike, many files of no format. Seconds are of the processor.
The last column is how much longer 4x took than 1x: 4 is linear, 16 would be quadratic.
"""

import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from measuring import timed
from sizes import sized

from chunkers.registry import chunker
from runner.base.errors import DocumentError, InputError
from runner.eval_set.catalog import SOURCES
from samplers.corpus.near_duplicates import near_duplicates
from samplers.corpus.parse import read_corpus
from samplers.corpus.readiness import readiness
from samplers.corpus.sampling import stratified_sample
from samplers.registry import source_format

TIMES = (1, 2, 4)


def bill(body: str) -> str:
    return f"<bill><legis-body>{body}</legis-body></bill>"


def section(n: int, text: str = "A word.") -> str:
    return f"<section><enum>{n}.</enum><header>H {n}</header><text>{text}</text></section>"


def sections(n: int) -> str:
    return bill("".join(map(section, range(n))))


def subsections(n: int) -> str:
    inner = "".join(f"<subsection><enum>({k})</enum><text>A word.</text></subsection>" for k in range(n))
    return bill(f"<section><enum>1.</enum>{inner}</section>")


def long_heading(n: int) -> str:
    """One heading of n words over n / 50 sections, each of which has it as context."""
    inner = "".join(section(k, "some words " * 100) for k in range(n // 50))
    return bill(f"<title><enum>I</enum><header>{'Heading ' * n}</header>{inner}</title>")


def short_titles(n: int) -> str:
    titles = "".join(f"<quote><short-title>Act {k}</short-title></quote>" for k in range(n))
    return bill(f"<section><text>{titles}</text></section>")


def accounts(n: int) -> str:
    kinds = ("major", "intermediate", "small")
    heads = ((kinds[k % 3], k) for k in range(n))
    return bill("".join(f"<appropriations-{k}><header>H {n}</header></appropriations-{k}>" for k, n in heads))


def markdown_headings(n: int) -> str:
    return (
        "# H.R. 1\n\n- Congress: 117\n\n## Full Bill Text\n\n### IH\n\n"
        "- Source: https://x/BILLS-117hr1ih.xml\n\nA BILL\n\n" + "".join(f"#### {k}. H{k}\n\n" for k in range(n))
    )


def headings(n: int) -> str:
    heads = "".join(f'<HD SOURCE="HD{1 + k % 3}">Heading {k}</HD><P>A word.</P>' for k in range(n))
    return f"<RULE><PREAMB><AGENCY>A</AGENCY><SUBJECT>S</SUBJECT></PREAMB><SUPLINF>{heads}</SUPLINF></RULE>"


def code_sections(n: int) -> str:
    return (
        '<DIV5 N="1" TYPE="PART"><HEAD>PART 1—P</HEAD>'
        + "".join(f'<DIV8 N="1.{k}" TYPE="SECTION"><HEAD>§ 1.{k} H.</HEAD><P>A word.</P></DIV8>' for k in range(n))
        + "</DIV5>"
    )


def turns(n: int) -> str:
    said = "".join(f"    Mr. Name{k % 7}. A word of mine, and another.\n" for k in range(n))
    head = "<html><head><title>- A HEARING</title></head><body><pre>\n[House Hearing, 117 Congress]\n"
    return f"{head}\n    Mr. Smith. The committee will come to order.\n{said}</pre></body></html>"


FILES: dict[str, tuple[str, str, Callable[[int], str], int]] = {
    "sections of a bill": ("bills", "BILLS-117hr1ih.xml", sections, 50_000),
    "subsections of a section": ("bills", "BILLS-117hr1ih.xml", subsections, 50_000),
    "words of a heading over sections": ("bills", "BILLS-117hr1ih.xml", long_heading, 50_000),
    "short titles in a section": ("bills", "BILLS-117hr1ih.xml", short_titles, 50_000),
    "headings of accounts": ("bills", "BILLS-117hr1ih.xml", accounts, 25_000),
    "headings in markdown": ("bills", "hr1.md", markdown_headings, 25_000),
    "headings of a rule": ("federal_register", "2026-00001.xml", headings, 25_000),
    "sections of a part of the CFR": ("ecfr_and_cfr", "ECFR-title1-part1.xml", code_sections, 25_000),
    "turns of a hearing": ("hearing_transcripts", "CHRG-117hhrg1.htm", turns, 25_000),
}
"""A source, a file name, what is in the file, and how many of those are 1x."""


def read_and_chunk(source: str, name: str, data: bytes) -> None:
    split = chunker(SOURCES[source].structural_chunker)
    for document in source_format(source).read(data, name, frozenset()).documents:
        split(document)


def small_bill(number: int) -> str:
    """A bill of 60 words of which three are its own: alike, and not alike enough to be one cluster."""
    words = [f"word{k}" for k in range(60)]
    for k in range(3):
        words[(number * (k + 7) + 20 * k) % 60] = f"own{number}x{k}"
    form = f"<form><congress>117th CONGRESS</congress><legis-num>H. R. {number}</legis-num></form>"
    return f"<bill>{form}<legis-body>{section(1, ' '.join(words))}</legis-body></bill>"


def junk(number: int) -> str:
    return f"junk {number} and words of no format\n" * 500


def corpus(folder: Path, file: Callable[[int], str], n: int) -> Path:
    folder.mkdir()
    for number in range(1, n + 1):
        (folder / f"BILLS-117hr{number}ih.xml").write_text(file(number))
    return folder


def whole_corpus(folder: Path) -> None:
    reading = read_corpus(folder, "bills")
    clusters = near_duplicates(reading.documents)
    stratified_sample(reading.documents, 750, 1, "versions", clusters)
    readiness(reading, clusters)


def refused_corpus(folder: Path) -> None:
    try:
        read_corpus(folder, "bills")
    except InputError:
        return
    raise RuntimeError("a folder of junk was read")


def row(name: str, n: int, works: list[Callable[[], object]]) -> None:
    seconds = [timed(work, time.process_time)[0] for work in works]
    each = "".join(f"{taken:9.2f}" for taken in seconds)
    print(f"{name:36} {n * TIMES[-1]:9,}{each} {seconds[-1] / seconds[0]:8.1f}", flush=True)


def main() -> None:
    print(f"{'what':36} {'n at 4x':>9}" + "".join(f"{f'{k}x, s':>9}" for k in TIMES) + f" {'4x / 1x':>8}")
    for name, (source, file_name, make, most) in FILES.items():
        n = sized(most, 50)
        read_and_chunk(source, file_name, make(n).encode())
        inputs = [make(n * k).encode() for k in TIMES]
        row(name, n, [lambda d=data, s=source, f=file_name: read_and_chunk(s, f, d) for data in inputs])
    for name, file, work, most in (
        ("small bills that are alike", small_bill, whole_corpus, 5_000),
        ("files of no format", junk, refused_corpus, 5_000),
    ):
        n = sized(most, 50)
        with tempfile.TemporaryDirectory() as folder:
            places = [corpus(Path(folder) / str(k), file, n * k) for k in TIMES]
            row(name, n, [lambda p=place, w=work: w(p) for place in places])


if __name__ == "__main__":
    try:
        main()
    except DocumentError as error:
        raise SystemExit(f"a shape is not read any more: {error}") from error

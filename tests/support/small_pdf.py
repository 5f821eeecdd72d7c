"""PDF files of our own words, written by hand: lines of text at given places, and the parts of broken files."""

import zlib
from collections.abc import Sequence
from typing import NamedTuple


class Put(NamedTuple):
    """A line of text: its lower left corner in points from the page's lower left, its size, and its weight."""

    x: float
    y: float
    text: str
    size: float = 12
    bold: bool = False


def column(lines: Sequence[str], top: float = 700, left: float = 90, pitch: float = 14) -> list[Put]:
    """Lines below one another; an empty one leaves a gap, and one that begins with "!" is bold."""
    return [
        Put(left, top - pitch * place, line.removeprefix("!"), bold=line.startswith("!"))
        for place, line in enumerate(lines)
        if line
    ]


def pdf(pages: Sequence[Sequence[Put]], extra: str = "") -> bytes:
    """A file with one page for each list of lines; `extra` are further entries of every page's dictionary."""
    streams = [_content(page) for page in pages]
    kids = " ".join(f"{5 + 2 * n} 0 R" for n in range(len(pages)))
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>".encode(),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Times-Roman /Encoding /WinAnsiEncoding >>",
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Times-Bold /Encoding /WinAnsiEncoding >>",
    ]
    for n, stream in enumerate(streams):
        objects.append(
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents {6 + 2 * n} 0 R {extra} "
            "/Resources << /Font << /F1 3 0 R /F2 4 0 R >> >> >>".encode()
        )
        objects.append(stream_object(stream))
    return file_of(objects)


def stream_object(data: bytes) -> bytes:
    """A compressed stream."""
    packed = zlib.compress(data, 9)
    return b"<< /Length %d /Filter /FlateDecode >>\nstream\n%s\nendstream" % (len(packed), packed)


def file_of(objects: Sequence[bytes], trailer: str = "/Root 1 0 R") -> bytes:
    """A file with these objects, numbered from 1."""
    data = b"%PDF-1.4\n"
    places = []
    for number, content in enumerate(objects, start=1):
        places.append(len(data))
        data += b"%d 0 obj\n%s\nendobj\n" % (number, content)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    size = len(objects) + 1
    end = f"trailer << /Size {size} {trailer} >>\nstartxref\n{len(data)}\n%%EOF\n".encode()
    return data + b"xref\n0 %d\n0000000000 65535 f \n%s%s" % (size, table, end)


def _content(page: Sequence[Put]) -> bytes:
    return b"\n".join(
        f"BT /F{1 + put.bold} {put.size} Tf 1 0 0 1 {put.x} {put.y} Tm ({_escaped(put.text)}) Tj ET".encode("cp1252")
        for put in page
    )


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("(", "\\(").replace(")", "\\)")

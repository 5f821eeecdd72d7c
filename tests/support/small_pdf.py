"""PDF files of our own words, written by hand: lines of text at given places, and the parts of broken files."""

import zlib
from collections.abc import Sequence
from typing import NamedTuple


class Put(NamedTuple):
    """A line of text and its lower left corner in points from the page's lower left."""

    x: float
    y: float
    text: str


def column(lines: Sequence[str], top: float = 700) -> list[Put]:
    """Return lines below one another; an empty one leaves a gap."""
    return [Put(90, top - 14 * place, line) for place, line in enumerate(lines) if line]


def pdf(pages: Sequence[Sequence[Put]]) -> bytes:
    """Return a file with one page for each list of lines."""
    streams = [_content(page) for page in pages]
    kids = " ".join(f"{4 + 2 * n} 0 R" for n in range(len(pages)))
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>".encode(),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Times-Roman /Encoding /WinAnsiEncoding >>",
    ]
    for n, stream in enumerate(streams):
        objects.append(
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents {5 + 2 * n} 0 R "
            "/Resources << /Font << /F1 3 0 R >> >> >>".encode()
        )
        objects.append(stream_object(stream))
    return file_of(objects)


def stream_object(data: bytes) -> bytes:
    """Return a compressed stream."""
    packed = zlib.compress(data, 9)
    return b"<< /Length %d /Filter /FlateDecode >>\nstream\n%s\nendstream" % (len(packed), packed)


def file_of(objects: Sequence[bytes], trailer: str = "/Root 1 0 R") -> bytes:
    """Return a file with these objects, numbered from 1."""
    data = b"%PDF-1.4\n"
    offsets = []
    for number, content in enumerate(objects, start=1):
        offsets.append(len(data))
        data += b"%d 0 obj\n%s\nendobj\n" % (number, content)
    table = b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    size = len(objects) + 1
    end = f"trailer << /Size {size} {trailer} >>\nstartxref\n{len(data)}\n%%EOF\n".encode()
    return data + b"xref\n0 %d\n0000000000 65535 f \n%s%s" % (size, table, end)


def _content(page: Sequence[Put]) -> bytes:
    return b"\n".join(
        f"BT /F1 12 Tf 1 0 0 1 {put.x} {put.y} Tm ({_escaped(put.text)}) Tj ET".encode("cp1252") for put in page
    )


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("(", "\\(").replace(")", "\\)")

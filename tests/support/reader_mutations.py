"""Ways to damage a file, each a function (bytes, another file's bytes, random generator) -> bytes."""

import random
import re
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

OUTSIDE = Path(__file__).parents[1] / "data" / "outside_entity.txt"
SECRET = OUTSIDE.read_text().strip()
LARGEST = 3_000_000
"""Bytes at which an input is cut off, so that repeats of repeats end."""

ENCODINGS = ("ascii", "utf-8", "utf-16", "utf-32", "utf-7", "windows-1252", "EBCDIC-CP-US", "no-such-encoding", "")
ODD = (
    "\x00", "\x01", "\x0b", "\x0c", "\x1b[2J", "\x7f", "\x85", "\u00a0", "\u00ad", "\u0301", "\u200b", "\u2028",
    "\u202e", "\ufeff", "\ufffd", "\ufffe", "\U0001d7d8", "\U000e0041", "&#0;", "&#x1b;", "&#xd800;", "&#x110000;",
    "&notreal;", "&amp", "&", "<", "]]>", "<![CDATA[", "<!--", "-->", "<?x ?>", "<!ELEMENT a ANY>",
)  # fmt: skip
DIGITS = ("²", "٣", "፩", "Ⅷ", "０", "-", "1e9", "9" * 5_000, "")
Mutation = Callable[[bytes, bytes, random.Random], bytes]

_TAG = re.compile(rb"</?([A-Za-z_][\w:.-]*)")
_PROLOG = re.compile(rb"<\?xml[^>]{0,200}\?>")


def _place(data: bytes, rng: random.Random) -> int:
    return rng.randint(0, len(data))


def _insert(data: bytes, piece: bytes, rng: random.Random) -> bytes:
    at = _place(data, rng)
    return data[:at] + piece + data[at:]


def _tag(data: bytes, rng: random.Random) -> bytes:
    tags = sorted(set(_TAG.findall(data[:200_000])))
    return rng.choice(tags) if tags else b"p"


def truncate(data: bytes, _: bytes, rng: random.Random) -> bytes:
    at = _place(data, rng)
    return data[:at] if rng.random() < 0.5 else data[min(at, 5_000) :]


def flip_bytes(data: bytes, _: bytes, rng: random.Random) -> bytes:
    changed = bytearray(data)
    for _n in range(rng.choice((1, 5, 50))):
        if changed:
            changed[rng.randrange(len(changed))] = rng.randrange(256)
    return bytes(changed)


def remove_slice(data: bytes, _: bytes, rng: random.Random) -> bytes:
    at = _place(data, rng)
    return data[:at] + data[at + rng.choice((1, 60, 5_000)) :]


def repeat_slice(data: bytes, _: bytes, rng: random.Random) -> bytes:
    at = _place(data, rng)
    piece = data[at : at + rng.choice((1, 10, 100, 5_000))]
    return _insert(data, piece * rng.choice((1, 20, 2_000)), rng)


def repeat_element(data: bytes, _: bytes, rng: random.Random) -> bytes:
    tag = _tag(data, rng)
    begin = data.find(b"<" + tag)
    end = data.find(b"</" + tag + b">", begin)
    piece = data[begin : end + len(tag) + 3] if 0 <= begin < end else b""
    count = rng.choice((2, 50, 1_000)) if piece else 0
    # A long element a thousand times over would be gigabytes before it is cut.
    return data[:begin] + piece * min(count, 1 + LARGEST // max(len(piece), 1)) + data[begin:]


def rename_tag(data: bytes, _: bytes, rng: random.Random) -> bytes:
    old, new = (
        _tag(data, rng),
        rng.choice((_tag(data, rng), b"x", b"P", b"section", b"table", b"script", b"html:p", b"ns9:num")),
    )
    return re.sub(rb"(</?)" + re.escape(old) + rb"(?=[\s/>])", rb"\g<1>" + new, data)


def drop_tags(data: bytes, _: bytes, rng: random.Random) -> bytes:
    """Drop all tags of a name, or the text in its elements."""
    tag = re.escape(_tag(data, rng))
    if rng.random() < 0.5:
        return re.sub(rb"</?" + tag + rb"(?:\s[^<>]{0,2000})?>", b"", data)
    return re.sub(rb"(<" + tag + rb"(?:\s[^<>]{0,2000})?>)[^<]{0,100000}(</" + tag + rb">)", rb"\g<1>\g<2>", data)


def change_attributes(data: bytes, _: bytes, rng: random.Random) -> bytes:
    value = rng.choice((b"", b"-1", b"9" * 5_000, b"a b", b"/us/usc/t/s", "§ ²".encode(), b"&lt;&amp;", b"../../x"))
    names = sorted(set(re.findall(rb'\s([\w:.-]{1,40})="', data[:200_000]))) or [b"id"]
    return re.sub(rb"(\s" + re.escape(rng.choice(names)) + rb'=")[^"<]{0,2000}"', rb"\g<1>" + value + b'"', data)


def huge_attribute(data: bytes, _: bytes, rng: random.Random) -> bytes:
    extra = rng.choice((b' a="' + b"x" * 1_000_000 + b'"', b"".join(b' a%d="%d"' % (n, n) for n in range(10_000))))
    tag = b"<" + _tag(data, rng)
    return data.replace(tag, tag + extra, 1)


def wrong_encoding(data: bytes, _: bytes, rng: random.Random) -> bytes:
    prolog = f'<?xml version="1.0" encoding="{rng.choice(ENCODINGS)}"?>'.encode()
    return prolog + _PROLOG.sub(b"", data, count=1)


def other_bytes(data: bytes, _: bytes, rng: random.Random) -> bytes:
    text = data.decode("utf-8", errors="replace")
    encoding = rng.choice(("utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "latin-1", "cp1252", "utf-7"))
    return text.encode(encoding, errors="replace")


def odd_characters(data: bytes, _: bytes, rng: random.Random) -> bytes:
    for _n in range(rng.choice((1, 10, 100))):
        data = _insert(data, rng.choice(ODD).encode("utf-8", errors="surrogatepass"), rng)
    return data


def odd_digits(data: bytes, _: bytes, rng: random.Random) -> bytes:
    head = data[:20_000] if rng.random() < 0.7 else data
    digit, other = str(rng.randrange(10)).encode(), rng.choice(DIGITS).encode()
    return head.replace(digit, other, rng.choice((1, 20, 400))) + data[len(head) :]


def nest_elements(data: bytes, _: bytes, rng: random.Random) -> bytes:
    tag = _tag(data, rng)
    depth = rng.choice((50, 110, 200, 255, 1_000, 10_000))
    begin, end = b"<" + tag + b">", b"</" + tag + b">"
    places = [match.end() for match in re.finditer(rb">", data[:400_000])] or [0]
    at = rng.choice(places)
    return data[:at] + begin * depth + b"deep" + end * (depth if rng.random() < 0.8 else 0) + data[at:]


def nest_signs(data: bytes, _: bytes, rng: random.Random) -> bytes:
    opening = rng.choice(
        (b"(", b"[", b"[[", b"{", b'{"a":', b">", b"> ", b"#", b"- ", b"*", b"_", b"`", b"|", b"``", b"(")
    )
    return _insert(data, opening * rng.choice((200, 10_000, 100_000)), rng)


RUNS = (
    " ", "\n", "\t", "\r", "a", "A", "1", ".", "-", "_", "=", "—", "§ ", "a ", "A. ", ". . ", " \n", "\n    ",
    "\n\n  Mr. ", "Mr. ", "(a)", "[", "<", "&", "&amp;", "<P>", "[[Page H1]]\n",
)  # fmt: skip


def long_run(data: bytes, _: bytes, rng: random.Random) -> bytes:
    piece = rng.choice(RUNS).encode()
    return _insert(data, piece * (rng.choice((20_000, 200_000, 1_000_000)) // len(piece)), rng)


def one_line(data: bytes, _: bytes, rng: random.Random) -> bytes:
    return data.replace(b"\n", rng.choice((b"", b" ", b"\r", b"\r\n", b"\n\n", b"\n ")))


def shuffle_lines(data: bytes, _: bytes, rng: random.Random) -> bytes:
    lines = data.split(b"\n")
    at = rng.randrange(len(lines))
    moved = lines[at : at + 200]
    rng.shuffle(moved)
    return b"\n".join(lines[:at] + moved + lines[at + 200 :])


def splice(data: bytes, other: bytes, rng: random.Random) -> bytes:
    return data[: _place(data, rng)] + other[_place(other, rng) :]


def namespaces(data: bytes, _: bytes, rng: random.Random) -> bytes:
    uri = rng.choice((b"http://schemas.gpo.gov/xml/uslm", b"http://www.w3.org/1999/xhtml", b"", b"urn:x", b"not a uri"))
    tag = _tag(data, rng)
    if rng.random() < 0.5:
        return re.sub(rb"<" + re.escape(tag) + rb"(?=[\s/>])", b"<" + tag + b' xmlns="' + uri + b'"', data)
    prefixed = re.sub(rb"(</?)" + re.escape(tag) + rb"(?=[\s/>])", rb"\g<1>zz:" + tag, data)
    if rng.random() < 0.2:
        return prefixed
    return re.sub(rb"(<[A-Za-z][\w:.-]*)", rb'\g<1> xmlns:zz="' + uri + b'"', prefixed, count=1)


def _with_doctype(data: bytes, subset: str, reference: bytes, rng: random.Random) -> bytes:
    body = re.sub(rb"<!DOCTYPE[^>]{0,2000}>", b"", _PROLOG.sub(b"", data, count=1), count=1)
    places = [match.end() for match in re.finditer(rb"<[A-Za-z][^<>]{0,500}>", body[:400_000])] or [len(body)]
    at = rng.choice(places)
    return subset.encode() + body[:at] + reference + body[at:]


def entity_bomb(data: bytes, _: bytes, rng: random.Random) -> bytes:
    names = [f"e{n}" for n in range(rng.choice((3, 10, 30)))]
    rows = "".join(f'<!ENTITY {name} "{f"&{before};" * 10}">' for before, name in pairwise(names))
    subset = f'<!DOCTYPE a [<!ENTITY {names[0]} "ha">{rows}]>'
    if rng.random() < 0.3:
        subset = '<!DOCTYPE a [<!ENTITY a "&b;"><!ENTITY b "&a;">]>'
        return _with_doctype(data, subset, b"&a;", rng)
    return _with_doctype(data, subset, f"&{names[-1]};".encode(), rng)


def outside_entity(data: bytes, _: bytes, rng: random.Random) -> bytes:
    uri = OUTSIDE.as_uri()
    include = f'<xi:include xmlns:xi="http://www.w3.org/2001/XInclude" href="{uri}" parse="text"/>'
    subset, reference = rng.choice(
        (
            (f'<!DOCTYPE a [<!ENTITY x SYSTEM "{uri}">]>', "&x;"),
            (f'<!DOCTYPE a [<!ENTITY % x SYSTEM "{uri}"> %x;]>', ""),
            (f'<!DOCTYPE a SYSTEM "{uri}">', "&x;"),
            ("", include),
            (f'<?xml-stylesheet href="{uri}"?>', ""),
        )
    )
    return _with_doctype(data, subset, reference.encode(), rng)


def json_values(data: bytes, _: bytes, rng: random.Random) -> bytes:
    value = rng.choice(
        (b"null", b"1e999", b"NaN", b"[]", b"{}", b"-0", b"true", b'"\\ud800"', b'"\\u0000"', b"9" * 5_000)
    )
    keys = sorted(set(re.findall(rb'"(\w{1,30})"\s?:', data[:200_000]))) or [b"a"]
    return re.sub(
        rb'("' + re.escape(rng.choice(keys)) + rb'"\s?:\s?)("[^"]{0,100000}"|\[[^\]]{0,100000}\]|[\w.-]+)',
        rb"\g<1>" + value.replace(b"\\", rb"\\"),
        data,
    )


BLANKS = (
    *(b"", b" ", b"\n" * 1000, b"\x00" * 1000, b"\xef\xbb\xbf", b"\xff\xfe"),
    *(b"<a/>", b"<html/>", b"{}", b"[]", b"null", b"%PDF-1.7"),
)

GENERAL: tuple[Mutation, ...] = (
    *(truncate, flip_bytes, remove_slice, repeat_slice, other_bytes, odd_characters, odd_digits, nest_signs),
    *(long_run, one_line, shuffle_lines, splice),
)
OF_MARKUP: tuple[Mutation, ...] = (
    *(repeat_element, rename_tag, drop_tags, change_attributes, huge_attribute, wrong_encoding),
    *(nest_elements, namespaces, entity_bomb, outside_entity),
)


def mutated(data: bytes, other: bytes, rng: random.Random) -> tuple[bytes, str]:
    """Return the damaged bytes and the names of what was done, one to three things; one in a hundred is blank."""
    if rng.random() < 0.01:
        return rng.choice(BLANKS), "blank"
    kinds = [*GENERAL]
    if data.lstrip()[:1] == b"{":
        kinds += [json_values] * 6
    elif b"</" in data[:200_000]:
        kinds += OF_MARKUP
    chosen = [rng.choice(kinds) for _ in range(rng.choice((1, 1, 2, 3)))]
    for mutation in chosen:
        data = mutation(data, other, rng)[:LARGEST]
    return data, "+".join(mutation.__name__ for mutation in chosen)

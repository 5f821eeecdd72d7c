"""A page read back: its elements, its attributes and the words that a reader sees."""

from html.parser import HTMLParser

VOID = {"meta", "wbr", "br", "hr", "img", "link", "input"}
CELLS, ROWS = {"td", "th"}, {"td", "th", "tr"}
IMPLIED = {
    "td": CELLS,
    "th": CELLS,
    "tr": ROWS,
    "tbody": {*ROWS, "thead", "tbody"},
    "tfoot": {*ROWS, "thead", "tbody"},
    "dt": {"dt", "dd"},
    "dd": {"dt", "dd"},
    "li": {"li"},
    "option": {"option"},
}
"""What a tag ends that HTML lets stand open before it."""
OMITTED = {*ROWS, "thead", "tbody", "tfoot", "li", "dt", "dd", "option", "p"}
"""What the end of their parent ends."""


class Outline(HTMLParser):
    """Elements, attributes and text of a page; raises where an element is closed that is not open."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.text: list[str] = []
        self.feed(html)
        self.close()
        assert set(self.open) <= OMITTED

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        while self.open and self.open[-1] in IMPLIED.get(tag, ()):
            self.end()
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        while self.open and self.open[-1] != tag and self.open[-1] in OMITTED:
            self.end()
        assert self.open[-1:] == [tag]
        self.end()

    def end(self) -> None:
        if self.open.pop() in ("td", "th", "dt", "dd", "li", "p", "caption", "summary", "option"):
            self.text.append(" ")

    def handle_data(self, data: str) -> None:
        if not {"style", "script"} & set(self.open):
            self.text.append(data)

    @property
    def words(self) -> str:
        return " ".join("".join(self.text).split())


def words(html: str) -> str:
    return Outline(html).words


def section(html: str, name: str) -> str:
    """The markup of one section."""
    return html.split(f'<section aria-labelledby="{name}">')[1].split("</section>")[0]

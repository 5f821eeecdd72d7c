"""Documents with sections, written front to back."""

from runner.base.records import Document, Section, Span


class Speech:
    """A document written front to back; `part` opens a section that ends with the next call of the same level."""

    def __init__(self) -> None:
        self.text = ""
        self.sections: list[list[object]] = []

    def part(self, level: int, kind: str, label: str, words: str = "", separator: str = "\n\n") -> "Speech":
        self.end(level)
        if words:
            self.text += (separator if self.text else "") + words
        start = len(self.text) - len(words) if words else len(self.text) + (len(separator) if self.text else 0)
        self.sections.append([start, -1, level, kind, label])
        return self

    def end(self, level: int) -> None:
        for section in self.sections:
            if section[1] == -1 and section[2] >= level:  # type: ignore[operator]
                section[1] = len(self.text)

    def document(self, title: str = "Hearing: Quays") -> Document:
        self.end(0)
        sections = tuple(
            Section(Span(start, end), level, kind, label)  # type: ignore[arg-type]
            for start, end, level, kind, label in self.sections
            if start < end  # type: ignore[operator]
        )
        return Document("d", self.text, title, "s", "d", "", sections)

"""Bills of one sentence, and folders of files."""

from pathlib import Path


def bill(text: str, title: str = "", form: str = "", stage: str = "") -> bytes:
    """Return a bill with this text, catalogue title and form."""
    meta = f"<metadata><dublinCore><title>{title}</title></dublinCore></metadata><form>{form}</form>"
    return f'<bill bill-stage="{stage}">{meta}<legis-body><text>{text}</text></legis-body></bill>'.encode()


def numbered(number: int, text: str = "x") -> bytes:
    """Return the bill H.R. `number` of the 117th Congress as introduced."""
    return bill(text, title=f"117 HR {number} IH: Title")


def in_folder(folder: Path, files: dict[str, bytes]) -> Path:
    """Write the files, by their paths, below the folder and return it."""
    for name, data in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return folder

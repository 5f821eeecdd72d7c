"""Whether labels may still be added to a version."""

from runner.eval_set.lock import LOCK_NAME
from runner.eval_set.version import Version


def closed(version: Version) -> str:
    """Why no label may be added any more, "" where one may."""
    if (version.folder / LOCK_NAME).exists() or (version.folder / "decision.json").exists():
        return f"{version.number_name} is decided: its labels are final. Top-ups belong in the next version."
    rehearsal = version.folder / "rehearsal"
    if (rehearsal / "decision.json").exists() and not (rehearsal / LOCK_NAME).exists():
        return f"The rehearsal of {version.number_name} is decided but not locked. Run it with --rehearse first."
    return ""

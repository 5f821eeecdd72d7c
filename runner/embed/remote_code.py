"""Models that bring code of their own: the pinned code and no other, whatever a library would fetch.

Passing `code_revision` on does not hold: sentence-transformers 6.2.0 drops it when it resolves the first class, and
transformers then runs the repository's main branch. A folder that holds model and code needs neither.
"""

import json
import shutil
from pathlib import Path

CONFIG = "config.json"


def with_code(model: Path, code: Path, into: Path) -> Path:
    """`into`, filled with links to the model's files and copies of the code's, its config naming the code beside it."""
    for path in sorted(model.rglob("*")):
        place = into / path.relative_to(model)
        if path.is_dir():
            place.mkdir(parents=True, exist_ok=True)
        else:
            place.parent.mkdir(parents=True, exist_ok=True)
            place.symlink_to(path.resolve())
    for path in sorted(code.glob("*.py")):
        shutil.copyfile(path, into / path.name)
    config = json.loads((model / CONFIG).read_bytes())
    # "repository--module.Class" is fetched from the repository's main branch; "module.Class" lies beside the config.
    config["auto_map"] = {name: place.rpartition("--")[2] for name, place in config.get("auto_map", {}).items()}
    (into / CONFIG).unlink()
    (into / CONFIG).write_text(json.dumps(config), encoding="utf-8")
    return into

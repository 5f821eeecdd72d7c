"""Lines of a ledger as an earlier session left them."""

import secrets

from runner.base.canonical import jsonl_bytes
from runner.embed.cost.ledger import LEDGER, Entry


def entry(**changed):
    """An ended rental, with these fields changed."""
    fields = {
        "id": secrets.token_hex(8),
        "kind": "embed",
        "what": "arctic-l-v2.0",
        "on": "2026-05-01T08:00:00+00:00",
        "usd": 0.2,
        "ended": True,
        "gpu": "L4",
        "price_per_second": 0.001,
        "container_seconds": 200.0,
    }
    return Entry.model_validate(fields | changed)


def written(folder, *entries):
    """A folder whose ledger has these lines."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / LEDGER).write_bytes(jsonl_bytes(each.model_dump() for each in entries))

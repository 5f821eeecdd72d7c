"""A source's documents from its publisher: a new draw, or exactly those of a manifest."""

import os
from collections.abc import Sequence
from pathlib import Path

from runner.base.errors import BackendError, InputError
from runner.base.store import disk_errors, exclusive
from samplers.corpus.recognise import named_elsewhere
from samplers.feeds.again import fetch_again
from samplers.feeds.client import Client, Clock
from samplers.feeds.download import Downloads, take_companions
from samplers.feeds.endpoints import Endpoints
from samplers.feeds.folder import LOCK, Folder
from samplers.feeds.request import Draw, FetchReport, FetchRequest, Item, Say
from samplers.feeds.table import feed_of
from samplers.registry import source_format


def fetch(source: str, folder: Path, request: FetchRequest, say: Say, clock: Clock | None = None) -> FetchReport:
    """Return what was fetched into `folder`; a run that was stopped is finished by the next one, with the same files.

    Raise an InputError for a source without a feed, flags that it does not take, a missing key and a folder with
    other files; a BackendError for a server, a network or a disk that gave out, and if too much cannot be had.
    """
    feed_of(source, request)
    _check(source, request)
    with disk_errors(folder):
        there = next(path for path in (folder, *folder.parents, Path()) if os.path.lexists(path))
        if not there.is_dir():
            raise InputError(f"{there} is no folder. Give a new folder with --to.")
    endpoints = Endpoints(request.endpoints)
    with (
        disk_errors(folder),
        exclusive(folder / LOCK, "another fetch into this folder"),
        Client(endpoints, request.cache, clock or Clock(), say) as client,
    ):
        target = Folder(folder, request.max_mb)
        if request.documents:
            return fetch_again(client, source, target, request, say)
        return _filled(client, source, target, _drawn(client, source, target, request, say), say)


def _filled(client: Client, source: str, target: Folder, draw: Draw, say: Say) -> FetchReport:
    """Download the files of a draw and what goes with them."""
    notes = _unread(source, draw.items)
    for note in notes:
        say(note)
    files = Downloads(client, target, source_format(source).max_bytes, say)
    files.take(draw.items, "files")
    files.check(len(draw.items))
    return FetchReport(
        n_listed=draw.n_listed,
        n_files=len(draw.items),
        n_fetched=files.n_fetched,
        n_kept=files.n_kept,
        n_bytes=sum(target.rows[item.path].bytes for item in draw.items if item.path in target.rows),
        failed=tuple(files.failed),
        notes=(*notes, *take_companions(client, source, target, draw.items, say)),
    )


def _check(source: str, request: FetchRequest) -> None:
    """Raise an InputError for numbers, days and options that nothing can be fetched with."""
    if request.size < 1 or request.max_mb < 1 or request.seed < 0:
        raise InputError("--size and --max-mb are at least 1, --seed is at least 0.")
    if request.since and request.until and request.since > request.until:
        raise InputError(f"--since {request.since} is later than --until {request.until}.")
    known = source_format(source).options
    if unknown := sorted(request.options - known.keys()):
        raise InputError(f"{source} has no option {unknown[0]!r}. Its options: {', '.join(known) or 'none'}.")


def _drawn(client: Client, source: str, target: Folder, request: FetchRequest, say: Say) -> Draw:
    """Return the draw that was begun in the folder, or a new one, which is kept there."""
    name, feed = feed_of(source, request)
    header = {
        "source": source,
        "feed": name,
        "size": request.size,
        "seed": request.seed,
        "since": str(request.since or ""),
        "until": str(request.until or ""),
        "congresses": sorted(request.congresses),
        "options": sorted(request.options),
    }
    draw = target.selection(header)
    if draw is None:
        draw = feed.draw(client, request, say)
        if not draw.items:
            raise BackendError(f"The feed {name} of {source} lists nothing for these flags. Widen them.")
        target.select(header, draw)
        say(f"drew {len(draw.items):,} of {draw.n_listed:,} files")
    return draw


def _unread(source: str, items: Sequence[Item]) -> tuple[str, ...]:
    """Return notes on files that the source's reader does not take."""
    suffixes = source_format(source).suffixes
    unread = sorted({Path(item.path).suffix for item in items} - set(suffixes))
    if not unread:
        return ()
    named = sorted({named_elsewhere(b"", item.path, source) for item in items} - {""})
    return (f"The feed serves {', '.join(unread)}; the reader of {source} reads {', '.join(suffixes)} alone.", *named)

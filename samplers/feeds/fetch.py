"""A source's documents from its publisher: a new draw, or exactly those of a manifest."""

import os
from pathlib import Path

from runner.base.errors import BackendError, InputError
from runner.base.store import disk_errors, exclusive
from samplers.corpus.recognise import named_elsewhere
from samplers.feeds.again import fetch_again
from samplers.feeds.client import Client, Clock
from samplers.feeds.download import Downloads
from samplers.feeds.endpoints import Endpoints
from samplers.feeds.folder import LOCK, Folder
from samplers.feeds.request import Draw, FetchReport, FetchRequest, Say
from samplers.feeds.table import Feed, feed_of
from samplers.registry import source_format


def fetch(source: str, folder: Path, request: FetchRequest, say: Say, clock: Clock | None = None) -> FetchReport:
    """Return what was fetched into `folder`; a run that was stopped is finished by the next one, with the same files.

    Raise an InputError for a source without a feed, flags that it does not take, a missing key and a folder with
    other files; a BackendError for a server, a network or a disk that gave out, and if too much cannot be had.
    """
    name, feed = feed_of(source, request)
    _check(source, request)
    with disk_errors(folder):
        there = next(path for path in (folder, *folder.parents, Path()) if os.path.lexists(path))
        if not there.is_dir():
            raise InputError(f"{there} is not a folder. Give a new folder with --to.")
    endpoints = Endpoints(request.endpoints)
    with (
        disk_errors(folder),
        exclusive(folder / LOCK, "another fetch into this folder"),
        Client(endpoints, request.cache, clock or Clock(), say) as client,
    ):
        files = Downloads(client, source, Folder(folder, request.max_mb), say)
        if request.documents:
            fetch_again(files, request)
        else:
            _fill(files, _drawn(files, name, feed, request))
    return files.report


def _check(source: str, request: FetchRequest) -> None:
    """Raise an InputError for numbers, days and options that nothing can be fetched with."""
    if request.size < 1 or request.max_mb < 1 or request.seed < 0:
        raise InputError("--size and --max-mb are at least 1, --seed is at least 0.")
    if request.since and request.until and request.since > request.until:
        raise InputError(f"--since {request.since} is later than --until {request.until}.")
    known = source_format(source).options
    if unknown := sorted(request.options - known.keys()):
        raise InputError(f"{source} has no option {unknown[0]!r}. Its options: {', '.join(known) or 'none'}.")


def _drawn(files: Downloads, name: str, feed: Feed, request: FetchRequest) -> Draw:
    """Return the draw that was begun in the folder, or a new one, which is kept there."""
    header = {
        "source": files.source,
        "feed": name,
        "size": request.size,
        "seed": request.seed,
        "since": str(request.since or ""),
        "until": str(request.until or ""),
        "congresses": sorted(request.congresses),
        "options": sorted(request.options),
    }
    draw = files.target.selection(header)
    if draw is None:
        draw = feed.draw(files.client, request, files.say)
        if not draw.items:
            raise BackendError(f"The feed {name} of {files.source} lists nothing for these flags. Widen them.")
        files.target.select(header, draw)
        files.say(f"drew {len(draw.items):,} of {draw.n_listed:,} files")
    return draw


def _fill(files: Downloads, draw: Draw) -> None:
    """Download a draw and what goes with it; say first if the source's reader does not take such files."""
    report, source, suffixes = files.report, files.source, files.format.suffixes
    report.n_listed, report.n_files = draw.n_listed, len(draw.items)
    if unread := sorted({Path(item.path).suffix for item in draw.items} - set(suffixes)):
        named = {named_elsewhere(b"", item.path, source) for item in draw.items} - {""}
        taken = f"the reader of {source} reads {', '.join(suffixes)} alone."
        report.notes += [f"The feed serves {', '.join(unread)}; {taken}", *sorted(named)]
        for note in report.notes:
            files.say(note)
    files.fill(draw.items)
    report.n_bytes = sum(row.bytes for item in draw.items if (row := files.target.rows.get(item.path)))
    files.take_companions(draw.items)

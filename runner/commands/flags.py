"""What flags become: the version that is meant, where encoders run, how language models are asked, who signs."""

import argparse
import shlex
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from runner.base.errors import InputError
from runner.base.sent_keys import agree
from runner.commands.console import source_first
from runner.eval_set import catalog
from runner.eval_set.version import Version, collection_folder, existing_version, is_trial, newest_version

if TYPE_CHECKING:
    from runner.embed.backends import Backend
    from runner.embed.cost.prices import RemoteOptions
    from runner.eval_set.catalog import SourceSpec
    from runner.evening.costs import Asked
    from runner.judge.models.api import JudgeOptions


def version_of(options: argparse.Namespace, *, begins: bool = False, begun_as: "SourceSpec | None" = None) -> Version:
    """Return the newest version by the flags; its rehearsal with --rehearse, its trial with --try.

    An InputError if --eval-set-path names a folder without versions, unless the command `begins` one there, of
    documents of one's own `begun_as` that source.
    """
    is_tried, folder = getattr(options, "trial", False), options.eval_set_path
    in_trial = folder is not None and is_trial(folder, options.source)
    if in_trial and is_tried:
        raise InputError(f"{folder} is a trial already: leave --try out, or give the folder that it was begun from.")
    # A verb that begins nothing must not take a mistyped folder for an empty eval set.
    look_up = partial(newest_version, begun_as=begun_as) if begins else existing_version
    version = look_up(options.source, folder, rehearsal=in_trial or getattr(options, "rehearse", False))
    if not is_tried:
        return version
    from runner.evening.trial import trial_of

    return trial_of(version)


def collection_of(options: argparse.Namespace) -> Version:
    """Return the version of a public collection: beside the place of its files, if no other is named."""
    if options.eval_set_path is None and options.corpus_path is not None:
        return newest_version(options.source, collection_folder(catalog.source(options.source), options.corpus_path))
    return version_of(options, begins=options.corpus_path is not None)


def refuse_external(options: argparse.Namespace) -> None:
    """Raise InputError for a public collection, which is never decided."""
    if catalog.is_external(options.source):
        raise InputError(
            f"{options.source} is an external collection: it is compared and never decided; cells stand in its "
            "plan.yaml, and `run` scores them."
        )


def again(verb: str, options: argparse.Namespace, *, but: str = "") -> str:
    """Return the command line as given, for messages, under another verb and without the words of a choice, `but`."""
    # A choice may be given as `--by NAME` or `--by=NAME`; the first form has its value in the next word.
    words, skip, ours = [], False, ("--reason", "--by")
    for argument in options.words:
        name = argument.partition("=")[0]
        is_ours = but and (name in ours or argument == but)
        if not skip and not is_ours:
            words.append(argument)
        skip = bool(but) and name in ours and "=" not in argument
    return shlex.join([verb, *source_first(words)])


def check_signature(options: argparse.Namespace) -> None:
    """Check that name and reason are one line of printable characters, as a page and a terminal show them."""
    for flag, text in (("--by", options.by), ("--reason", options.reason)):
        if not text.isprintable():
            raise InputError(f"{flag}: {text!r} has a line break or a control character; write it on one line.")


def check_models(options: argparse.Namespace) -> None:
    """Raise InputError for flags of encoders and judges that do not go together; keep what --send-key agrees to.

    --max-usd stands by itself: a plan may name an encoder that is paid.
    """
    url, judge_url = options.encoder_url, getattr(options, "judge_url", None)
    for name, given in (("--encoder-url", url), ("--judge-url", judge_url)):
        if given is not None and not given.strip():
            raise InputError(f"{name} is empty; give an address, or leave the flag out.")
    if options.modal and url:
        raise InputError("--modal and --encoder-url are two backends; give one.")
    if options.gpu is not None and not options.modal:
        raise InputError("--gpu belongs to --modal.")
    if getattr(options, "judge", None) is None and (judge_url or getattr(options, "judge_price", None)):
        raise InputError("--judge-url and --judge-price belong to --judge.")
    agree(options.send_key)


def ceiling_of(options: argparse.Namespace) -> float:
    """Return the dollars that may be spent on a version; an InputError for an amount that is none."""
    from runner.embed.cost import MAX_USD
    from runner.embed.cost.prices import positive

    return MAX_USD if options.max_usd is None else positive("--max-usd", options.max_usd)


def remote_options(options: argparse.Namespace) -> "RemoteOptions | None":
    """Return what is asked of rented machines; None without --modal. An InputError for an unknown GPU or no amount."""
    from runner.embed.cost.prices import GPU, RemoteOptions

    return RemoteOptions(GPU if options.gpu is None else options.gpu, ceiling_of(options)) if options.modal else None


def backend_of(
    options: argparse.Namespace, version: Version | None, work: Path, containers: int | None = None
) -> "Backend":
    """Return where the flags say that encoders run, with those of the version's own plan; `work` has the ledger."""
    from runner.embed.backends import Backend, LocalBackend
    from runner.embed.plan_backend import PlanBackend

    # Each backend is imported where it is used: the local one must start without any client.
    remote = remote_options(options)
    backend: Backend = LocalBackend()
    if options.encoder_url:
        from runner.embed.over_http.encoder import HttpBackend

        backend = HttpBackend(options.encoder_url)
    elif remote is not None:
        remote = replace(remote, containers=containers or remote.containers)
        from runner.embed.cost.ledger import SPEND, Budget
        from runner.embed.cost.rental import Rentals
        from runner.embed.modal.backend import ModalBackend

        backend = ModalBackend(Rentals(Budget(work / SPEND, remote.max_usd), remote))
    if version is None:
        return backend
    # The plan is read when an encoder is asked for: the run itself may write it.
    is_planned = version.plan_path(rehearsal=version.rehearsal).exists
    return PlanBackend(backend, lambda: version.plan().encoders if is_planned() else {}, work, ceiling_of(options))


def judge_of(options: argparse.Namespace) -> "JudgeOptions | None":
    """Return how models are asked; None without --judge. An InputError for a price or an address that is none."""
    if options.judge is None:
        return None
    from runner.embed.cost.prices import given_price
    from runner.judge.models.api import JudgeOptions
    from runner.judge.models.client import judge_address

    if options.judge_url is not None:
        judge_address(options.judge_url)  # also if nothing is sent, as by --dry-run
    price = None if options.judge_price is None else given_price(options.judge_price)
    return JudgeOptions(options.judge, options.judge_url, ceiling_of(options), price)


def asked_of(options: argparse.Namespace) -> "Asked":
    """Return who is to embed and to judge by the flags, under which ceiling."""
    from runner.evening.costs import Asked

    server = ""
    if options.encoder_url:
        from runner.embed.over_http.dialects import address

        server = address(options.encoder_url, "ENCODER").endpoint
    return Asked(remote_options(options), server, judge_of(options), ceiling_of(options))

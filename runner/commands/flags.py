"""Flags that several commands share, and the records that they become: where encoders run, how models are asked."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from runner.embed.cost.prices import GPU, MAX_USD, RemoteOptions, positive

if TYPE_CHECKING:
    from collections.abc import Mapping

    from runner.embed.backends import Backend
    from runner.embed.modal.backend import ModalBackend
    from runner.eval_set.catalog import EncoderSpec
    from runner.eval_set.version import Version
    from runner.evening.costs import Asked
    from runner.judge.models.run_judges import JudgeOptions

WHERE = "where encoders run"
"""On this machine, unless a flag of this group says otherwise."""

OF_MODAL = ("gpu", "max_usd")
"""The flags that RemoteOptions holds, as argparse names them."""


def add_backend_flags(parser: argparse.ArgumentParser) -> None:
    """Local encoders unless --modal or --encoder-url is given."""
    add = parser.add_argument_group(WHERE).add_argument
    add("--modal", action="store_true", help="on Modal, by the account of `modal token new` or MODAL_TOKEN_ID/_SECRET")
    add("--gpu", metavar="NAME", help=f"Modal's name of the GPU; default {GPU}, 'cpu' for none")
    add("--max-usd", type=dollars, metavar="USD", help=f"stop before more is spent on a version; default {MAX_USD:.0f}")
    add(
        "--encoder-url",
        metavar="URL",
        help="on a server: .../v1/embeddings, or TEI's .../embed; key PSE_ENCODER_API_KEY",
    )


def check_backend_flags(parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    """Check the backend's flags; a usage error for those that do not go together.

    --max-usd stands by itself: a plan may name an encoder that is paid.
    """
    if options.encoder_url is not None and not options.encoder_url.strip():
        parser.error("--encoder-url is empty; give an address, or leave the flag out to embed on this machine")
    if options.modal and options.encoder_url:
        parser.error("--modal and --encoder-url are two backends; give one")
    if options.gpu is not None and not options.modal:
        parser.error("--gpu belongs to --modal")


def remote_options(options: argparse.Namespace) -> RemoteOptions | None:
    """What is asked of rented machines; None without --modal. An InputError for an unknown GPU or no amount."""
    if not options.modal:
        return None
    return RemoteOptions(**{name: getattr(options, name) for name in OF_MODAL if getattr(options, name) is not None})


def backend_from(options: argparse.Namespace, folder: Path) -> "Backend":
    """Where the flags say that encoders run; what it spends is counted in the ledger of `folder`, a version's work."""
    from runner.embed.backends import LocalBackend

    if options.encoder_url:
        from runner.embed.over_http.encoder import HttpBackend

        return HttpBackend(options.encoder_url)
    remote = remote_options(options)
    return LocalBackend() if remote is None else modal_backend(remote, folder)


def with_own_encoders(backend: "Backend", version: "Version", options: argparse.Namespace, work: Path) -> "Backend":
    """The backend with the encoders of the version's plan, if it has one; services are charged to `work`'s ledger."""
    from runner.embed.plan_backend import PlanBackend

    max_usd = MAX_USD if options.max_usd is None else options.max_usd

    def own() -> "Mapping[str, EncoderSpec]":
        return version.plan().own if version.plan_path(rehearsal=version.rehearsal).exists() else {}

    return PlanBackend(backend, own, work, max_usd)


def asked_of(options: argparse.Namespace) -> "Asked":
    """Return who is to embed and to judge by the flags, under which ceiling."""
    from runner.evening.costs import Asked

    server = ""
    if options.encoder_url:
        from runner.embed.over_http.dialects import address

        server = address(options.encoder_url, "ENCODER").endpoint
    ceiling = MAX_USD if options.max_usd is None else positive("--max-usd", options.max_usd)
    return Asked(remote_options(options), server, judge_options(options), ceiling)


def modal_backend(remote: RemoteOptions, folder: Path) -> "ModalBackend":
    """Encoders on Modal, what they cost counted in the ledger of `folder`."""
    from runner.embed.cost.budget import Meter
    from runner.embed.cost.ledger import SPEND
    from runner.embed.modal.backend import ModalBackend

    return ModalBackend(Meter.of(folder / SPEND, remote), remote)


def dollars(text: str) -> float:
    """An amount of dollars, as argparse reads it."""
    try:
        return float(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r} is not an amount of dollars") from error


MODELS = "language models"


def add_judge_flags(parser: argparse.ArgumentParser, what: str = "") -> None:
    """How language models are asked; with --judge, if `what` says what the models do."""
    group = parser.add_argument_group(MODELS)
    if what:
        parser.add_argument(
            "--judge",
            nargs="?",
            const="messages",
            choices=("messages", "batches"),
            metavar="HOW",
            help=f"{what}: 'messages' at once (default), 'batches' by Message Batches, half the price, up to a day",
        )
    group.add_argument("--judge-url", metavar="URL", help="an OpenAI-compatible server, or a proxy for Anthropic's API")
    group.add_argument("--judge-price", metavar="IN,OUT", help="dollars a million tokens, in place of the dated table")


def check_judge_flags(parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    """Check the judge's flags; a usage error for those that do not go together."""
    if options.judge is None and (options.judge_url is not None or options.judge_price is not None):
        parser.error("--judge-url and --judge-price belong to --judge")
    if options.judge_url is not None and not options.judge_url.strip():
        parser.error("--judge-url is empty; give an address, or leave the flag out")


def judge_options(options: argparse.Namespace) -> "JudgeOptions | None":
    """How models are asked; None without --judge. An InputError for a price or an address that is none."""
    if options.judge is None:
        return None
    from runner.judge.models.client import judge_address
    from runner.judge.models.prices import given_price
    from runner.judge.models.run_judges import JudgeOptions

    if options.judge_url is not None:
        judge_address(options.judge_url)  # also if nothing is sent, as by --dry-run
    price = None if options.judge_price is None else given_price(options.judge_price)
    max_usd = MAX_USD if options.max_usd is None else positive("--max-usd", options.max_usd)
    return JudgeOptions(options.judge, options.judge_url, max_usd, price)

"""The flags that say how language models are asked, the same for every command that asks one."""

import argparse
from typing import TYPE_CHECKING

from runner.embed.cost.prices import MAX_USD, positive

if TYPE_CHECKING:
    from runner.judge.models.run_judges import JudgeOptions


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
    group.add_argument("--judge-key-in-clear", action="store_true", help="send the key to a public http:// address too")
    group.add_argument("--judge-price", metavar="IN,OUT", help="dollars a million tokens, in place of the dated table")


def check_judge_flags(parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    """Check the judge's flags; a usage error for those that do not go together."""
    if options.judge is None and (options.judge_url is not None or options.judge_price is not None):
        parser.error("--judge-url and --judge-price belong to --judge")
    if options.judge_key_in_clear and options.judge_url is None:
        parser.error("--judge-key-in-clear belongs to --judge-url")
    if options.judge_url is not None and not options.judge_url.strip():
        parser.error("--judge-url is empty; give an address, or leave the flag out")


def judge_options(options: argparse.Namespace) -> "JudgeOptions | None":
    """How models are asked; None without --judge. An InputError for a price or an address that is none."""
    if options.judge is None:
        return None
    from runner.judge.models.prices import given_price
    from runner.judge.models.run_judges import JudgeOptions
    from runner.judge.models.service import judge_address

    if options.judge_url is not None:
        judge_address(options.judge_url)  # also if nothing is sent, as by --dry-run
    price = None if options.judge_price is None else given_price(options.judge_price)
    max_usd = MAX_USD if options.max_usd is None else positive("--max-usd", options.max_usd)
    return JudgeOptions(options.judge, options.judge_url, max_usd, price, options.judge_key_in_clear)

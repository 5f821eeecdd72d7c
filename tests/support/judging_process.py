"""A small set judged through the loopback Anthropic stand-in, here or in a process that a test kills."""

import os
import signal
from pathlib import Path

from runner.base.http_client import Patience
from runner.embed.cost.ledger import SPEND, Budget
from runner.embed.cost.prices import price_of
from runner.eval_set.batches import batch_files, read_batch
from runner.eval_set.version import Version
from runner.judge.answers import Importer
from runner.judge.models.api import RECORDS
from runner.judge.models.claude import ClaudeMessages
from runner.judge.models.claude_batches import ClaudeBatches
from runner.judge.models.client import JudgeClient, Way
from runner.judge.models.judging import Judged, Judging
from runner.judge.models.openai_chat import OpenAIChat
from tests.support.evening_process import before_each_step
from tests.support.small_set import make_version

MODEL = "claude-sonnet-4-6"
DAY = "2026-01-31"
KEY = "key-of-a-test-0123456789"
DOLLARS = 5.0
HURRIED = Patience(sleep=lambda _: None)


def model_of(version: Version, how: str, url: str, *, timeout: float = 20.0) -> JudgeClient:
    """The model, asked through `how`: messages, batches, chat."""
    price, way = price_of(MODEL), Way(url=url, timeout=timeout, patience=HURRIED)
    budget = Budget(version.work / SPEND, DOLLARS)
    if how == "batches":
        return ClaudeBatches(MODEL, budget, price.in_batches(), way, version.work / RECORDS, poll_seconds=0.001)
    return (OpenAIChat if how == "chat" else ClaudeMessages)(MODEL, budget, price, way)


def judge(version: Version, how: str, url: str, *, timeout: float = 20.0) -> Judged:
    """All exported batches of the version judged and imported."""
    batches = {path.stem: read_batch(path) for path in batch_files(version.judging)}
    with model_of(version, how, url, timeout=timeout) as model:
        return Judging(version, batches, model, lambda given: Importer(version).take(given), today=lambda: DAY).run()


def judge_in(folder: Path, how: str, url: str, last: int | None, total: Path) -> None:
    """`judge` in this process, killed just before its file step number `last`; how many steps it took, into `total`."""
    os.environ["ANTHROPIC_API_KEY"] = KEY
    version = make_version(folder)
    steps: list[int] = []

    def counted(step: int) -> None:
        steps.append(step)
        if step == last:
            os.kill(os.getpid(), signal.SIGKILL)

    before_each_step(version, counted)
    judge(version, how, url)
    total.write_text(str(len(steps)))

"""Evenings that are killed, at every write and at random moments, and then finished: always the same bytes."""

import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from multiprocessing.process import BaseProcess
from pathlib import Path

from runner.base.canonical import digest, file_sha256, read_json
from runner.base.places import CACHE_VARIABLE, CHECKOUT
from runner.base.store import exclusive
from runner.embed.encoder import Encoder
from runner.embed.local_encoder import encoder_for
from runner.eval_set.lock import verify_lock
from tests.soak.trials import Kind, Trial
from tests.support.evening_process import run, run_counting, run_until
from tests.support.forked import processes
from tests.support.small_set import fake_encoders, make_version

STATIC = "minilm-static-384"
WITH_CLOCK = {"receipt.json", "results.html", "lock.json", "decision.json"}
"""Files that say when, or how long it took."""


def encoders(name: str) -> Encoder:
    """The packaged static table by its name, and words in place of the model that takes seconds."""
    return encoder_for(name) if name == STATIC else fake_encoders(name)


def small(work: Path, numbers: Sequence[int], seed: int) -> Iterator[Trial]:
    """Evenings over the small set: the first ones killed once, each at another write, the rest up to three times."""
    processes.set_forkserver_preload(["tests.soak.kills", "tests.support.unsynced", "tokenizers", "bm25s"])
    whole = work / "small"
    with exclusive(work / "small.lock", "a soak"):
        if not (whole / "steps").exists():
            shutil.rmtree(whole, ignore_errors=True)
            _joined(_start(run_counting, whole, work / "steps", encoders))
            (work / "steps").replace(whole / "steps")
    steps, expected = int((whole / "steps").read_text()), record(make_version(whole).folder)
    for number in numbers:
        began = time.perf_counter()
        rng = random.Random(f"kills {seed} {number}")
        with tempfile.TemporaryDirectory(dir=work) as name:
            folder = Path(name)
            if number < steps:
                what = f"write {number + 1} of {steps}"
                codes = [_joined(_start(run_until, folder, number + 1, encoders))]
            else:
                waits = [rng.uniform(0, 2.0) for _ in range(rng.randint(1, 3))]
                what, codes = "after " + ", ".join(f"{wait:.2f} s" for wait in waits), []
                for wait in waits:
                    process = _start(run, folder, encoders=encoders)
                    process.join(timeout=wait)
                    process.kill()
                    codes.append(_joined(process))
            last = _joined(_start(run, folder, encoders=encoders))
            found = _after(last, make_version(folder).folder, expected)
        n_killed = sum(code == -9 for code in codes)
        outcome = "wrong" if found else "same bytes"
        yield Trial("kills", number, n_killed, what, outcome, time.perf_counter() - began, found)


def _start(target: object, *arguments: object, **named: object) -> BaseProcess:
    process = processes.Process(target=target, args=arguments, kwargs=named)  # type: ignore[arg-type]
    process.start()
    return process


def _joined(process: BaseProcess) -> int | None:
    process.join(timeout=300)
    return process.exitcode


def record(version: Path) -> dict[str, str]:
    """Digests of a version's files by name, without those of a clock; of the decision all but its day."""
    paths = [path for path in sorted(version.rglob("*")) if path.is_file() and path.name not in WITH_CLOCK]
    decision = read_json(version / "decision.json")
    decided = {name: value for name, value in decision.items() if name != "decided_on"}
    return {"decision.json": digest(decided)} | {p.relative_to(version).as_posix(): file_sha256(p) for p in paths}


def _after(code: int | None, version: Path, expected: dict[str, str]) -> str:
    """What is wrong with a finished version whose last run ended with `code`; "" if nothing."""
    if code:
        return f"the run after it ended with {code}"
    if not verify_lock(version):
        return "no lock"
    found = record(version)
    names = sorted(name for name in {*found, *expected} if found.get(name) != expected.get(name))
    return f"other bytes: {', '.join(names)}" if names else ""


def demo(work: Path, numbers: Sequence[int], seed: int) -> Iterator[Trial]:
    """The demo on the command line, killed at random moments of its embedding and scoring, and finished each time."""
    whole = work / "demo"
    with exclusive(work / "demo.lock", "a soak"):
        if not (whole / "eval-set" / "v1" / "lock.json").exists():
            shutil.rmtree(whole, ignore_errors=True)
            began = time.perf_counter()
            if code := _demo(whole).wait():
                raise RuntimeError(f"the demo ended with {code}")
            (whole / "seconds").write_text(str(time.perf_counter() - began))
    expected, longest = record(whole / "eval-set" / "v1"), float((whole / "seconds").read_text())
    for number in numbers:
        began, rng = time.perf_counter(), random.Random(f"demo {seed} {number}")
        with tempfile.TemporaryDirectory(dir=work) as name:
            folder = Path(name) / "demo"
            waits = [rng.uniform(1, longest / 2) for _ in range(AT_ONCE)]
            n_killed = 0
            for wait in waits:
                process = _demo(folder)
                try:
                    process.wait(timeout=wait)
                except subprocess.TimeoutExpired:
                    process.kill()
                    n_killed += process.wait() == -9
            code = _demo(folder).wait()
            found = _after(code, folder / "eval-set" / "v1", expected)
        what = "after " + ", ".join(f"{wait:.1f} s" for wait in waits)
        outcome = "wrong" if found else "same bytes"
        yield Trial("demo-kills", number, n_killed, what, outcome, time.perf_counter() - began, found)


WRITTEN = ("runs", "cells", "results.*", "receipt.json", "decision.json", "lock.json", "post-bulk", ".work")
"""What an evening of the demo writes."""

AT_ONCE = 5
"""Times that one evening of the demo is killed before it may end."""


def _demo(folder: Path) -> "subprocess.Popen[bytes]":
    """The demo's evening in a copy of its inputs, with a cache of its own."""
    if not folder.exists():
        ignored = shutil.ignore_patterns(*WRITTEN)
        shutil.copytree(CHECKOUT / "eval-sets" / "demo", folder / "eval-set", ignore=ignored)
    command = [sys.executable, "bin/per-source-eval.py", "choose", "demo", "recommended"]
    return subprocess.Popen(
        [*command, f"--eval-set-path={folder / 'eval-set'}"],
        cwd=CHECKOUT,
        env={**os.environ, CACHE_VARIABLE: str(folder / "cache")},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


SMALL = Kind(small, at_once=10, unit="kills")
DEMO = Kind(demo, at_once=1, unit="kills")

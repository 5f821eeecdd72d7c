"""How far an embedding is: bars on a terminal, lines elsewhere."""

import os
import pty
import queue
import re
import subprocess
import sys
import threading

from runner.base import progress
from runner.base.places import CHECKOUT
from runner.base.progress import Progress, bars, watched

_TWO = """
from runner.base.progress import Progress, bars, say
with bars() as bar:
    first, second = bar("embedding one", lambda: 0.25), bar("embedding two", lambda: None)
    first(Progress(0, 100, 0, 10_000))
    second(Progress(0, 50, 0, 5_000))
    say("a line between")
    first(Progress(100, 100, 10_000, 10_000))
    second(Progress(20, 50, 2_000, 5_000))
say("the end")
"""


def test_on_a_terminal_every_encoder_has_a_bar_and_lines_go_above_them():
    leader, follower = pty.openpty()
    shown = b""

    def listen():
        nonlocal shown
        try:
            while block := os.read(leader, 4096):
                shown += block
        except OSError:
            pass  # the terminal is closed

    listener = threading.Thread(target=listen)
    listener.start()
    environment = os.environ | {"TERM": "xterm", "COLUMNS": "120", "PYTHONPATH": str(CHECKOUT)}
    done = subprocess.run([sys.executable, "-c", _TWO], stderr=follower, env=environment, check=False, timeout=60)
    os.close(follower)
    listener.join(30)
    os.close(leader)
    assert done.returncode == 0
    text = shown.decode()
    assert "embedding one" in text
    assert "100/100" in text
    assert "$0.25" in text
    assert "20/50" in text
    assert "left" in text.rpartition("20/50")[2]
    assert text.index("a line between") < text.index("100/100") < text.index("the end")


def test_elsewhere_there_is_a_line_at_the_end_and_one_a_minute(capsys, monkeypatch):
    clock = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: clock[0])
    with bars() as bar:
        report = bar("embedding one", lambda: 1.5)
        for seconds in (0, 10, 70, 80, 100):
            clock[0] = float(seconds)
            report(Progress(seconds, 100, seconds * 100, 10_000))
    said = capsys.readouterr().err.splitlines()
    assert said == [
        "embedding one 70/100, 100 tokens/s, $1.50, 0:30 left",
        "embedding one 100/100, 100 tokens/s, $1.50",
    ]


def test_what_an_earlier_attempt_left_is_not_taken_for_speed(capsys, monkeypatch):
    clock = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: clock[0])
    with bars() as bar:
        report = bar("embedding one", lambda: None)
        report(Progress(90, 100, 9_000, 10_000))
        clock[0] = 10.0
        report(Progress(100, 100, 10_000, 10_000))
    assert capsys.readouterr().err == "embedding one 100/100, 100 tokens/s\n"


def test_work_that_takes_long_says_how_far_it_is_even_within_one_item(monkeypatch):
    monkeypatch.setattr(progress, "SECONDS_BETWEEN_LINES", 0.01)
    given, within = [], queue.Queue()
    monkeypatch.setattr(progress, "say", lambda line: line.startswith("reading 2/4") and within.put(line))
    for item in watched("abcd", 4, "reading", "files"):
        given.append(item)
        for _ in range(3 * (item == "c")):
            assert re.fullmatch(r"reading 2/4, [\d.,]+ files/s, \d+:\d\d left", within.get(timeout=60))
    assert given == list("abcd")


def test_work_that_is_soon_done_says_nothing_and_leaves_no_thread(capsys):
    before = {*threading.enumerate()}
    assert list(watched(range(1_000), 1_000, "reading", "files")) == list(range(1_000))
    assert ({*threading.enumerate()} - before, capsys.readouterr().err) == (set(), "")

"""The sample bench, its files, and the predictors whose verdict is known."""

import re
import shlex
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.base.errors import BackendError, InputError
from runner.base.terminal import shown
from runner.commands.main import called
from runner.gate.cheaters import CHEATERS
from runner.gate.single_gold import four_null_gate
from runner.tools.grade.grade import read_bench, read_pool
from runner.tools.grade.sample_bench import DEPTH, mira_story, predicted, sample_bench, write_sample

SEEDS = st.integers(0, 2**32 - 1)
BLIND = ("constant", "popularity", "random", "marginal-matched", "source-prior")


@given(seed=SEEDS)
def test_it_has_fifty_queries_over_the_twelve_labels_of_its_pool_whatever_the_seed(seed):
    bench, pool = sample_bench(seed)
    assert len(bench.retrieved) == len(bench.gold) == len(bench.rel) == len(bench.strata) == 50
    assert len(pool) == len(set(pool)) == 12
    assert set(bench.gold) == set(pool)
    assert all(len(items) == len(set(items)) == 5 and set(items) <= set(pool) for items in bench.retrieved)


def test_its_engine_puts_35_answers_first_and_a_guess_one_time_in_twelve():
    first = [
        sum(items[0] == gold for items, gold in zip(bench.retrieved, bench.gold, strict=True))
        for bench in (sample_bench(seed)[0] for seed in range(200))
    ]
    assert min(first) >= 35
    # 15 guesses a bench: 15 / 12 = 1.25 more than 35, with a standard error of 0.08 over 200 benches
    assert np.mean(first) == pytest.approx(36.25, abs=0.3)


def test_some_answers_are_asked_for_much_more_often_than_others():
    bench, _ = sample_bench()
    counts = Counter(bench.gold)
    assert (max(counts.values()), min(counts.values())) == (9, 2)
    assert {stratum: len({g for g, s in zip(bench.gold, bench.strata, strict=True) if s == stratum})
            for stratum in bench.strata} == {"transport": 6, "schools": 6}  # fmt: skip


def test_one_seed_gives_one_bench_and_another_seed_another():
    assert sample_bench(7) == sample_bench(7)
    assert sample_bench(7) != sample_bench(8)


def test_what_is_written_reads_back_as_the_sample_bench(tmp_path):
    bench_path, pool_path = write_sample(tmp_path / "new" / "folder")
    assert (read_bench(bench_path), read_pool(pool_path)) == sample_bench()
    assert sorted(path.name for path in bench_path.parent.iterdir()) == ["bench.jsonl", "pool.txt"]


@pytest.mark.parametrize("there", [["bench.jsonl"], ["pool.txt"], ["bench.jsonl", "pool.txt"]])
def test_it_overwrites_nothing_and_names_what_is_there(tmp_path, there):
    for name in there:
        (tmp_path / name).write_text("mine")
    with pytest.raises(InputError) as error:
        write_sample(tmp_path)
    assert all((str(tmp_path / name) in str(error.value)) is (name in there) for name in ("bench.jsonl", "pool.txt"))
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == dict.fromkeys(there, "mine")


def test_a_dangling_link_is_something_that_is_there(tmp_path):
    (tmp_path / "pool.txt").symlink_to(tmp_path / "nowhere")
    with pytest.raises(InputError, match=r"pool\.txt"):
        write_sample(tmp_path)


def test_a_folder_that_is_a_file_is_a_message_and_not_a_traceback(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(BackendError, match="cannot be written"):
        write_sample(tmp_path / "file")


def test_the_command_prints_its_files_and_a_next_command_that_a_shell_takes(tmp_path, capsys):
    folder = tmp_path / "a bench; it's mine"
    assert called(["grade", "--sample", str(folder)]) == 0
    *wrote, following = capsys.readouterr().out.splitlines()
    assert wrote == [f"wrote {folder / 'bench.jsonl'}", f"wrote {folder / 'pool.txt'}"]
    words = shlex.split(following.removeprefix("next: "))
    assert words == [
        "bin/per-source-eval.py", "grade", "--input", str(folder / "bench.jsonl"),
        "--metric", "ndcg@5", "--pool", str(folder / "pool.txt"),
    ]  # fmt: skip
    assert Path(words[3]).is_file()


def test_a_cheaters_lists_are_distinct_items_of_the_pool():
    bench, pool = sample_bench()
    for name in BLIND:
        lists = predicted(bench, pool, CHEATERS[name].lists).retrieved
        assert len(lists) == 50
        assert all(1 <= len(items) == len(set(items)) <= DEPTH and set(items) <= set(pool) for items in lists)


def graded(bench, pool, strata=None, seed=2026):
    return four_null_gate(
        bench.retrieved, bench.gold, bench.rel, "ndcg@5", item_pool=pool, strata=strata, n_trials=999, seed=seed
    )


def table(story):
    """Name, score, deltas, marks and verdict of every row of the story."""
    number = r"[+− -]\d\.\d\d"
    row = re.compile(rf"^(.+?) +(\d\.\d\d)  ((?:{number} \S+ *){{4}}) ([A-Z]+)$", re.MULTILINE)
    return [
        (name, float(score), re.findall(number, cells), re.findall(rf"{number} (\S+)", cells), verdict)
        for name, score, cells, verdict in row.findall(story)
    ]


def test_the_story_ends_as_it_is_told():
    rows = table(mira_story())
    assert [(name.split(",")[0], verdict) for name, *_, verdict in rows] == [
        ("Mira", "FAIL"),
        ("an engine", "PASS"),
        ("an oracle", "PASS"),
        ("Theo", "PASS"),
        ("Theo", "FAIL"),
        ("the engine", "PASS"),
    ]
    assert [score for _, score, *_ in rows][2] == 1
    assert rows[0][2][3] == " 0.00", "an unvarying answer has nothing over null D"
    assert rows[4][2][3] == " 0.00", "a subject's favourites have nothing over null D within subjects"
    assert all(("✗" in marks) is (verdict == "FAIL") for *_, marks, verdict in rows)


def test_the_figures_of_the_story_are_those_of_the_gate():
    bench, pool = sample_bench()
    found = graded(predicted(bench, pool, CHEATERS["constant"].lists), pool)
    (name, score, deltas, *_), *_ = table(mira_story().replace("−", "-"))
    assert name == "Mira, always hr101-night-ferry"
    assert score == round(found["real_mean"], 2)
    assert [float(delta) for delta in deltas] == pytest.approx(list(found["deltas"].values()), abs=0.005)


def test_a_gate_that_changes_its_mind_changes_the_story(monkeypatch):
    def failing(*arguments, **named):
        return {**four_null_gate(*arguments, **named), "verdict": "fail", "verdicts": dict.fromkeys("ABCD", "fail")}

    monkeypatch.setattr("runner.tools.grade.grade.four_null_gate", failing)
    assert {(verdict, *marks) for *_, marks, verdict in table(mira_story())} == {("FAIL", *"✗✗✗✗")}


def test_the_story_fits_a_terminal():
    story = mira_story()
    assert shown(story, "ascii").isascii()
    assert max(len(line) for line in story.split("\n")) <= 101
    assert [line for line in story.split("\n") if line != line.rstrip()] == []

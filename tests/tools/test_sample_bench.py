"""The sample bench, its files, and the predictors whose verdict is known."""

import re
import shlex
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.base.errors import InputError
from runner.commands.main import called
from runner.tools.grade.grade import read_bench, read_pool
from runner.tools.grade.sample_bench import mira_story, sample_bench, write_sample

SEEDS = st.integers(0, 2**32 - 1)


@given(seed=SEEDS)
def test_it_has_fifty_queries_over_the_twelve_labels_of_its_pool_whatever_the_seed(seed):
    bench, pool = sample_bench(seed)
    assert len(bench.retrieved) == len(bench.gold) == len(bench.rel) == len(bench.strata) == 50
    assert len(pool) == len(set(pool)) == 12
    assert set(bench.gold) == set(pool)
    assert all(len(items) == len(set(items)) == 5 and set(items) <= set(pool) for items in bench.retrieved)


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

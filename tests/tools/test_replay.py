"""A version embedded once more: what rounding moves holds, what a broken backend moves does not; nothing is written."""

import json
import shutil
from dataclasses import replace
from types import MappingProxyType

import numpy as np
import pytest

from runner.base.errors import BackendError, InputError, IntegrityError
from runner.base.places import CACHE_VARIABLE
from runner.base.records import Hit, Run, Span
from runner.commands import main as cli
from runner.decide.compared import compared, recorded
from runner.decide.policy import adopt_baseline
from runner.embed.backends import LocalBackend
from runner.eval_set.catalog import SOURCES
from runner.eval_set.corpus import archive_path
from runner.eval_set.labels import append_labels
from runner.eval_set.shapes.labels import Label
from runner.score.comparison import summarised
from runner.tools.replay import moved, replay
from tests.support.fake_encoder import TOPICS, direction
from tests.support.packed import repack, unpacked
from tests.support.small_collection import external_version
from tests.support.small_set import SmallEncoder, _words, fake_encoders, make_version

BASELINE = "minilm-l6-v2 x fixed_token_512_50"


class There(SmallEncoder):
    """The same weights in another number format: every row a little off, and the same whenever its words are read."""

    tolerance = 2e-3
    facts = MappingProxyType({"device": "NVIDIA L4"})
    noise = 5e-4

    def identity(self):
        return {**super().identity(), "backend": {"name": "modal", "dtype": "float16"}}

    def _row(self, text):
        row = super()._row(text)
        read = " ".join(_words(text)[: self.spec.max_tokens or None])
        return row + self.noise * np.linalg.norm(row) * direction(read, 48)


class Remote(LocalBackend):
    """Hands out encoders of some class and says that it is Modal."""

    name = "modal"

    def __init__(self, kind):
        super().__init__(kind)


@pytest.fixture(name="replayed", scope="module")
def _replayed(decided_evening, tmp_path_factory):
    """The folder of a decided version, and what came of replaying it in half precision."""
    folder = tmp_path_factory.mktemp("replayed")
    shutil.copytree(decided_evening, folder, dirs_exist_ok=True)
    return folder, replay(make_version(folder), Remote(There))


@pytest.fixture
def good(replayed):
    return replayed[1]


@pytest.fixture(name="at_home", scope="module")
def _at_home(decided_evening, tmp_path_factory):
    """What came of replaying a decided version where it was made, and how many texts were embedded for it."""
    folder = tmp_path_factory.mktemp("at_home")
    shutil.copytree(decided_evening, folder, dirs_exist_ok=True)
    sent = []

    class Counting(SmallEncoder):
        def encode(self, texts, side):
            sent.extend(texts)
            return super().encode(texts, side)

    return replay(make_version(folder), LocalBackend(Counting)), len(sent)


def files(folder):
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def cells(found):
    return {cell.cell: cell for cell in found.cells}


def test_the_same_backend_gives_the_same_runs_and_embeds_every_text_again(at_home):
    found, n_texts = at_home
    assert found.holds
    assert all(cell.identical and cell.difference.mean == cell.max_change == 0 for cell in found.cells)
    assert n_texts > 200, "the cache of the evening must not answer in its place"


def test_a_replay_writes_nothing_into_version_and_cache_and_leaves_no_scratch_behind(decided_evening, replayed):
    assert files(replayed[0]) == files(decided_evening)
    assert not (make_version(replayed[0]).work / "replay").exists()


def test_rounding_of_half_precision_holds_and_its_figures_are_given(good):
    rows = cells(good)
    dense, sparse = rows[BASELINE], rows["bm25 x whole_doc"]
    assert good.holds
    assert good.backend == "modal"
    assert not dense.identical
    assert 0 < abs(dense.difference.mean) < 0.02
    assert 0 < dense.score_shift < dense.rounding
    assert dense.difference.low <= dense.difference.mean <= dense.difference.high
    assert dense.replayed - dense.recorded == pytest.approx(dense.difference.mean, abs=1e-8)
    assert (dense.device, dense.note) == ("NVIDIA L4", "")
    assert sparse.identical
    assert (sparse.allowed, sparse.allowed_change) == (0, 0)


def spoiled(read):
    """Encoders that pass the probe and read other texts otherwise."""

    class Spoiled(There):
        def _row(self, text):
            is_probe = text in TOPICS or "The agency may issue rules" in text
            return super()._row(text if is_probe else read(text))

    return Spoiled


def test_a_record_has_the_grades_that_it_was_scored_with_whatever_is_mended_later(decided):
    scored = recorded(decided).qrels
    (decided.record / "lock.json").unlink()  # that of a rehearsal does not hold the labels
    first = json.loads(decided.labels_path.read_text().splitlines()[0])
    append_labels(
        decided.labels_path, [Label(**first | {"void": True}), Label(**first | {"grade": 3 - first["grade"]})]
    )
    assert recorded(decided).qrels == scored


def test_a_cell_of_two_results_is_compared_once(decided, monkeypatch):
    results, rows = recorded(decided).results, []
    monkeypatch.setattr("runner.decide.compared.summarised", lambda *given: rows.append(given) or summarised(*given))
    found = compared(results, results)
    assert len(rows) == sum(len(row.difference) for row in found.values())


SPOILED = {
    "other weights": lambda text: " ".join(word[::-1] if len(word) % 3 == 0 else word for word in text.split()),
    "another limit": lambda text: " ".join(text.split()[:12]),
    "a prompt": lambda text: f"represent river harbor school for searching {text}",
}


@pytest.mark.parametrize("read", SPOILED.values(), ids=SPOILED)
def test_other_weights_limits_and_prompts_do_not_hold(decided, read):
    found = replay(decided, Remote(spoiled(read)))
    dense = cells(found)[BASELINE]
    assert not found.holds
    assert not dense.holds
    assert dense.score_shift > dense.rounding
    assert dense.worst_query in {query.split("\t")[0] for query in unpacked(decided.run_path(BASELINE)).split("\n")}
    assert "other weights, prompts or limits" in dense.note
    assert cells(found)["bm25 x whole_doc"].holds


def test_an_interrupted_replay_keeps_what_it_embedded_and_goes_on(decided, at_home):
    class Dying(SmallEncoder):
        left = 100
        sent = 0

        def encode(self, texts, side):
            Dying.left -= len(texts)
            if Dying.left < 0:
                raise RuntimeError("the power went out")
            Dying.sent += len(texts)
            return super().encode(texts, side)

    with pytest.raises(BackendError, match="the power went out"):
        replay(decided, LocalBackend(Dying))
    assert list((decided.work / "replay").glob("*/cache/vectors/*"))
    Dying.left = 10**6
    found, n_texts = at_home
    assert replay(decided, LocalBackend(Dying)) == found
    assert Dying.sent <= n_texts + 25, "of the first hundred texts those of a probe are sent again, finished ones not"
    assert not (decided.work / "replay").exists()


@pytest.mark.parametrize(
    ("lost", "said"),
    [
        ("lock.json", "nothing to replay"),
        ("results.json", "A frozen eval set changed"),
        (".", r"corpus\.tar\.zst is missing\. Sources drift.* Put a sound copy of the archive there"),
    ],
)
def test_a_replay_that_is_refused_creates_nothing(decided, tmp_path, lost, said):
    bills = replace(decided, source=replace(decided.source, corpus=""), work=tmp_path / "nothing" / "here")
    if lost != ".":
        (decided.record / lost).unlink()
    before = set(tmp_path.rglob("*"))
    with pytest.raises((InputError, IntegrityError), match=said):
        replay(bills, LocalBackend(fake_encoders))
    assert set(tmp_path.rglob("*")) == before


def test_of_a_decision_by_policy_and_a_collection_nothing_is_replayed_and_no_run_is_advised(tmp_path):
    version = replace(make_version(tmp_path), source=SOURCES["crs_reports"])
    adopt_baseline(version, "A. Person", "", today="2030-01-01")
    for each, said in ((version, "by policy"), (external_version(tmp_path), "collection")):
        with pytest.raises(InputError, match=said) as refused:
            replay(each, LocalBackend(fake_encoders))
        assert " run " not in str(refused.value)


@pytest.mark.slow
def test_a_rehearsal_is_replayed_without_a_lock_and_held_to_the_runs_that_its_results_name(decided, call, where):
    rehearsal = make_version(decided.cache.parent, rehearsal=True)
    for name in ("runs", "cells"):
        shutil.copytree(decided.record / name, rehearsal.record / name)
    shutil.copy(decided.record / "results.json", rehearsal.record)
    code, out, _ = call(Remote(There), "--source=demo", where, "--rehearse", "--json")
    said = json.loads(out)
    assert (code, said["version"], said["backend"]) == (0, "demo v1 (rehearsal)", "modal")
    difference = next(row["difference"] for row in said["cells"] if row["cell"] == BASELINE)
    assert difference["low"] <= difference["mean"] <= difference["high"]
    path = rehearsal.run_path(BASELINE)
    repack(path, "\t0\t", "\t00\t")
    with pytest.raises(IntegrityError, match=r"is not what .*results\.json was scored from"):
        replay(rehearsal, LocalBackend(fake_encoders))


def test_another_revision_in_the_catalogue_is_no_replay(decided):
    class Newer(SmallEncoder):
        def __init__(self, name):
            super().__init__(name)
            self.spec = self.spec.model_copy(update={"max_tokens": 99})

    with pytest.raises(InputError, match="max_tokens of minilm-l6-v2 is 99 today and was 120"):
        replay(decided, LocalBackend(Newer))


@pytest.mark.parametrize("corpus", ["", "eval-sets/demo/corpus"])
def test_a_damaged_archive_is_named_and_called_damaged(decided, corpus):
    other = replace(decided, source=replace(decided.source, corpus=corpus))
    path = archive_path(decided)
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    with pytest.raises(InputError) as caught:
        replay(other, LocalBackend(fake_encoders))
    said = str(caught.value)
    assert f"{path} is damaged: it is not the archive that {decided.corpus_path} names" in said
    assert "Put a sound copy of the archive there" in said
    assert "corpus-path" not in said
    assert "Give the folder" not in said
    assert ("eval-sets/demo/corpus does not hold the version's documents either" in said) == bool(corpus)
    assert path.read_bytes() == content


def run_of(**scores):
    return Run("c", {"q": tuple(Hit(name, score, Span(0, 1)) for name, score in scores.items())})


@pytest.mark.parametrize(
    ("now", "shift"),
    [
        ({"a": 0.9, "b": 0.5}, 0),
        ({"a": 0.8, "b": 0.4}, 0.1),
        ({"a": 0.9, "c": 0.4}, 0.05),
        ({"a": 0.9, "c": 0.6}, np.sqrt(0.01 / 4)),
        ({}, np.sqrt((0.9**2 + 0.5**2) / 2)),
    ],
)
def test_a_shift_is_of_all_scores_and_of_documents_that_came_and_went_at_least_past_the_end(now, shift):
    found = moved(run_of(a=0.9, b=0.5), run_of(**now), 0.1)
    assert found.shift == pytest.approx(shift)
    assert found.is_rounding == (0 < shift <= 0.1)


@pytest.fixture(name="call")
def _call(decided, tmp_path, monkeypatch, capsys):
    """Exit code, stdout and stderr of `replay`, whose backend is what the fixture is given."""
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / ".cache"))

    def call(backend, *arguments):
        monkeypatch.setattr("runner.commands.replay.backend_of", lambda options, version, work: backend)
        try:
            code = cli.main(["replay", *arguments])
        except SystemExit as stopped:
            code = stopped.code
        said = capsys.readouterr()
        return code, said.out, said.err

    return call


def test_the_command_says_cell_by_cell_whether_the_version_holds(call, where):
    code, out, _ = call(Remote(There), "--source=demo", where)
    assert code == 0
    *lines, last = out.strip().split("\n")
    assert last == f"demo v1 on modal (NVIDIA L4): {len(lines)} of {len(lines)} cells hold"
    (dense,) = (line for line in lines if f" {BASELINE}:" in line)
    assert dense.startswith(f"✓ {BASELINE}: nDCG@10 0.")
    assert "rounding explains 0." in dense
    assert any(line.endswith("; the same run") for line in lines)


def test_the_command_ends_with_1_where_a_cell_does_not_hold(call, where, good, monkeypatch):
    note = "other weights"
    cells = [
        cell.model_copy(update={"holds": cell.identical, "note": "" if cell.identical else note}) for cell in good.cells
    ]
    found = good.model_copy(update={"cells": cells})
    monkeypatch.setattr("runner.tools.replay.replay", lambda version, backend: found)
    code, out, _ = call(Remote(There), "--source=demo", where)
    assert code == 1
    assert f"✗ {BASELINE}" in out
    assert f"\n    {note}\n" in out
    assert f"demo v1 on modal (NVIDIA L4): {sum(c.identical for c in cells)} of {len(cells)} cells hold" in out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--source=demo", "--encoder=minilm-l6-v2"), "either SOURCE or --encoder NAME"),
        ((), "either SOURCE or --encoder NAME"),
        (("--encoder=minilm-l6-v2",), "--modal or --encoder-url URL"),
        (("--source=demo", "--gpu=L4"), "--gpu belongs to --modal"),
    ],
)
def test_flags_that_contradict_each_other_are_usage_errors(call, arguments, said):
    code, _, err = call(LocalBackend(fake_encoders), *arguments)
    assert code == 2
    assert said in err


def test_what_a_replay_spends_is_counted_apart_from_the_version(decided, good, monkeypatch):
    folders = []
    monkeypatch.setattr("runner.tools.replay.replay", lambda version, backend: good)

    def backend_of(options, version, work):
        folders.append(work)
        return Remote(There)

    monkeypatch.setattr("runner.commands.replay.backend_of", backend_of)
    cli.main(["replay", "--source=demo", f"--eval-set-path={decided.folder.parent}"])
    assert folders == [decided.work / "replay"]


class Foreign(There):
    """Other vectors, though each text has the same one whenever it comes."""

    noise = 0.02


@pytest.mark.parametrize(("kind", "code"), [(There, 0), (Foreign, 1)])
def test_an_encoder_elsewhere_is_held_to_this_machine(call, monkeypatch, kind, code):
    monkeypatch.setattr("runner.tools.replay.verified_folder", lambda spec: None)
    monkeypatch.setattr("runner.tools.replay.encoder_for", SmallEncoder)
    found, out, _ = call(Remote(kind), "--encoder=minilm-l6-v2", "--modal", "--json")
    said = json.loads(out)
    assert (found, said["same"], said["backend"]) == (code, code == 0, "modal")
    assert (said["cosine"] >= said["required"]) == (code == 0)
    assert ("✓" if code == 0 else "✗") in call(Remote(kind), "--encoder=minilm-l6-v2", "--modal")[1]

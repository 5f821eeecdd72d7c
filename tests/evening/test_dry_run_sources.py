"""What an operator hears first of every source of the roster."""

import pytest

from runner.commands import main as cli
from runner.eval_set.catalog import REFUSED, SOURCES

SUBSTRATE = [spec for spec in SOURCES.values() if spec.trigger_order]


pytestmark = pytest.mark.usefixtures("own_place")


def dry_run(capsys, tmp_path, name, *arguments):
    code = cli.main([f"--source={name}", "--dry-run", f"--eval-set-path={tmp_path / 'eval-sets' / name}", *arguments])
    said = capsys.readouterr()
    return code, said.out.splitlines(), said.err


@pytest.mark.parametrize("rehearse", [(), ("--rehearse",)])
@pytest.mark.parametrize("source", SUBSTRATE, ids=lambda spec: spec.name)
def test_every_source_of_the_roster_has_a_plan_before_anything_exists(capsys, tmp_path, source, rehearse):
    code, lines, _ = dry_run(capsys, tmp_path, source.name, *rehearse)
    assert code == 1
    assert lines[-1].startswith("undecided: ")
    cells = [line.strip() for line in lines if line.strip().startswith('- "')]
    assert len(cells) >= 9
    assert any(source.structural_chunker in cell for cell in cells)
    assert any(cell.startswith('- "bm25>') for cell in cells)


@pytest.mark.parametrize("source", [s for s in SUBSTRATE if s.reuses], ids=lambda spec: spec.name)
def test_a_taken_over_chunker_is_named_with_what_is_known_of_it(capsys, tmp_path, source):
    _, lines, _ = dry_run(capsys, tmp_path, source.name)
    assert f"chunker: {source.structural_chunker} is taken over from {source.reuses}, no code of its own" in lines
    assert any(line.strip().startswith("reuse: {") and "not yet evaluated" in line for line in lines)


@pytest.mark.parametrize("source", [s for s in SUBSTRATE if s.policy == "baseline"], ids=lambda spec: spec.name)
def test_a_source_with_weak_structure_is_pointed_to_its_policy(capsys, tmp_path, source):
    _, lines, _ = dry_run(capsys, tmp_path, source.name)
    assert lines[1].startswith("policy: weak structure, so the baseline")
    assert lines[-1] == "undecided: the baseline is to be adopted: the source has weak structure"


def test_what_was_decided_elsewhere_is_told_with_both_models(capsys, tmp_path):
    _, lines, _ = dry_run(capsys, tmp_path, "crs_reports")
    said = "\n".join(lines)
    assert "mxbai-large-v1 x fixed_token_512_50, nDCG@10 0.6911, without artefacts" in said
    assert "the baseline arctic-l-v2.0 x fixed_token_512_50 is adopted" in said
    assert lines[0] == "crs_reports v2"


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_what_is_not_evaluated_says_where_to_look(capsys, tmp_path, name):
    code, _, err = dry_run(capsys, tmp_path, name)
    assert code == 2
    assert any(word in err for word in ("look ", "transcripts are", "as the source bills"))

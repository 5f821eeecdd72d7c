from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.base.places import CHECKOUT
from runner.embed.chunk_corpus import chunk_corpus
from runner.embed.cost.estimate import (
    CEILING,
    HEADROOM,
    Corpus,
    TokenCount,
    Total,
    of_rented,
    planned_tokens,
    rate,
    size,
)
from runner.embed.cost.ledger import BudgetError
from runner.embed.cost.prices import CORE_USD, GPUS, RemoteOptions, weights_price
from runner.eval_set.catalog import ENCODERS, source
from runner.eval_set.corpus import sample_of
from runner.eval_set.shapes.plan import Sample
from runner.eval_set.version import NOISE_FLOOR_CELL
from tests.support.ledger_entries import entry

FIXED = "fixed_token_512_50"
BASELINE = f"arctic-l-v2.0 x {FIXED}"


def corpus(document_chars=(40_000, 4_000), query_chars=0, **stored):
    return Corpus(document_chars, query_chars, lambda chunker, limit: stored.get(chunker))


def tokens(cells, baseline="", current=(), **known):
    amounts = planned_tokens(cells, baseline, corpus(**known), current)
    return {encoder: amount.tokens for encoder, amount in amounts.items()}


# Rates


@pytest.mark.parametrize("gpu", [*GPUS, "cpu"])
def test_every_catalogued_encoder_has_a_default_rate_on_every_gpu_with_a_price(gpu):
    usable = {name for name, spec in ENCODERS.items() if not spec.excluded}
    assert all({"gflop_per_token", "weights_gb"} <= ENCODERS[name].model_fields_set for name in usable)
    for encoder in usable:
        assert 10 < rate(encoder, gpu) <= CEILING


def test_a_rate_follows_the_arithmetic_and_stops_at_the_tokenisers():
    assert rate("arctic-l-v2.0", "L4") == pytest.approx(0.3 * 121e12 / 0.66e9)
    assert rate("minilm-l6-v2", "H200") == CEILING
    assert rate("unheard-of", "L4") == rate("arctic-l-v2.0", "L4")
    assert size("unheard-of") is ENCODERS["arctic-l-v2.0"]


# Tokens


def test_stored_counts_are_taken_before_characters():
    assert tokens([BASELINE], **{FIXED: 777}) == {"arctic-l-v2.0": 777}
    (amount,) = planned_tokens([BASELINE], "", corpus(**{FIXED: 777}), ()).values()
    assert amount.source == "counted chunks"
    mixed = [BASELINE, "arctic-l-v2.0 x recursive_v1"]
    (amount,) = planned_tokens(mixed, "", corpus(**{FIXED: 777}), ()).values()
    assert amount == (777 + 12_100, "chunks in part, characters")


def test_stored_counts_are_asked_for_up_to_the_encoders_limit():
    cells = [f"{encoder} x whole_doc" for encoder in ("minilm-static-384", "minilm-l6-v2", "arctic-l-v2.0")]
    amounts = planned_tokens(cells, "", Corpus((), 0, lambda chunker, limit: min(10_000, limit or 10_000)), ())
    assert {name: amount.tokens for name, amount in amounts.items()} == {
        "minilm-static-384": 10_000,
        "minilm-l6-v2": ENCODERS["minilm-l6-v2"].max_tokens,
        "arctic-l-v2.0": 8_192,
    }


@pytest.mark.parametrize(
    ("chunker", "expected"),
    [
        (FIXED, round(11_000 * 512 / 462)),
        (f"{FIXED}-bare", round(11_000 * 512 / 462)),
        ("fixed_token_1024_100", round(11_000 * 1024 / 924)),
        ("usc_uslm_section_v1", 12_100),
        ("usc_uslm_section_512_v1", 12_100),
        ("usc_uslm_section_256_v1-bare", 14_300),
        ("whole_doc", 8_192 + 1_000),
    ],
)
def test_characters_stand_for_tokens_with_what_a_chunker_repeats(chunker, expected):
    assert tokens([f"arctic-l-v2.0 x {chunker}"]) == {"arctic-l-v2.0": expected}


def test_whole_documents_are_read_to_the_end_by_an_encoder_without_a_limit():
    assert tokens(["minilm-static-384 x whole_doc"]) == {"minilm-static-384": 11_000}


def test_cells_of_one_encoder_and_chunker_share_their_vectors_and_bm25_needs_none():
    cells = ["bm25 x whole_doc", BASELINE, f"bm25>{BASELINE}", f"sum(bm25,arctic-l-v2.0) x {FIXED}"]
    assert tokens(cells, **{FIXED: 100}) == {"arctic-l-v2.0": 100}
    assert tokens(["bm25 x whole_doc"], "bm25 x whole_doc") == {}
    stored = [f"arctic-l-v2.0@{kind} x {FIXED}" for kind in ("256", "int8", "bit")]
    assert tokens([BASELINE, *stored], **{FIXED: 100}) == {"arctic-l-v2.0": 100}
    assert tokens([BASELINE, *stored], current=[BASELINE], **{FIXED: 100}) == {}


def test_the_baseline_is_embedded_once_more_until_that_run_is_there():
    assert tokens([BASELINE], BASELINE, **{FIXED: 100}) == {"arctic-l-v2.0": 200}
    assert tokens([BASELINE], BASELINE, [NOISE_FLOOR_CELL], **{FIXED: 100}) == {"arctic-l-v2.0": 100}
    assert tokens([BASELINE], BASELINE, [BASELINE], **{FIXED: 100}) == {"arctic-l-v2.0": 100}
    assert tokens([BASELINE], BASELINE, [BASELINE, NOISE_FLOOR_CELL], **{FIXED: 100}) == {}


def test_what_a_current_cell_has_is_not_embedded_for_another():
    cells = [BASELINE, f"bm25>{BASELINE}", "mpnet-base-v2 x recursive_v1"]
    assert tokens(cells, "", [BASELINE], recursive_v1=50, **{FIXED: 100}) == {"mpnet-base-v2": 50}


def test_queries_are_read_by_every_encoder_and_twice_by_the_baselines():
    cells = [BASELINE, "mpnet-base-v2 x recursive_v1"]
    known = {FIXED: 100, "recursive_v1": 50, "query_chars": 400}
    assert tokens(cells, BASELINE, **known) == {"arctic-l-v2.0": 200 + 200, "mpnet-base-v2": 50 + 100}


def test_an_estimate_from_characters_is_near_the_chunks_of_the_demo():
    documents = sample_of(source("demo"), Sample(size=20, seed=1), CHECKOUT / "eval-sets" / "demo" / "corpus").documents
    lengths = [len(document.text) for document in documents]
    for chunker in (FIXED, "fixed_token_256_25", "section_aware_bills_v1"):
        counted = sum(chunk.n_tokens for chunk in chunk_corpus(documents, chunker))
        (guessed,) = tokens([f"arctic-l-v2.0 x {chunker}"], document_chars=lengths).values()
        assert 0.75 < counted / guessed < 1.32


# Dollars

ARCTIC = "arctic-l-v2.0"


def test_the_estimate_is_reading_starting_and_idling_of_every_container_and_the_weights():
    expected = of_rented({ARCTIC: TokenCount(5_500_000, "")}, RemoteOptions(containers=3), [])
    seconds = 5_500_000 / rate(ARCTIC, "L4") + 3 * 120
    weights = (60 + 2.27 / 0.04) * weights_price()
    assert expected.usd == pytest.approx(seconds * (GPUS["L4"].usd + CORE_USD) + weights)


@pytest.mark.parametrize(("ended", "count"), [(True, 0), (False, 1)])
def test_weights_that_were_fetched_whole_are_not_fetched_again(ended, count):
    fetched = entry(kind="weights", gpu="cpu", ended=ended)
    expected = of_rented({ARCTIC: TokenCount(1, "")}, RemoteOptions(), [fetched])
    assert sum("and its weights" in line for line in expected.lines) == count


def test_nothing_to_embed_costs_nothing_and_is_not_mentioned():
    assert of_rented({ARCTIC: TokenCount(0, "")}, RemoteOptions(), []) == ([], 0.0, 0.0)


# The ceiling


def test_a_total_holds_embedding_judging_what_may_be_wrong_and_what_is_held_at_once():
    total = Total(5.0, spent=1.0, embedding=2.0, judging=1.0, held=0.5)
    assert total.headroom == pytest.approx(HEADROOM * 3.0 + 0.5)
    assert total.usd == pytest.approx(3.0 + total.headroom)
    assert total.is_affordable
    total.check()
    for more in ({"spent": 1.3}, {"embedding": 2.3}, {"judging": 1.3}, {"held": 0.8}, {"max_usd": 4.7}):
        assert not replace(total, **more).is_affordable
    assert total.line.endswith("$1.00 spent before; within --max-usd 5.00, so it would start")


def test_a_version_that_is_over_its_ceiling_may_still_do_what_costs_nothing():
    assert Total(5.0, spent=5.02).is_affordable
    assert not Total(5.0, spent=5.02, embedding=0.001).is_affordable


def test_a_total_over_the_ceiling_is_refused_with_the_figures_and_the_ways_out():
    expected = of_rented({"e": TokenCount(10**9, "")}, RemoteOptions(), [])
    total = Total(5.0, spent=1.9, embedding=expected.usd, judging=3.0)
    with pytest.raises(BudgetError) as error:
        total.check(expected.lines)
    for part in ("nothing was started", "$1.90 spent before", "over --max-usd 5.00", "--gpu", "tokens/s (a guess)"):
        assert part in str(error.value)
    assert error.value.exit_code == 5
    assert total.line.endswith("over --max-usd 5.00, so it would be refused")


@given(st.floats(0, 1_000), st.floats(0, 1_000), st.floats(1, 1_000))
def test_the_ceiling_that_a_refusal_names_is_enough(before, embedding, judging):
    total = Total(0.01, before, embedding, judging, held=judging / 7)
    with pytest.raises(BudgetError) as error:
        total.check()
    named = float(str(error.value).rpartition("--max-usd ")[2].partition(" ")[0])
    replace(total, max_usd=named).check()

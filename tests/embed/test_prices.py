"""What tokens cost: the dated table, given prices, and a bound on what a text can cost."""

import pytest

from runner.base.errors import InputError
from runner.embed.cost.prices import CLAUDE, FREE, PRICE_FLAG, Price, Usage, given_price, price_of


def test_a_request_costs_what_is_read_cached_and_written_each_at_its_price():
    usage = Usage(read=50, cache_written=40, cache_read=30, written=20)
    assert Price(2.0, 10.0).usd(usage) == pytest.approx((2 * (50 + 1.25 * 40 + 0.1 * 30) + 10 * 20) / 1e6)
    assert FREE.usd(usage) == 0


def test_a_long_prompt_has_its_own_price_where_a_model_has_one():
    haiku = price_of("claude-haiku-5-5")
    assert haiku.usd(Usage(read=100_001)) == pytest.approx(5 * 0.1 * 0.100001)
    assert haiku.usd(Usage(read=100_000)) == pytest.approx(0.1 * 0.1)


@pytest.mark.parametrize("model", [*CLAUDE, "claude-haiku-4-5-20251001"])
def test_every_listed_model_costs_more_to_write_than_to_read_and_half_in_batches(model):
    price = price_of(model)
    assert 0 < price.read < price.written
    usage = Usage(read=100, written=10)
    assert price.in_batches().usd(usage) == pytest.approx(price.usd(usage) / 2)


@pytest.mark.parametrize("model", ["claude-nonesuch", "claude-opus-5-6", "claude-opus-5-202511"])
def test_a_model_without_a_known_price_is_refused_with_the_way_out(model):
    with pytest.raises(InputError, match=PRICE_FLAG):
        price_of(model)


@pytest.mark.parametrize("text", ["", "3", "3,15,1", "a,b", "-1,2", "nan,1", "inf,1"])
def test_a_price_that_is_none_is_refused(text):
    with pytest.raises(InputError, match=PRICE_FLAG):
        given_price(text)


def test_a_given_price_is_taken():
    assert given_price(" 3, 15 ")[:2] == (3.0, 15.0)
    assert given_price("0,0").usd(Usage(read=9)) == 0

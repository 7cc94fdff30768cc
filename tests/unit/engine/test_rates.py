"""Token buckets: exact, whatever is asked when."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from jobline_server.engine.rates import RateLimit, TokenBucket

TWO_A_SECOND = RateLimit(2, 1_000, 3)


def test_new_bucket_is_full_and_fills_at_its_rate():
    bucket = TokenBucket(TWO_A_SECOND, 0)
    assert bucket.tokens(0) == 3
    bucket.take(3, 0)
    assert [bucket.tokens(ms) for ms in (0, 499, 500, 1_000, 1_500, 9_000)] == [0, 0, 1, 2, 3, 3]
    assert [bucket.next_ms(tokens, 100) for tokens in (1, 2, 3)] == [500, 1_000, 1_500]


def test_rate_without_burst_has_one_period_in_store():
    assert TokenBucket(RateLimit(7, 60_000), 0).tokens(0) == 7


def test_change_keeps_the_fill():
    """G14: a rate that is said again does not fill the bucket."""
    bucket = TokenBucket(TWO_A_SECOND, 0)
    bucket.take(2, 0)
    bucket.change(RateLimit(100, 60_000), 0)
    assert bucket.tokens(0) == 1
    bucket.change(RateLimit(1, 1_000, 1), 0)
    bucket.change(RateLimit(9, 1_000, 9), 0)
    assert bucket.tokens(0) == 1


def test_bucket_of_a_start_is_empty_and_fills_from_then_on():
    bucket = TokenBucket(TWO_A_SECOND, 0)
    bucket.empty(10_000)
    assert (bucket.tokens(10_000), bucket.tokens(10_500)) == (0, 1)


def test_price_is_paid_or_not():
    bucket = TokenBucket(RateLimit(1, 1_000, 2), 0)
    assert [bucket.price(cost) for cost in (1, 2, 3)] == [1, 2, 2]
    assert bucket.is_full(0)
    assert [bucket.pays(tokens, 0) for tokens in (2, 1, 1)] == [True, False, False]
    assert not bucket.is_full(1_999)
    assert not bucket.pays(1, 999)
    assert bucket.pays(1, 1_000)
    assert bucket.is_full(3_000)


def test_time_that_stands_still_brings_nothing():
    bucket = TokenBucket(TWO_A_SECOND, 1_000)
    bucket.take(3, 1_000)
    assert bucket.tokens(500) == 0


@given(
    rate=st.builds(
        RateLimit, st.integers(1, 50), st.integers(10, 5_000), st.none() | st.integers(1, 60)
    ),
    steps=st.lists(st.tuples(st.integers(0, 3_000), st.integers(0, 70)), max_size=40),
)
def test_g14_no_window_has_more_than_burst_and_rate(rate, steps):
    """G14: whoever takes all that there is, whenever, gets no more than the definition allows."""
    bucket, now, taken = TokenBucket(rate, 0), 0, []
    for wait, wanted in steps:
        now += wait
        tokens = min(wanted, bucket.tokens(now))
        bucket.take(tokens, now)
        taken.append((now, tokens))
        for first, (start, _) in enumerate(taken):
            in_window = sum(count for _, count in taken[first:])
            assert in_window <= rate.most() + Fraction(rate.rate * (now - start), rate.period_ms)
        if not bucket.tokens(now):
            next_ms = bucket.next_ms(1, now)
            assert bucket.tokens(next_ms) >= 1 > bucket.tokens(next_ms - 1)

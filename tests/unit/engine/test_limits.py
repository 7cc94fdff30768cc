"""Limits that must fit each other."""

from __future__ import annotations

from jobline_server.engine import limits


def test_ids_fit_into_what_javascript_reads_exactly():
    """2⁵³ is the first integer that a double does not tell from its neighbour."""
    highest = (limits.SHARDS_MAX << limits.SEQUENCE_BITS) - 1
    assert highest < 1 << 53


def test_deliveries_fit_into_63_bits_for_centuries():
    """Epochs are seconds since 2025 or a little more."""
    seconds = 200 * 366 * 24 * 3600
    assert (seconds << limits.HANDOUT_BITS) < 1 << 63


def test_defaults_lie_within_their_bounds():
    """A default that a setting would be refused for is a mistake."""
    assert limits.LEASE_MS_MIN <= limits.LEASE_MS_DEFAULT <= limits.LEASE_MS_MAX
    assert 1 <= limits.MAX_ATTEMPTS_DEFAULT <= limits.MAX_ATTEMPTS_MAX
    assert limits.MAX_STALLS_DEFAULT <= limits.MAX_STALLS_MAX
    assert limits.BACKOFF_BASE_MS_DEFAULT <= limits.BACKOFF_MAX_DELAY_MS_DEFAULT
    assert limits.BACKOFF_MAX_DELAY_MS_DEFAULT <= limits.BACKOFF_MAX_DELAY_MS_MAX
    assert limits.SHARDS_DEFAULT <= limits.SHARDS_MAX
    assert limits.DISCONNECT_GRACE_MS <= limits.LEASE_MS_DEFAULT


def test_a_request_is_forgotten_before_its_keys():
    """A repeated request looks its keys up again: they must still be there."""
    assert limits.REQUEST_WINDOW_MS < limits.KEY_WINDOW_MS


def test_one_call_fits_into_one_slice_of_the_loop_a_few_times():
    """A slice is what the loop does at once; a call may take several, not hundreds."""
    assert limits.PUSH_PAYLOADS_MAX <= 10 * limits.SLICE_ITEMS
    assert limits.SETTLE_ITEMS_MAX <= 10 * limits.SLICE_ITEMS

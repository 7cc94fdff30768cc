"""How the payloads of a push are split into lots."""

from __future__ import annotations

import pytest

from jobline_server.engine.decide import lot_sizes
from jobline_server.engine.payloads import Payloads


@pytest.mark.parametrize(
    ("lengths", "lots"),
    [
        ([], []),
        ([1, 2], [2]),
        ([3], [1]),
        ([1, 3, 2, 2], [1, 1, 2]),
        ([3, 3, 1], [1, 1, 1]),
        ([0, 1, 3], [2, 1]),
    ],
)
def test_each_large_payload_is_a_lot_and_neighbours_between_share_one(
    monkeypatch: pytest.MonkeyPatch, lengths: list[int], lots: list[int]
) -> None:
    """Nothing is left out, and the order stays."""
    monkeypatch.setattr(lot_sizes, "SMALL_BYTES", 2)
    payloads = [b"%d" % index * length for index, length in enumerate(lengths)]
    found = lot_sizes.lots_of(Payloads.of(payloads), 100)
    assert [len(of_lot) for _, of_lot in found] == lots
    assert [first_id for first_id, _ in found] == [100 + sum(lots[:at]) for at in range(len(lots))]
    assert [payload for _, of_lot in found for payload in of_lot] == payloads

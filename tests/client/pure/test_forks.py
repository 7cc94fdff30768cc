"""What each process makes for itself."""

from __future__ import annotations

import itertools
import os
import pickle
from typing import Any

import pytest

from jobline import AsyncClient, Client, Worker
from jobline._forks import PerProcess
from jobline._ids import RequestIds


def test_a_process_makes_its_value_once_and_a_child_its_own(monkeypatch):
    """The parent's value stays as it was, for when the parent goes on."""
    value = PerProcess(itertools.count(1).__next__)
    assert value.made() is None
    assert [value(), value(), value.made()] == [1, 1, 1]
    parent = os.getpid()
    monkeypatch.setattr(os, "getpid", lambda: parent + 1)
    assert value.made() is None
    assert [value(), value()] == [2, 2]
    monkeypatch.setattr(os, "getpid", lambda: parent)
    assert value() == 1


def test_a_child_draws_no_request_id_of_its_parent(monkeypatch):
    """Trial A1: neither the parent's next id nor that of another child."""
    new_id = RequestIds()
    parent = os.getpid()
    drawn = [new_id(), new_id()]
    for child in (parent + 1, parent + 2, parent):
        monkeypatch.setattr(os, "getpid", lambda pid=child: pid)
        drawn += [new_id(), new_id()]
    assert len(set(drawn)) == len(drawn)


@pytest.mark.parametrize("part", ["jobs", "queues", "dead", "admin"])
def test_a_child_makes_its_own_stubs_for_operators(monkeypatch, part):
    """A stub belongs to a channel, and the parent's channel is not for the child."""
    with Client("localhost:1") as client:
        operators = getattr(client, part)
        of_parent = operators._stub
        assert operators._stub is of_parent
        with monkeypatch.context() as in_child:
            parent = os.getpid()
            in_child.setattr(os, "getpid", lambda: parent + 1)
            assert operators._stub is not of_parent
            client.channel.close()
        assert operators._stub is of_parent


@pytest.mark.parametrize("kind", [Client, AsyncClient, Worker])
def test_what_is_connected_is_not_sent_to_another_process(kind: Any):
    """`multiprocessing` without a fork would say that a lock cannot be pickled."""
    with pytest.raises(TypeError, match=f"cannot pickle a {kind.__name__}: make one in each"):
        pickle.dumps(kind("localhost:1"))

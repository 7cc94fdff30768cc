"""Handlers that workers announced: counted as they come and go, and found by queue and name."""

from __future__ import annotations

import pytest

from jobline_server.dispatch.frames import Handler, Open, Worker
from jobline_server.runtime.calls import handlers as module
from jobline_server.runtime.calls.handlers import Handlers
from jobline_server.runtime.views import HandlerVariant, HandlerView


def announcing(*handlers: Handler, version: str = "1") -> Open:
    """The first frame of a worker with these handlers."""
    return Open(Worker(version=version), (("mail", 1),), handlers)


def variant(schema: str = "", result: str = "", version: str = "1") -> HandlerVariant:
    return HandlerVariant(version, schema, result)


async def listed(handlers: Handlers, queue: str = "") -> list[HandlerView]:
    found, token = await handlers.list_handlers(page_size=100, page_token="", queue=queue)
    assert token == ""
    return found


async def test_workers_that_announce_the_same_are_counted_together() -> None:
    handlers = Handlers()
    send = Handler("mail", "send", "{}", "[]")
    for owner in ("one", "two"):
        handlers.add(owner, announcing(send))
    handlers.add("three", announcing(Handler("mail", "send", "{}"), version="2"))
    (view,) = await listed(handlers)
    assert (view.queue, view.name, view.any_name, view.workers) == ("mail", "send", False, 3)
    assert view.variants == [(variant("{}", "[]"), 2), (variant("{}", version="2"), 1)]
    assert view.differs == ["version", "result_schema"]


async def test_handlers_go_with_the_last_worker_that_has_them() -> None:
    handlers = Handlers()
    handlers.add("one", announcing(Handler("mail", "send"), Handler("sms", "send")))
    handlers.add("two", announcing(Handler("mail", "send", "{}")))
    handlers.remove("one")
    handlers.remove("one")
    handlers.remove("nobody")
    (view,) = await listed(handlers)
    assert (view.queue, view.variants, view.differs) == ("mail", [(variant("{}"), 1)], [])
    handlers.remove("two")
    assert await listed(handlers) == []
    assert handlers.find("mail", "send") == {}


async def test_handler_for_any_name_takes_what_has_none_of_its_own() -> None:
    handlers = Handlers()
    handlers.add("one", announcing(Handler("mail", "send", "1"), Handler("mail", "", "2")))
    handlers.add("two", announcing(Handler("mail", "", "3", any_name=True)))
    assert handlers.find("mail", "send") == {variant("1"): 1}
    assert handlers.find("mail", "") == {variant("2"): 1}
    assert handlers.find("mail", "other") == {variant("3"): 1}
    assert handlers.find("sms", "other") == {}
    assert [(view.name, view.any_name) for view in await listed(handlers)] == [
        ("", False),
        ("send", False),
        ("", True),
    ]


async def test_handler_that_a_worker_names_twice_counts_once() -> None:
    handlers = Handlers()
    handlers.add("one", announcing(Handler("mail", "send", "1"), Handler("mail", "send", "2")))
    (view,) = await listed(handlers)
    assert (view.workers, view.variants) == (1, [(variant("2"), 1)])
    handlers.remove("one")
    assert await listed(handlers) == []


async def test_pages_follow_each_other_and_may_be_of_one_queue(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "STEP_NAMES", 2)
    handlers = Handlers()
    names = [f"n{number}" for number in range(5)]
    handlers.add("one", announcing(*[Handler(q, name) for q in ("b", "a") for name in names]))
    token, found = "", []
    while True:
        views, token = await handlers.list_handlers(page_size=3, page_token=token, queue="")
        found += [(view.queue, view.name) for view in views]
        if not token:
            break
    assert found == [(queue, name) for queue in ("a", "b") for name in names]
    assert [view.name for view in await listed(handlers, "b")] == names


async def test_variants_of_a_handler_are_shown_up_to_a_bound() -> None:
    handlers = Handlers()
    for number in range(30):
        handlers.add(number, announcing(Handler("mail", "send"), version=str(number)))
    (view,) = await listed(handlers)
    assert (view.workers, len(view.variants)) == (30, module.VARIANTS_SHOWN_MAX)


async def test_handler_that_went_while_its_page_was_made_is_left_out() -> None:
    handlers = Handlers()
    assert handlers._view("mail\n0\nsend") is None

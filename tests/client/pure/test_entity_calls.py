"""How entities are declared, and what calls of their methods send."""

from __future__ import annotations

from typing import Any

import pytest

from jobline import (
    Client,
    CodecError,
    Entity,
    InvalidArgument,
    JobOptions,
    Worker,
    entity_method,
)
from tests.client.pure.counter_entity import Counter


def test_classes_that_are_no_entities_are_refused_where_they_are_declared() -> None:
    class Nameless(Entity):
        @entity_method
        async def act(self) -> None: ...

    class Idle(Entity, kind="idle"):
        pass

    worker = Worker()
    for wrong, why in (
        (Nameless, "Nameless has no kind"),
        (Idle, "Idle has no method with @entity_method"),
        (int, "takes a name, or a class made from Entity"),
    ):
        with pytest.raises(InvalidArgument, match=why):
            worker.add_entity(wrong)  # type: ignore[arg-type]
    worker.add_entity(Counter)
    with pytest.raises(InvalidArgument, match="has a handler for jobs named 'add' already"):
        worker.add_entity(Counter)
    with pytest.raises(InvalidArgument, match="max_active"):
        Worker().add_entity(Counter, max_active=0)


def test_what_would_fail_with_the_first_job_or_the_last_is_refused_at_once() -> None:
    class Hook(Entity, kind="hook"):
        @entity_method
        async def act(self) -> None: ...

    class Plain(Hook):
        def on_activate(self) -> None: ...  # type: ignore[override]

    class Silent(Hook):
        async def on_idle(self) -> None: ...  # type: ignore[override]

    class Needy(Hook):
        def __init__(self, database: str) -> None: ...

    for wrong, why in (
        (Plain, "Plain.on_activate is not async"),
        (Silent, r"Silent.on_idle is on_idle\(self, reason\)"),
        (Needy, "Needy is made without arguments"),
    ):
        with pytest.raises(InvalidArgument, match=why):
            Worker().add_entity(wrong)
    Worker().add_entity(Hook)


def test_method_that_the_class_has_not_is_refused() -> None:
    """Its job would hold the entity: no worker handles that name."""
    with Client("127.0.0.1:1") as client:
        counter = client.entity(Counter, "a")
        with pytest.raises(InvalidArgument, match="Counter has no method 'ad' with @entity_method"):
            counter.push("ad", 1)


def test_methods_that_could_not_run_are_refused() -> None:
    def plain(self: Any) -> None: ...

    async def two(self: Any, first: int, second: int) -> None: ...

    async def named(self: Any, *, first: int) -> None: ...

    for wrong, why in ((plain, "is not async"), (two, "takes more than"), (named, "takes more")):
        with pytest.raises(InvalidArgument, match=why):
            entity_method(wrong)  # type: ignore[arg-type]


async def test_method_of_an_object_is_the_plain_one() -> None:
    """And that of the class knows its name, its types and its options."""
    counter = Counter()
    counter.count = 3
    assert await counter.add(4) == 7
    method = Counter.add
    assert (method.name, method.payload, method.result) == ("add", int, int)
    assert (method.__doc__, method.options) == ("Adds.", JobOptions(max_attempts=5))


class Recorded:
    """What a client would send."""

    def __init__(self) -> None:
        self.pushed: list[tuple[str, Any, dict[str, Any]]] = []

    def push(self, queue: str, payload: Any, **how: Any) -> None:
        self.pushed.append((queue, payload, how))


def test_calls_are_sticky_jobs_of_a_group() -> None:
    """Options of the call go before those of the reference, and these before the method's."""
    client = Client()
    sent = Recorded()
    ref = client.entity(Counter, "a-1", delivery="once", max_attempts=2)
    ref._client = sent  # type: ignore[assignment]
    ref.push(Counter.add, 4, options=JobOptions(priority=None, max_attempts=3))
    ref.push(Counter.read)
    ref.push("add", {"any": 1}, sticky=False, delay=5)
    (queue, payload, how), (_, nothing, _), (_, raw, last) = sent.pushed
    assert (queue, payload, how["name"], nothing, raw) == ("counter", b"4", "add", b"", {"any": 1})
    assert how["options"] == JobOptions(
        content_type="application/json",
        max_attempts=3,
        delivery="once",
        sticky=True,
        group="a-1",
    )
    assert (last["name"], last["sticky"], last["delay"]) == ("add", False, 5)
    assert repr(ref) == "<EntityRef counter/a-1>"


def test_calls_that_make_no_sense_are_refused() -> None:
    client = Client()
    ref = client.entity("counter", "a")
    with pytest.raises(InvalidArgument, match="are its entity and method"):
        ref.push("add", 1, group="b")
    with pytest.raises(InvalidArgument, match="are its entity and method"):
        ref.push("add", 1, name="b")
    with pytest.raises(InvalidArgument, match="key: is empty"):
        client.entity("counter", "")
    with pytest.raises(InvalidArgument, match="key"):
        client.entity("counter", 7)  # type: ignore[arg-type]
    with pytest.raises(InvalidArgument, match="kind"):
        client.entity(7, "a")  # type: ignore[arg-type]
    with pytest.raises(CodecError):
        ref.push(Counter.add, object())  # type: ignore[misc]

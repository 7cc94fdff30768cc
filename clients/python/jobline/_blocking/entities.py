# Generated from jobline/_asynchronous/entities.py by `make gen`: change that file instead.
"""Calling entities: their methods are jobs, one at a time for each entity."""

from __future__ import annotations

from typing import Any, Protocol, TypeVar, Unpack, overload

from jobline._arguments import text_given
from jobline._entity import Entity, EntityMethod, kind_given, refuse_unknown_method
from jobline._job_end import JobEnd
from jobline._keywords import spelled_out
from jobline._options import JobOptions
from jobline._push.messages import PushHow
from jobline._times import Seconds
from jobline._values import Pushed
from jobline.errors import InvalidArgument

P = TypeVar("P")
R = TypeVar("R")

_STICKY = JobOptions(sticky=True)


class Calling(Protocol):
    """What a reference needs of its client."""

    def push(self, queue: str, payload: Any = ..., **how: Unpack[PushHow]) -> Pushed:
        """Pushes one job."""

    def wait_one(self, id_: int, *, timeout: Seconds = ...) -> JobEnd:
        """Returns how one job ended."""


class EntityRef:
    """One entity, as `client.entity(kind, key)` returns it: its methods are called by pushing jobs.

    They run one at a time, in the order of their pushes, on whichever worker has the class; it is
    the same one as long as it can be. Nothing is made or stored until a job is pushed.
    """

    __slots__ = ("_client", "_entity", "_options", "key", "kind")

    def __init__(
        self,
        client: Calling,
        kind: str | type[Entity],
        key: str,
        options: JobOptions | None,
    ) -> None:
        self._client = client
        self._options = options
        self.kind = kind_given(kind)
        self._entity = kind if isinstance(kind, type) else None
        self.key = text_given("key", key)
        if not key:
            raise InvalidArgument("key: is empty; it says which entity is meant")

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.kind}/{self.key}>"

    @overload
    def push(self, method: EntityMethod[None, Any], **how: Unpack[PushHow]) -> Pushed: ...
    @overload
    def push(self, method: EntityMethod[P, Any], payload: P, **how: Unpack[PushHow]) -> Pushed: ...
    @overload
    def push(self, method: str, payload: Any = ..., **how: Unpack[PushHow]) -> Pushed: ...
    @spelled_out(PushHow)
    def push(
        self, method: EntityMethod[Any, Any] | str, payload: Any = b"", **how: Unpack[PushHow]
    ) -> Pushed:
        """Pushes a call of a method, and returns when the ack level is reached.

        `method`: one of the entity's class (`Account.deposit`), which checks the payload's type, or
        its name. The keywords, those of `push` of the client, override the options of the method;
        `delivery="once"` runs the call at most once. Raises what `push` of the client raises, and
        CodecError for a payload that has no JSON.
        """
        return self._client.push(self.kind, self._call(method, payload, how), **how)

    @overload
    def push_and_wait(
        self, method: EntityMethod[None, R], *, timeout: Seconds = ..., **how: Unpack[PushHow]
    ) -> R: ...
    @overload
    def push_and_wait(
        self,
        method: EntityMethod[P, R],
        payload: P,
        *,
        timeout: Seconds = ...,
        **how: Unpack[PushHow],
    ) -> R: ...
    @overload
    def push_and_wait(
        self, method: str, payload: Any = ..., *, timeout: Seconds = ..., **how: Unpack[PushHow]
    ) -> Any: ...
    @spelled_out(PushHow)
    def push_and_wait(
        self,
        method: EntityMethod[Any, Any] | str,
        payload: Any = b"",
        *,
        timeout: Seconds = 60,
        **how: Unpack[PushHow],
    ) -> Any:
        """Pushes a call of a method and returns its result: as the type of the method, or as JSON
        if only its name is given. Raises what `push_and_wait` of the client raises.
        """
        pushed = self.push(method, payload, **how)
        end = self._client.wait_one(pushed.id, timeout=timeout)
        return end.value(Any if isinstance(method, str) else method.result)

    def _call(self, method: EntityMethod[Any, Any] | str, payload: Any, how: PushHow) -> Any:
        """Returns the payload of a call to push; puts the other arguments into `how`."""
        if how.get("group") is not None or how.get("name") is not None:
            raise InvalidArgument("the group and the name of such a job are its entity and method")
        own = None
        if isinstance(method, EntityMethod):
            name = method.name
            payload, own = method.encode(payload)
        else:
            name = text_given("method", method)
        if self._entity is not None:
            refuse_unknown_method(self._entity, name)
        how["name"] = name
        options = _STICKY.merged(own).merged(self._options).merged(how.get("options"))
        how["options"] = options.replaced(group=self.key)
        return payload

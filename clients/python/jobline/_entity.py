"""Entities: classes whose methods are jobs, and whose objects live in the memory of a worker.

    class Account(Entity, kind="account"):
        async def on_activate(self) -> None:
            self.balance = await load(self.key)

        @entity_method
        async def deposit(self, amount: int) -> int: ...

The server runs the jobs of one entity one at a time, whatever the worker, and prefers the worker
that had the last one. Here is what both sides share: the worker makes the objects
(`_worker/entities.py`), producers call methods by `client.entity(Account, "a-123")`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Coroutine
from enum import Enum
from functools import cached_property, partial
from typing import Any, ClassVar, Generic, TypeVar, Unpack, overload

from jobline import _codec as codec
from jobline._arguments import text_given
from jobline._context import Context
from jobline._handlers import payload_hint, result_hint
from jobline._keywords import spelled_out
from jobline._options import JobOptions, OptionsHow, with_keywords
from jobline.errors import InvalidArgument

P = TypeVar("P")
R = TypeVar("R")

_ADVICE = "it is method(self) or method(self, payload), and `self.context` is of its job"


class IdleReason(Enum):
    """Why a worker lets go of an entity."""

    IDLE = "idle"
    """No job of it came for a while."""
    EVICTED = "evicted"
    """The worker keeps as many as it may, and this one was not used for the longest time."""
    LOST = "lost"
    """What it holds may be wrong: a job of it failed, was released or lost its lease, or another
    worker has had a job of it.
    """
    STOPPING = "stopping"
    """The worker stops."""


class EntityMethod(Generic[P, R]):
    """A method of an entity that is a job: made by `entity_method`. On an object it is the plain
    method.
    """

    def __init__(self, function: Callable[..., Any], options: JobOptions | None) -> None:
        self.function = function
        self.name: str = function.__name__
        self.options = options
        self.takes_payload = _takes_payload(function)
        self.__doc__ = function.__doc__

    def __set_name__(self, _owner: type, name: str) -> None:
        self.name = name

    @overload
    def __get__(self, instance: None, owner: type) -> EntityMethod[P, R]: ...
    @overload
    def __get__(self, instance: Entity, owner: type) -> Callable[..., Coroutine[Any, Any, R]]: ...
    def __get__(self, instance: Entity | None, owner: type) -> Any:
        return self if instance is None else self.function.__get__(instance, owner)

    @cached_property
    def payload(self) -> Any:
        """The type of the payload; `Any` without an annotation or a payload."""
        return payload_hint(partial(self.function, None)) if self.takes_payload else Any

    @cached_property
    def result(self) -> Any:
        """The type of the result; `Any` without an annotation."""
        return result_hint(self.function)

    def encode(self, payload: Any) -> tuple[Any, JobOptions | None]:
        """Returns what to push as the payload, and the options of such a job. Raises CodecError."""
        if not self.takes_payload or self.payload is Any or self.payload is bytes:
            return payload, self.options
        json = JobOptions(content_type=codec.JSON)
        return codec.encode_json(payload), json.merged(self.options)

    async def call(self, entity: Entity, payload: Any) -> R:
        """Calls the method for a job."""
        arguments = (payload,) if self.takes_payload else ()
        result: R = await self.function(entity, *arguments)
        return result


class Entity:
    """Base of entities. `class Account(Entity, kind="account")`: jobs of the kind are in the queue
    of that name, and the key of an entity is the group of its jobs.

    A worker makes an object, without arguments, for the first job of a key, and keeps it for the
    next ones. What must not be lost is saved by each method before it returns: the worker that has
    the next job may be another one.

    - `key`: which entity it is. `context`: of the job that runs. `state`: what the worker's
      lifespan yielded.
    """

    kind: ClassVar[str] = ""
    key: str
    context: Context
    state: Any

    def __init_subclass__(cls, *, kind: str = "", **more: Any) -> None:
        super().__init_subclass__(**more)
        if kind:
            cls.kind = text_given("kind", kind)

    async def on_activate(self) -> None:
        """Called before the first job of this entity on this worker, and again after what it held
        was lost: loads what the methods need. What it raises fails the job.
        """

    async def on_idle(self, reason: IdleReason) -> None:
        """Called once the worker lets go of this object: closes what it holds. It has 10 s, and no
        job runs meanwhile on this worker. Do not save state here unless what you save to refuses
        older writers: another worker may have had a later job.
        """


class _MethodDeclaration:
    """What `entity_method(…)` returns: takes the method."""

    def __init__(self, options: JobOptions | None) -> None:
        self._options = options

    @overload
    def __call__(
        self, function: Callable[[Any], Coroutine[Any, Any, R]]
    ) -> EntityMethod[None, R]: ...
    @overload
    def __call__(
        self, function: Callable[[Any, P], Coroutine[Any, Any, R]]
    ) -> EntityMethod[P, R]: ...
    def __call__(self, function: Callable[..., Any]) -> EntityMethod[Any, Any]:
        """Declares a method as a job."""
        return EntityMethod(function, self._options)


@overload
def entity_method(
    function: Callable[[Any], Coroutine[Any, Any, R]], /
) -> EntityMethod[None, R]: ...
@overload
def entity_method(
    function: Callable[[Any, P], Coroutine[Any, Any, R]], /
) -> EntityMethod[P, R]: ...
@overload
def entity_method(
    *, options: JobOptions | None = None, **more: Unpack[OptionsHow]
) -> _MethodDeclaration: ...
@spelled_out(OptionsHow)
def entity_method(
    function: Callable[..., Any] | None = None,
    /,
    *,
    options: JobOptions | None = None,
    **more: Unpack[OptionsHow],
) -> EntityMethod[Any, Any] | _MethodDeclaration:
    """Makes the async method below it a job of its entity: `method(self)` or
    `method(self, payload)`. The job's name is the method's; the types of payload and result are its
    annotations.

    `options`, or the fields of `JobOptions` one by one (`delivery="once"`), travel with its pushes.
    Raises InvalidArgument for a method with other arguments, or a plain one.
    """
    declaration = _MethodDeclaration(with_keywords(options, more, "entity_method"))
    return declaration if function is None else EntityMethod(function, None)


def methods_of(entity: type[Entity]) -> list[EntityMethod[Any, Any]]:
    """Returns the methods of an entity class that are jobs, those of its bases among them. Raises
    InvalidArgument if it is no such class, or has no kind or no such method.
    """
    kind_given(entity)
    found = [getattr(entity, name) for name in dir(entity)]
    methods = [each for each in found if isinstance(each, EntityMethod)]
    if not methods:
        raise InvalidArgument(f"{entity.__name__} has no method with @entity_method")
    _refuse_hooks(entity)
    return methods


def refuse_unknown_method(entity: type[Entity], name: str) -> None:
    """Raises InvalidArgument for a name that is no method of an entity class that is a job."""
    if not isinstance(getattr(entity, name, None), EntityMethod):
        methods = ", ".join(each.name for each in methods_of(entity))
        raise InvalidArgument(
            f"{entity.__name__} has no method {name!r} with @entity_method, but {methods}"
        )


def _refuse_hooks(entity: type[Entity]) -> None:
    """Refuses what would fail with the first job, or with the last one."""
    for name, arguments in (("on_activate", 1), ("on_idle", 2)):
        hook = getattr(entity, name)
        if not inspect.iscoroutinefunction(hook):
            raise InvalidArgument(f"{entity.__name__}.{name} is not async")
        try:
            inspect.signature(hook).bind(*range(arguments))
        except TypeError:
            takes = "self" if arguments == 1 else "self, reason"
            raise InvalidArgument(f"{entity.__name__}.{name} is {name}({takes})") from None
    try:
        inspect.signature(entity).bind()
    except TypeError:
        raise InvalidArgument(
            f"{entity.__name__} is made without arguments; use on_activate, and the lifespan of the"
            " worker for what its objects share"
        ) from None


def kind_given(kind: str | type[Entity]) -> str:
    """Returns the kind of an entity, given by its class or its name. Raises InvalidArgument."""
    given: object = kind
    if isinstance(given, str):
        return text_given("kind", given)
    if not (isinstance(given, type) and issubclass(given, Entity)):
        raise InvalidArgument(f"kind: takes a name, or a class made from Entity, not {kind!r}")
    if not given.kind:
        name = given.__name__
        raise InvalidArgument(f'{name} has no kind: class {name}(Entity, kind="…")')
    return given.kind


def _takes_payload(function: Callable[..., Any]) -> bool:
    name = getattr(function, "__qualname__", repr(function))
    if not inspect.iscoroutinefunction(function):
        raise InvalidArgument(
            f"{name} is not async: methods of entities are; call what blocks by asyncio.to_thread"
        )
    _, *more = inspect.signature(function).parameters.values()
    needed = [each for each in more if each.default is each.empty]
    if len(needed) > 1 or any(each.kind is each.KEYWORD_ONLY for each in needed):
        raise InvalidArgument(f"{name} takes more than a payload: {_ADVICE}")
    return bool(more)

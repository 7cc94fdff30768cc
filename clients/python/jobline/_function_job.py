"""`FunctionJob`: a declared function that takes the values of its job one by one."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any, TypeVar, cast, overload

from jobline._asynchronous.client import AsyncClient
from jobline._blocking.client import Client
from jobline._job_type import JobType
from jobline._parameters import Parameters
from jobline._push.messages import PushHow
from jobline._values import Pushed

R = TypeVar("R")

# All keywords of a push that are not values of the job.
_OF_PUSH = frozenset(PushHow.__annotations__)


class FunctionJob(JobType[Any, R]):
    """A job that is pushed as its function is called: `resize.push(client, path="a", width=64)`.

    `job` makes one of a function with several parameters. The payload is a JSON object with the
    values that are given, by the names of the parameters. Values by position are those of the
    parameters in their order, the context left out; what travels are names all the same. Other
    keywords are those of `Client.push`; a parameter goes before a keyword of its name, for which
    there is `with_options`. `push_many` takes a mapping of values for each job.

    A value that the worker could not read by its annotation is refused with CodecError, whose
    `field` is the parameter.
    """

    @overload
    def push(self, client: Client, /, *values: Any, **more: Any) -> Pushed: ...
    @overload
    def push(
        self, client: AsyncClient, /, *values: Any, **more: Any
    ) -> Coroutine[Any, Any, Pushed]: ...
    def push(
        self, client: Any, /, *values: Any, **more: Any
    ) -> Pushed | Coroutine[Any, Any, Pushed]:
        """Pushes one job. Raises CodecError for a value that is missing or of another type, and
        TypeError for a keyword that is neither a parameter nor one of `Client.push`.
        """
        payload, how = self._parted(values, more)
        pushed: Pushed | Coroutine[Any, Any, Pushed] = super().push(client, payload, **how)
        return pushed

    @overload
    def push_and_wait(self, client: Client, /, *values: Any, **more: Any) -> R: ...
    @overload
    def push_and_wait(
        self, client: AsyncClient, /, *values: Any, **more: Any
    ) -> Coroutine[Any, Any, R]: ...
    def push_and_wait(
        self, client: Any, /, *values: Any, **more: Any
    ) -> R | Coroutine[Any, Any, R]:
        """Pushes a job and returns its result as the declared type. `timeout`, if it is no
        parameter: how long to wait, default 60 s. Raises the errors of `push`, and those of
        `Client.push_and_wait`.
        """
        payload, how = self._parted(values, more, "timeout")
        given: R | Coroutine[Any, Any, R] = super().push_and_wait(client, payload, **how)
        return given

    def _parted(
        self, values: tuple[Any, ...], more: dict[str, Any], *others: str
    ) -> tuple[dict[str, Any], Any]:
        """Returns the values of a job by name, and the keywords of its push."""
        parameters = cast(Parameters, self.parameters)
        named, how = {}, {}
        for name, value in more.items():
            if name in parameters.names:
                named[name] = value
            elif name in _OF_PUSH or name in others:
                how[name] = value
            elif parameters.may_be_more(name):
                named[name] = value
            else:
                parameters.refuse_unknown(name, [*_OF_PUSH, *others])
        return parameters.bind(values, named), how

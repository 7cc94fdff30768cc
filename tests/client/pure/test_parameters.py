"""Functions with several parameters: which they are, what is sent for them, and what they get."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobline import Client, CodecError, FunctionJob, JobType, Pushed, Worker, job
from jobline._leased import LeasedJob
from jobline._schemas import schema_text
from jobline._worker.routes import route_of, route_of_type
from jobline.testing import make_context
from jobline.v1 import job_pb2

if TYPE_CHECKING:
    from jobline import Context


class Fit(Enum):
    COVER = "cover"
    CONTAIN = "contain"


def one(payload):
    return payload


def two(a, b):
    return a, b


def defaulted(a: int, b: int = 2):
    return a, b


@dataclass
class Box:
    width: int
    height: int = 1


@job(queue="images", max_attempts=5)
async def resize(path: str, width: int = 100) -> int:
    """Makes an image smaller."""
    return width


@job(queue="images")
def draw(
    path: Path,
    boxes: list[Box],
    context: Context,
    *,
    fit: Fit = Fit.COVER,
    at: datetime | None = None,
) -> Any:
    return path, boxes, context, fit, at


@job(queue="images")
def tag(name: str, priority: Literal["low", "high"], **more: int) -> Any:
    return name, priority, more


@job(queue="images")
def sweep() -> str:
    return "swept"


class Recorder(Client):
    """A client that pushes nowhere."""

    def __init__(self):
        self.pushed = []

    def push(self, queue, payload=b"", **how):
        self.pushed.append((json.loads(payload), how))
        return Pushed(1, None, None)  # type: ignore[arg-type]  # nobody looks

    def push_many(self, queue, jobs, **how):
        self.pushed.append(([json.loads(data) for data in jobs], how))
        return []


def leased(payload: bytes) -> LeasedJob:
    return LeasedJob(1, 1, "images", job_pb2.JobOptions(content_type="application/json"), payload)


def run(declared: JobType, payload: bytes, context: Any = None) -> Any:
    """Runs a job as a worker does."""
    route = route_of_type(declared)
    return route.function(route.decode(leased(payload)), context)


# ---------------------------------------------------------------------- pushing


def test_values_are_sent_by_name_however_they_are_given():
    """Those by position are of the parameters in their order; what is not given is not sent."""
    client = Recorder()
    resize.push(client, path="a.png", width=64, priority=9)
    resize.push(client, "b.png", job_key="k")
    sweep.push(client)
    resize.push_many(client, [{"path": "c"}, {"path": "d", "width": 2}], delay=5)
    (first, how), (second, more), (third, _), (many, of_many) = client.pushed
    assert (first, how["priority"], how["options"].max_attempts) == (
        {"path": "a.png", "width": 64},
        9,
        5,
    )
    assert how["options"].content_type == "application/json"
    assert (second, more["job_key"], third) == ({"path": "b.png"}, "k", {})
    assert (many, of_many["delay"]) == ([{"path": "c"}, {"path": "d", "width": 2}], 5)


def test_a_parameter_goes_before_a_keyword_of_the_push():
    """For that keyword there is `with_options`, which a push overrides."""
    client = Recorder()
    lower = tag.with_options(priority=3, delay=1)
    lower.push(client, "cat", priority="high", delay=7, shade=4)
    ((values, how),) = client.pushed
    assert values == {"name": "cat", "priority": "high", "shade": 4}
    assert (how["priority"], how["delay"]) == (3, 7)
    resize.with_options(delay=2).push_many(client, [{"path": "c"}])
    assert client.pushed[-1][1]["delay"] == 2
    assert isinstance(lower, FunctionJob)


@pytest.mark.parametrize(
    ("values", "field", "said"),
    [
        ({"path": 7}, "path", r"resize\(\): path: expected str, found int"),
        ({"path": "a", "width": "64"}, "width", "width: expected int, found str"),
        ({"path": "a", "width": True}, "width", "width: expected int, found bool"),
        ({"width": 64}, "path", "path: is missing: str is expected"),
        ({"path": object()}, "path", "path: no JSON for this object"),
    ],
)
def test_a_wrong_value_is_refused_before_it_is_sent(values, field, said):
    """The error names the parameter, and what was expected."""
    client = Recorder()
    with pytest.raises(CodecError, match=said) as caught:
        resize.push(client, **values)
    assert (caught.value.field, client.pushed) == (field, [])
    with pytest.raises(CodecError, match=said):
        resize.push_many(client, [values])


def test_a_wrong_part_of_a_value_is_named():
    """As the worker would name it."""
    with pytest.raises(CodecError, match=r"draw\(\): boxes: \[1\]: width: expected int, found str"):
        draw.push(Recorder(), "a.png", [Box(1), {"width": "2"}])


def test_a_call_that_python_would_refuse_is_refused_as_python_does():
    """Slips of the keyboard, too many values, and values given twice."""
    client = Recorder()
    calls: list[tuple[tuple[Any, ...], dict[str, Any], str]] = [
        (("a",), {"widht": 6}, "unexpected keyword argument 'widht': did you mean 'width'"),
        (("a",), {"job_kye": "k"}, "did you mean 'job_key'"),
        (("a", 1, 2), {}, r"resize\(\) takes 2 values by position, and 3 were given"),
        (("a",), {"path": "b"}, "two values for 'path'"),
    ]
    for values, more, said in calls:
        with pytest.raises(TypeError, match=said):
            resize.push(client, *values, **more)
    with pytest.raises(TypeError, match=r"draw.* takes 2 values by position"):
        draw.push(client, "a", [], make_context())
    with pytest.raises(CodecError, match="by name, as a mapping, not as str"):
        resize.push_many(client, ["a.png"])
    assert client.pushed == []


# ---------------------------------------------------------------------- working


def test_a_handler_gets_values_as_its_annotations_say():
    """Defaults where nothing was sent, and the context wherever it stands."""
    context = make_context()
    data, _ = draw.encode({"path": Path("a.png"), "boxes": [Box(1, 2)], "fit": Fit.CONTAIN})
    found = run(draw, data, context)
    assert found == (Path("a.png"), [Box(1, 2)], context, Fit.CONTAIN, None)
    assert run(tag, b'{"name":"a","priority":"low","x":1}') == ("a", "low", {"x": 1})
    assert run(sweep, b"") == run(sweep, b"{}") == "swept"


@pytest.mark.parametrize(
    ("payload", "said"),
    [
        (b'{"width":1}', "path: is missing: str is expected"),
        (b'{"path":1}', "path: expected str, found int"),
        (b'"a.png"', "takes an object with path, width, found str"),
        (b"", "path: is missing"),
        (b"{", "not JSON"),
    ],
)
def test_a_payload_that_does_not_fit_names_the_parameter(payload, said):
    """Whoever pushed it; keys that nobody takes are ignored, as producers may be newer."""
    with pytest.raises(CodecError, match=said):
        run(resize, payload)
    assert route_of_type(resize).decode(leased(b'{"path":"a","new":1}')) == {"path": "a"}


def test_a_function_of_one_payload_may_run_what_several_values_were_declared_for():
    """And the other way round: what travels is the same object."""

    @dataclass
    class Resize:
        path: str
        width: int = 100

    def tuned(request: Resize, retries: int = 3) -> Resize:
        return request

    sent = JobType(queue="images", name="resize", payload=Resize)
    route = route_of_type(sent, defaulted)
    assert route.decode(leased(b'{"a":1}')) == {"a": 1}
    tuned.__annotations__["request"] = Resize  # it cannot be looked up, as it is a local class
    assert route_of_type(sent, tuned).decode(leased(b'{"path":"a"}')) == Resize("a")
    assert route_of_type(sent, one).decode(leased(b'{"path":"a"}')) == Resize("a")
    assert route_of_type(resize, one).decode(leased(b'{"path":"a"}')) == {"path": "a"}
    worker = Worker("localhost:1")
    worker.handler("q")(two)
    assert route_of("q", "", two).is_async is False
    assert route_of_type(resize).is_async is True


def test_a_payload_sets_nothing_but_values():
    """Neither what the function has of its own, nor what was bound, nor the context."""

    def guarded(a, b, _db="real", *, context, token, **more):
        return a, b, _db, context, token, more

    route = route_of("q", "", partial(guarded, token="bound"))
    payload = b'{"a":1,"b":2,"_db":"x","context":2,"token":"x","c":3}'
    context = make_context()
    found = route.function(route.decode(leased(payload)), context)
    assert found == (1, 2, "real", context, "bound", {"c": 3})
    declared = job(queue="q")(guarded)
    with pytest.raises(TypeError, match="unexpected keyword argument '_db'"):
        declared.push(Recorder(), a=1, b=2, token="t", _db="x")


def test_schemas_have_the_parameters():
    """Those without a default are required."""
    assert json.loads(schema_text(resize.payload)) == {
        "title": "resize",
        "type": "object",
        "properties": {"path": {"type": "string"}, "width": {"type": "integer"}},
        "required": ["path"],
    }
    assert json.loads(schema_text(sweep.payload))["properties"] == {}


def test_it_can_still_be_called():
    """By position and by name."""
    assert tag("a", priority="low", x=1) == ("a", "low", {"x": 1})
    assert resize.__doc__ == "Makes an image smaller."


VALUES = st.fixed_dictionaries(
    {"path": st.text().map(Path), "boxes": st.lists(st.builds(Box, st.integers(), st.integers()))},
    optional={"fit": st.sampled_from(Fit), "at": st.none() | st.datetimes()},
)


@given(VALUES)
def test_what_can_be_pushed_can_be_read(values):
    """The check of the producer is the reading of the worker."""
    data, _ = draw.encode(values)
    assert route_of_type(draw).decode(leased(data)) == values

"""The words of `handlers`: what a handler of a vector does, in Python."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any

from jobline import BatchItem, Cancel, Context, Dead, RateLimited, Retry, Snooze, Worker


class Panic(BaseException):
    """What a handler never expects; other languages panic, or throw what is no error."""


OUTCOMES: dict[str, Callable[[Any], BaseException]] = {
    "error": RuntimeError,
    "panic": Panic,
    "retry": Retry,
    "snooze": Snooze,
    "cancel": Cancel,
    "dead": Dead,
    "rate_limited": partial(RateLimited, ""),
}


def add_handlers(worker: Worker, queue: str, handlers: list[dict[str, Any]]) -> None:
    """Adds the handlers of a vector to a worker."""
    for handler in handlers:
        if "batch" in handler:
            how = handler["batch"]
            declare = worker.batch_handler(
                queue, handler["name"], size=how["size"], wait=how["wait"]
            )
            declare(BatchAnswers(handler["answers"]).run)
        else:
            worker.handler(queue, handler["name"])(Script(handler["do"]).run)


class Script:
    """A handler that does the n-th list of actions when a job is handed to it for the n-th time;
    the last list again after that.
    """

    def __init__(self, turns: list[list[dict[str, Any]]]) -> None:
        self._turns = turns
        self._counts: Counter[int] = Counter()
        self._lock = threading.Lock()

    def run(self, payload: Any, context: Context) -> Any:
        with self._lock:
            turn = min(self._counts[context.id], len(self._turns) - 1)
            self._counts[context.id] += 1
        for action in self._turns[turn]:
            ((word, value),) = action.items()
            if word.startswith("return"):
                return _returned(word, value, payload, context)
            _act(word, value, context)
        return None


def _returned(word: str, value: Any, payload: Any, context: Context) -> Any:
    return {
        "return": value,
        "return_payload": payload,
        "return_attempt": context.attempt,
        "return_headers": dict(context.headers),
        "return_checkpoint": context.checkpoint_value(),
    }[word]


def _act(word: str, value: Any, context: Context) -> None:
    if word in OUTCOMES:
        raise OUTCOMES[word](value)
    match word:
        case "progress":
            context.progress(value)
        case "log":
            context.log(value)
        case "checkpoint":
            context.save_checkpoint(value)
        case "partial":
            context.partial(value)
        case "finish_phase":
            context.phases.finish(value["name"], value["result"])
        case "wait_cancelled":
            context.wait_cancelled(value)
            context.raise_if_cancelled()
        case _:
            raise AssertionError(f"no such action: {word}")


class BatchAnswers:
    """A batch handler that answers each job by its payload."""

    def __init__(self, answers: dict[str, dict[str, Any]]) -> None:
        self._answers = answers

    def run(self, items: list[BatchItem[str]]) -> dict[int, Any]:
        answers = {}
        for item in items:
            ((word, value),) = self._answers[item.payload].items()
            if word == "return":
                answers[item.id] = value
            elif word == "error":
                answers[item.id] = RuntimeError(value)
            elif word == "dead":
                answers[item.id] = Dead(value)
        return answers

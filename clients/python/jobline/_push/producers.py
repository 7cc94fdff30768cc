"""Numbers the push calls of a process, so that the server recognises a repeated call.

Each process of a client is a producer with a random id. It numbers its calls and sends with each
the number below which all are over, so that the server keeps the open calls alone. A call without a
definite reply may be repeated for ten minutes, by any program that has its text. Its producer makes
no more calls from then on, because a later call would declare this one over.
"""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager

from jobline._push.calls import Call, call_of, id_of, identify
from jobline.v1 import job_service_pb2 as pb

# Calls of one producer from its oldest open one to its newest: half of what the server keeps. A
# call that waits for long does not delay the others, which get another producer.
SPAN_MAX = 512


class _Producer:
    """The call numbers of one producer, and which of its calls are open."""

    __slots__ = ("id", "last", "open")

    def __init__(self) -> None:
        self.id = os.urandom(16).hex()
        self.last = 0
        self.open: OrderedDict[int, None] = OrderedDict()

    def is_full(self) -> bool:
        return bool(self.open) and self.last - next(iter(self.open)) >= SPAN_MAX - 1

    def begin(self) -> str:
        self.last += 1
        self.open[self.last] = None
        return Call(self.id, self.last, next(iter(self.open))).text()


class PushCalls:
    """Numbers the push calls of one process. Safe to share between threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._current = _Producer()
        self._producers = {self._current.id: self._current}

    def __call__(self) -> str:
        """Returns the text of a new call; `over` must follow."""
        with self._lock:
            if self._current.is_full():
                free = (one for one in self._producers.values() if not one.is_full())
                self._go_on_with(next(free, None) or _Producer())
            return self._current.begin()

    def over(self, text: str, is_known: bool) -> None:  # what became of it
        """Ends a call that was answered, or given up without a definite answer."""
        call = call_of(text)
        if call is None:
            return
        with self._lock:
            producer = self._producers.get(call.producer)
            if producer is None:
                return
            producer.open.pop(call.sequence, None)
            if not is_known:
                del self._producers[producer.id]
                if self._current is producer:
                    self._go_on_with(next(iter(self._producers.values()), None) or _Producer())

    @contextmanager
    def numbered(self, request: pb.PushRequest) -> Iterator[str]:
        """Wraps all tries of a request, and numbers it if it has no id of its own."""
        text = id_of(request)
        if not text:
            text = self()
            identify(request, text)
        try:
            yield text
        except BaseException as error:
            self.over(text, getattr(error, "definite", False))
            raise
        self.over(text, True)

    def _go_on_with(self, producer: _Producer) -> None:
        self._current = self._producers[producer.id] = producer

"""Values that the shell completes: names that a running server knows, and words of ours.

A person waits for them with a finger on the key: the server has a second, and without an answer in
that time, or without a server, there are none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from itertools import islice
from typing import TYPE_CHECKING

import typer

from jobline._enums import EventKind
from jobline.cli.connection import Connection
from jobline.cli.connection_options import parameters
from jobline.cli.exit_codes import UsageError
from jobline.errors import JoblineError

if TYPE_CHECKING:
    from jobline import Client

Names = Callable[[typer.Context, str], list[str]]
SERVER_SECONDS = 1.0
# More are no help to anybody.
NAMES_MAX = 200


def queues(context: typer.Context, incomplete: str) -> list[str]:
    """Names of queues."""
    return _asked(context, lambda client: (one.name for one in client.queues.list(incomplete)))


def groups(context: typer.Context, incomplete: str) -> list[str]:
    """Names of groups of the queue that stands before them."""
    queue = context.params.get("queue") or ""
    return _asked(
        context, lambda client: (one.group for one in client.queues.groups.list(queue, incomplete))
    )


def limiters(context: typer.Context, incomplete: str) -> list[str]:
    """Names of limiters."""
    return _asked(context, lambda client: (one.name for one in client.limiters.list(incomplete)))


def schedules(context: typer.Context, incomplete: str) -> list[str]:
    """Names of schedules."""
    return _asked(context, lambda client: (one.name for one in client.schedules.list(incomplete)))


def webhooks(context: typer.Context, incomplete: str) -> list[str]:
    """Names of webhooks."""
    return _asked(context, lambda client: (one.name for one in client.webhooks.list(incomplete)))


def event_kinds(incomplete: str) -> list[str]:
    """Kinds of events."""
    return words(*(kind.name.lower() for kind in EventKind if kind))(incomplete)


def words(*known: str) -> Callable[[str], list[str]]:
    """Returns what completes one of these words."""

    def complete(incomplete: str) -> list[str]:
        return [word for word in known if word.startswith(incomplete)]

    return complete


def _asked(context: typer.Context, ask: Callable[[Client], Iterable[str]]) -> list[str]:
    """Asks the server that the line names so far; nothing that goes wrong is shown, the line is not
    finished yet.
    """
    from jobline import Client

    given = {one.name: context.params.get(one.name) or one.default for one in parameters()}
    try:
        with closing(Client(**Connection(**given).of_client(), timeout=SERVER_SECONDS)) as client:
            client.connect(patience=0)
            found: Iterator[str] = iter(ask(client))
            return list(islice(found, NAMES_MAX))
    except (JoblineError, UsageError, OSError):
        return []

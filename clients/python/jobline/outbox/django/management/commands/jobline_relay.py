"""`manage.py jobline_relay`: pushes the jobs of the outbox until SIGTERM or SIGINT."""

from __future__ import annotations

import signal
from typing import Any

from django.core.management.base import BaseCommand, CommandParser
from django.db import DEFAULT_DB_ALIAS, connections

from jobline import Client
from jobline.outbox import Outbox, Relay


class Command(BaseCommand):  # type: ignore[misc]  # Django has no types
    """Runs a `Relay` in this process."""

    help = "Push the jobs that were written to the outbox, until SIGTERM or ^C."

    def add_arguments(self, parser: CommandParser) -> None:
        """Adds the options."""
        parser.add_argument("--server", help="HOST:PORT; default: JOBLINE_SERVER, else localhost")
        parser.add_argument("--database", default=DEFAULT_DB_ALIAS, help="an alias of DATABASES")
        parser.add_argument("--table", default=Outbox().table, help="the outbox")
        parser.add_argument("--poll", default="1s", help="between two looks at an empty table")

    def handle(self, *_arguments: Any, **options: Any) -> None:
        """Runs until it is stopped."""
        with Client(options["server"]) as client:
            relay = Relay(
                lambda: connections[options["database"]],
                client,
                outbox=Outbox(options["table"]),
                poll=options["poll"],
            )
            for number in (signal.SIGTERM, signal.SIGINT):
                signal.signal(number, lambda *_: relay.stop())
            self.stdout.write(f"pushing {options['table']} to {client.target}; ^C to end")
            relay.run()

"""A child as its worker sees it: begun, spoken to, ended."""

from __future__ import annotations

import logging
import multiprocessing
import threading
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any

from jobline._worker.processes import child
from jobline._worker.processes.log import handle_record, levels_now
from jobline._worker.processes.messages import Logged, NotReady, Pipe, Ready, Stop, Terminate
from jobline.errors import InvalidArgument

logger = logging.getLogger("jobline.worker")

# Seconds between the demand to end and SIGKILL.
KILL_SECONDS = 5.0
# Seconds that a child has to end by itself when the worker has stopped.
STOP_SECONDS = 2.0

# A process with threads of gRPC must not be forked.
_SPAWN = multiprocessing.get_context("spawn")
# Around the start of processes: multiprocessing keeps what it prepares in module variables.
_STARTING = threading.Lock()


class CannotBegin(Exception):
    """A child ended before it was ready."""


class ChildProcess:
    """One child. Its runner's thread receives, any thread sends or ends it."""

    def __init__(self, program: bytes) -> None:
        ours, theirs = _SPAWN.Pipe()
        self._pipe = Pipe(ours)
        self._run_number = 0
        self.is_killed = False
        self.process = self._started(theirs, program)

    def _started(self, theirs: Connection, program: bytes) -> BaseProcess:
        try:
            process = _SPAWN.Process(
                target=child.main, args=(theirs, program, levels_now()), name="jobline-worker"
            )
            with _STARTING:
                process.start()
        finally:
            theirs.close()  # or its end would never be noticed
        return process

    def wait_ready(self) -> None:
        """Returns when it has its handlers. Raises InvalidArgument if it cannot have them, and
        CannotBegin if it ended.
        """
        while True:
            try:
                message = self._pipe.receive()
            except Exception as error:
                raise CannotBegin(self.how_it_ended()) from error
            if isinstance(message, Ready):
                return
            if isinstance(message, NotReady):
                raise InvalidArgument(
                    f"handlers cannot be had in another process: {message.why}. What "
                    "processes= runs stands at the top of a module that can be imported there"
                )
            self.handle_log(message)

    def begin_run(self, message: Any) -> None:
        """Sends work. Raises OSError if the child is gone."""
        self._run_number += 1
        self._pipe.send(message)

    def send(self, message: Any) -> None:
        """Sends a message; does nothing if the child is gone."""
        try:
            self._pipe.send(message)
        except OSError:
            logger.debug("a child is gone that was to hear of something")

    def receive(self) -> Any:
        """Returns the next message. Raises EOFError or OSError if the child is gone, and what
        pickle raises for half a message.
        """
        return self._pipe.receive()

    @staticmethod
    def handle_log(message: Any) -> bool:
        """Logs a record here; returns False for another message."""
        if isinstance(message, Logged):
            handle_record(message.record)
            return True
        return False

    def terminate(self) -> None:
        """Ends the handler that runs and the child with it: by an exception, then by SIGKILL."""
        self.send(Terminate())
        timer = threading.Timer(KILL_SECONDS, self._kill_run, [self._run_number])
        timer.daemon = True
        timer.start()

    def end_run(self) -> None:
        """Notes that the handler has ended."""
        self._run_number += 1

    def _kill_run(self, number: int) -> None:
        if self._run_number == number:
            logger.error("process %s ignores its end and is killed", self.process.pid)
            self.kill()

    def kill(self) -> None:
        """Ends it at once."""
        self.is_killed = True
        self.process.kill()

    def how_it_ended(self) -> str:
        """Waits for the end of a child that is gone, and returns how it ended, in words."""
        self.process.join(STOP_SECONDS)
        code = self.process.exitcode
        if code is None:
            self.process.kill()
            return "it has closed its pipe"
        return f"signal {-code}" if code < 0 else f"exit code {code}"

    def hang_up(self) -> None:
        """Has one that runs nothing end by itself."""
        self.send(Stop())

    def close(self) -> None:
        """Waits for the end of one that ends by itself, and kills it if it does not."""
        self.process.join(STOP_SECONDS)
        if self.process.is_alive():
            self.kill()
            self.process.join(STOP_SECONDS)
        self._pipe.close()

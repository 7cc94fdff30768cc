"""Logging: structlog and the standard library with one configuration, as JSON or text, on stderr.

A line has a level, a time, an event and fields. Payloads, results and keys are never logged. The
stack of an unexpected exception is logged here; the caller gets an incident number.
"""

from __future__ import annotations

import logging
import sys
from typing import IO, TYPE_CHECKING, Literal

from jobline_server.telemetry.background_lines import BackgroundLines
from jobline_server.telemetry.lean_structlog import structlog

if TYPE_CHECKING:
    from structlog.typing import Processor

LogFormat = Literal["auto", "json", "console"]
# Libraries whose `info` lines interest only their own developers.
GRPC_CORE = "grpc._cython.cygrpc"
QUIET = ("asyncio", "grpc", GRPC_CORE, "uvicorn.error", "aiosqlite")
# gRPC's core logs this as an error, with a stack, when a client disconnects during a reply.
CLIENT_WENT = "ExecuteBatchError raised in core by servicer method"


def configure_logging(
    form: LogFormat = "json", level: str = "info", stream: IO[str] | None = None
) -> None:
    """Configures both kinds of loggers; a second call changes the configuration."""
    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.StackInfoRenderer(),
    ]
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        wrapper_class=structlog.stdlib.BoundLogger,
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=False,
    )
    handler = _handler() if stream is None else logging.StreamHandler(stream)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                *_renderers(form),
            ],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    for name in QUIET:
        logging.getLogger(name).setLevel(max(logging.WARNING, root.level))
    logging.getLogger(GRPC_CORE).addFilter(_is_news)


def flush_log() -> None:
    """Waits until what was logged is written, for a moment."""
    for handler in logging.getLogger().handlers:
        handler.flush()


def _handler() -> logging.Handler:
    try:
        return BackgroundLines(sys.stderr.fileno())
    except (AttributeError, OSError, ValueError):  # it is closed, or no file
        return logging.StreamHandler(sys.stderr)


def _is_news(record: logging.LogRecord) -> bool:
    return not str(record.msg).startswith(CLIENT_WENT)


def _renderers(form: LogFormat) -> list[Processor]:
    # No values of local variables: payloads and keys are among them.
    if form == "json" or (form == "auto" and not sys.stderr.isatty()):
        frames = structlog.tracebacks.ExceptionDictTransformer(show_locals=False)
        return [structlog.processors.ExceptionRenderer(frames), structlog.processors.JSONRenderer()]
    return [
        structlog.dev.ConsoleRenderer(
            colors=sys.stderr.isatty(), exception_formatter=structlog.dev.plain_traceback
        )
    ]


def logger(name: str) -> structlog.stdlib.BoundLogger:
    """Returns the logger of a room. It logs through the standard library's logger
    `jobline.<name>`, so that a program with a server inside gets these lines with its own.
    """
    bound: structlog.stdlib.BoundLogger = structlog.wrap_logger(
        logging.getLogger(f"jobline.{name}"), wrapper_class=structlog.stdlib.BoundLogger
    )
    return bound

"""What to do about an error of the client: one sentence for each kind, after the error itself."""

from __future__ import annotations

from jobline._reaching import is_somebody_there
from jobline.cli.connection import Connection
from jobline.errors import (
    JoblineError,
    JobNotFound,
    LimiterNotFound,
    NotConnected,
    OutcomeUnknown,
    PermissionDenied,
    QueueNotFound,
    ScheduleExists,
    ScheduleNotFound,
    Unauthenticated,
    Unavailable,
    WaitTimeout,
    WebhookNotFound,
)


def advice_for(error: JoblineError, connection: Connection) -> str:
    """What to do about an error."""
    if isinstance(error, NotConnected):
        return _of_connection(error, connection)
    if isinstance(error, Unavailable) and not error.reason:
        return _nobody_at(connection.server)
    if isinstance(error, Unauthenticated):
        return _of_caller(error, connection)
    if isinstance(error, WaitTimeout):
        return f"It goes on; wait for it again with `jobline job wait {error.id}`."
    if error.retry_after is not None:
        return f"Try again in {error.retry_after:g} s."
    return next((advice for kind, advice in _ADVICE.items() if isinstance(error, kind)), "")


def _nobody_at(server: str) -> str:
    return (
        f"No server answers at {server}. Start one with `jobline serve --data ./jobline-data` "
        "(or `jobline dev` to try things), or name another with --server or JOBLINE_SERVER."
    )


def _of_connection(error: NotConnected, connection: Connection) -> str:
    """Returns what to change of a connection; the words are those of `_reaching`, and of gRPC."""
    said = error.message
    if connection.tls:
        advice = next((advice for words, advice in _OF_TLS.items() if words in said), "")
        if advice:
            return advice
        if said.endswith(_CLOSED):
            if connection.client_certificate:
                return "Does the server take this certificate of a client, and is it valid still?"
            return (
                "Does it ask clients for a certificate? Give --client-certificate FILE and "
                "--client-key FILE."
            )
    elif said.endswith(_CLOSED):
        return "Does the server speak TLS? Add --tls, or --tls-ca FILE with its authority."
    if is_somebody_there(error):
        return (
            f"Is it a Jobline server that listens at {connection.server}, on that port, and does "
            "it hang? Name another with --server or JOBLINE_SERVER."
        )
    return _nobody_at(connection.server)


_CLOSED = ("the connection was closed", "the connection was reset")
_OF_TLS = {
    "does the server speak TLS?": (
        "If it does not, leave out --tls, --tls-ca and --client-certificate, and JOBLINE_TLS, "
        "JOBLINE_TLS_CA and JOBLINE_CLIENT_CERTIFICATE."
    ),
    "an authority": (
        "Give the PEM file of its authority with --tls-ca FILE or JOBLINE_TLS_CA; without it "
        "those of the system count."
    ),
    "has expired": "Renew it at the server, and compare the clocks of both machines.",
    "another name": "Name the server with --server as its certificate does.",
}


def _of_caller(error: Unauthenticated, connection: Connection) -> str:
    if error.reason == "AUTH_REQUIRED":
        return "Give a token: --token-file FILE, or JOBLINE_TOKEN."
    if connection.client_certificate and not connection.has_token:
        return (
            f"It knows no name in {connection.certificate_source}: add one of its names to "
            "[[certificates]] in the server's file, or give a token."
        )
    return f"It refused the token of {connection.token_source}: is it whole, of this server, valid?"


_ADVICE: dict[type[JoblineError], str] = {
    QueueNotFound: "A queue comes into being at its first push; `jobline queue ls` lists them.",
    JobNotFound: "It never was, or its retention has passed; `jobline job ls` lists those kept.",
    LimiterNotFound: "`jobline limiter set` creates one; `jobline limiter ls` lists them.",
    ScheduleNotFound: "`jobline schedule create` makes one; `jobline schedule ls` lists them.",
    WebhookNotFound: "`jobline webhook create` makes one; `jobline webhook ls` lists them.",
    ScheduleExists: "Add --upsert to change it.",
    OutcomeUnknown: "It may have happened. Look before you repeat it, or repeat it with its --key.",
    PermissionDenied: (
        "Use the token of a caller who may (--token-file, JOBLINE_TOKEN), or have a role added to "
        "the server's file of keys and roles."
    ),
}

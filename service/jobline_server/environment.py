"""Environment variables with the server's prefix that are not its settings; it ignores them."""

from __future__ import annotations

import re

# Variables of the client, of the kits for tests in other languages, of the pipeline, and of jobs
# that are run as commands, on the same machine.
CLIENT_VARIABLES = frozenset(
    {
        *("JOBLINE_SERVER", "JOBLINE_TOKEN", "JOBLINE_TLS", "JOBLINE_TLS_CA"),
        *("JOBLINE_CLIENT_CERTIFICATE", "JOBLINE_CLIENT_KEY"),
    }
)
KIT_VARIABLES = frozenset({"JOBLINE_COMMAND"})
PREFIXES = ("JOBLINE_JOB_", "JOBLINE_PIPELINE_")
# Kubernetes sets these in every pod beside a Service called `jobline` or `jobline-…`, as Docker did
# for links (https://kubernetes.io/docs/concepts/services-networking/service/#environment-variables).
_OF_KUBERNETES = re.compile(
    r"JOBLINE_(\w+_)?(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)"
)
_LINK_PORT = re.compile(r"JOBLINE_(\w+_)?PORT=(tcp|udp|sctp)://.*")


def is_of_others(name: str, value: str) -> bool:
    """Returns whether a variable belongs to another program of Jobline, or to Kubernetes."""
    return bool(
        name in CLIENT_VARIABLES | KIT_VARIABLES
        or name.startswith(PREFIXES)
        or _OF_KUBERNETES.fullmatch(name)
        or _LINK_PORT.fullmatch(f"{name}={value}")
    )

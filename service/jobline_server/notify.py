"""Tells a supervisor how the server is, as systemd asks of units with `Type=notify`: a datagram to
the socket in `NOTIFY_SOCKET` (sd_notify(3)). Without one, nothing is said.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping

READY = "READY=1"
STOPPING = "STOPPING=1"


def notify(state: str, environment: Mapping[str, str] = os.environ) -> bool:
    """Sends a state; returns whether somebody was told. That nobody listens is no failure."""
    address = environment.get("NOTIFY_SOCKET", "")
    if not address.startswith(("/", "@")):
        return False
    # `@` stands for the byte 0: a name that is not in the file system.
    name = "\0" + address[1:] if address.startswith("@") else address
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sender:
            sender.connect(name)
            sender.sendall(state.encode())
    except OSError:
        return False
    return True

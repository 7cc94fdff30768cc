"""Notifies a supervisor of the server's state, as systemd expects of units with `Type=notify`: a
datagram to the socket in `NOTIFY_SOCKET` (sd_notify(3)). Does nothing without that variable.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping

READY = "READY=1"
STOPPING = "STOPPING=1"


def notify(state: str, environment: Mapping[str, str] = os.environ) -> bool:
    """Sends a state; returns whether it was sent. A socket without a listener is no error."""
    address = environment.get("NOTIFY_SOCKET", "")
    if not address.startswith(("/", "@")):
        return False
    # `@` means the byte 0: an abstract socket, which is not in the file system.
    name = "\0" + address[1:] if address.startswith("@") else address
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sender:
            sender.connect(name)
            sender.sendall(state.encode())
    except OSError:
        return False
    return True

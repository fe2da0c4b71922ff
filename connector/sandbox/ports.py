"""Free ports on loopback.

Ports are below the kernel's ephemeral range. A server that was killed and starts again needs its port; another
connection could have taken an ephemeral port meanwhile, even a client that tries to reach the server: on loopback a
socket can connect to itself.
"""

from __future__ import annotations

import random
import socket

from connector.errors import SandboxError
from connector.sandbox.settings import HOST

_LOWEST, _HIGHEST = 20_000, 32_000
_ATTEMPTS = 200


def free_port() -> int:
    """Return a port on which no process listens.

    Raises:
        SandboxError: no free port was found.
    """
    for port in random.SystemRandom().sample(range(_LOWEST, _HIGHEST), _ATTEMPTS):
        if is_free(port):
            return port
    raise SandboxError(f"no free port between {_LOWEST} and {_HIGHEST} in {_ATTEMPTS} attempts")


def is_free(port: int) -> bool:
    """Return True if a server can listen on `port` now."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
    return True

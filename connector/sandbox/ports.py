"""Free ports on loopback.

Ports are taken from below the kernel's ephemeral range. A server that was killed gets its port again: were it
an ephemeral one, another connection could have it by then, even a client's attempt to reach the dead server,
which on loopback can connect to itself.
"""

from __future__ import annotations

import random
import socket

from connector.errors import SandboxError
from connector.sandbox.settings import HOST

_LOWEST, _HIGHEST = 20_000, 32_000
_ATTEMPTS = 200


def free_port() -> int:
    """Return a port that nothing listens on.

    Raises:
        SandboxError: when none is found.
    """
    for port in random.SystemRandom().sample(range(_LOWEST, _HIGHEST), _ATTEMPTS):
        if is_free(port):
            return port
    raise SandboxError(f"no free port between {_LOWEST} and {_HIGHEST} in {_ATTEMPTS} attempts")


def is_free(port: int) -> bool:
    """Check that a server could listen on `port` now."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
    return True

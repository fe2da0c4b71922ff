"""The address of a standalone cluster's master: `spark://host:port[,host:port…]`."""

from __future__ import annotations

import ipaddress
import socket
from typing import Final

from connector.clock import Clock
from connector.errors import SparkUnavailable

_SCHEME: Final = "spark://"
_PATIENCE: Final = 5.0  # seconds for one connection
_PAUSE: Final = 0.5  # seconds between two attempts


def wait_for_master(master: str, timeout: float, clock: Clock) -> None:
    """Wait until one of the masters accepts connections; masters of other kinds are not asked.

    Spark itself would wait for a minute, and its error would not name the master.

    Args:
        master: `apply.master`.
        timeout: seconds to wait.
        clock: measures the time.

    Raises:
        SparkUnavailable: none does.
    """
    if not master.startswith(_SCHEME):
        return
    end = clock.monotonic() + timeout
    while not any(_accepts(host, port) for host, port in _addresses(master)):
        if clock.monotonic() >= end:
            raise SparkUnavailable(
                f"no Spark master accepts connections, for {timeout:g} s",
                hint="apply.master is spark://host:port, as the master's web UI shows it; is the master running?",
                master=master,
            )
        clock.sleep(_PAUSE)


def on_loopback(master: str) -> bool:
    """Return True if the master can be reached from this machine alone, so the whole cluster is on it."""
    if not master.startswith(_SCHEME):
        return master.startswith("local")
    return all(_is_loopback(host) for host, _ in _addresses(master))


def _addresses(master: str) -> list[tuple[str, int]]:
    found = []
    for address in master.removeprefix(_SCHEME).split(","):
        host, _, port = address.strip().rpartition(":")
        found.append((host.strip("[]"), int(port) if port.isdigit() else 0))
    return found


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _accepts(host: str, port: int) -> bool:
    try:
        socket.create_connection((host, port), timeout=_PATIENCE).close()
    except (OSError, OverflowError):
        return False
    return True

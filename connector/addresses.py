"""Decides whether traffic to a server's address leaves this machine."""

from __future__ import annotations

from ipaddress import ip_address


def on_this_machine(host: str) -> bool:
    """Return True for a loopback host or the path of a socket."""
    if not host or host.startswith(("/", "@")) or host.rstrip(".").lower() == "localhost":
        return True
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:  # a name
        return False

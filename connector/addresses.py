"""Addresses of servers: whether what is sent to one leaves this machine."""

from __future__ import annotations

from ipaddress import ip_address


def on_this_machine(host: str) -> bool:
    """Whether a host is loopback, or a folder with a socket."""
    if not host or host.startswith(("/", "@")) or host.rstrip(".").lower() == "localhost":
        return True
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:  # a name
        return False

"""Connections of clients: one that is slow, or opens many, keeps no others away.

Waitress ends a connection that is silent for some seconds, but every byte counts as a sign of life, so a client that
sends one now and then would keep its place for ever; and it has a number of places for all clients together.
"""

from __future__ import annotations

import ipaddress
from typing import Any, Final

from waitress.channel import HTTPChannel

PLACES: Final = 200  # connections at once
OF_ONE: Final = 100  # of them of one address; behind a proxy all clients have the proxy's
REQUEST_SECONDS: Final = 10  # for a whole request to arrive, and for a silent connection to end


def network_of(address: str) -> str:
    """Return the address, of IPv6 the network that one client has as a whole."""
    try:
        known = ipaddress.ip_address(address)
    except ValueError:
        return address
    return str(ipaddress.ip_network((known, 64), strict=False)) if known.version == 6 else address


class BoundedChannel(HTTPChannel):
    """A connection that ends if a request does not arrive in time, or its address has too many."""

    began = 0.0  # when the first byte of the unfinished request came

    def __init__(self, server: Any, sock: Any, addr: Any, adj: Any, map: Any = None) -> None:
        super().__init__(server, sock, addr, adj, map=map)
        network = network_of(addr[0])
        same = sum(network_of(one.addr[0]) == network for one in server.active_channels.values())
        if same > OF_ONE:
            self.handle_close()

    def handle_read(self) -> None:
        """Take what has come. While a request is not complete, the time of its begin counts as the last activity."""
        before = self.request
        super().handle_read()
        if self.request is None:
            return
        if self.request is not before:
            self.began = self.last_activity
        self.last_activity = self.began

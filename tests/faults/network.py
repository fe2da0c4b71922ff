"""The network between the connector and the servers of a fault run: a proxy before each of them, which is cut.

Tests, their workload and their witnesses connect to the servers themselves.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any, Final

from connector.sandbox.ports import free_port
from connector.sandbox.server import Server
from connector.sandbox.settings import HOST
from tests.faults.rig import CLOCK, Rig
from tests.support.proxied_kafka import client_listener
from tests.support.proxy import Cut, Proxy, Way

AWAY: Final = 10.0  # seconds in which a server is not reached
RESET: Final = None  # all connections at once


def commits(chunk: bytes) -> bool:
    """True if the bytes are exactly PostgreSQL's COMMIT, as a simple query."""
    return chunk == b"Q\x00\x00\x00\x0bCOMMIT\x00"


# Silence only where an end has to notice: the source's dump connection and Kafka's client expect bytes; others have
# TCP's keepalives, which a proxy on loopback answers.
CUTS: Final[Mapping[str, Sequence[Cut | None]]] = {
    "source": (RESET, Cut(Way.DOWN, "reset", after=30_000), Cut(Way.DOWN, "silence", after=30_000)),
    "broker": (RESET, Cut(Way.UP, "reset", after=20_000), Cut(Way.DOWN, "silence", after=20_000)),
    "target": (RESET, Cut(Way.UP, "reset", after=5_000), Cut(Way.UP, "lost answer", at=commits)),
}


class Network:
    """A proxy before each server.

    Args:
        source, target: the servers; the broker's settings are `broker_settings`.
    """

    def __init__(self, source: Server, target: Server) -> None:
        self.broker_port, clients = free_port(), free_port()
        servers = {"source": (HOST, source.port), "broker": (HOST, clients), "target": (HOST, target.port)}
        self.proxies = {name: Proxy(server) for name, server in servers.items()}
        self.broker_settings = client_listener(self.broker_port, clients, self.proxies["broker"].port)

    def lead(self, values: dict[str, Any]) -> None:
        """Change a configuration so that it leads through the proxies."""
        ports = {name: proxy.port for name, proxy in self.proxies.items()}
        values["source"] |= {"host": HOST, "port": ports["source"]}
        values["kafka"]["bootstrap"] = f"{HOST}:{ports['broker']}"
        before, _, after = values["target"]["url"].rpartition(":")
        values["target"]["url"] = f"{before}:{ports['target']}/{after.partition('/')[2]}"

    def move(self, name: str, port: int) -> None:
        """Let another server have an address: what is connected is reset."""
        proxy = self.proxies[name]
        proxy.server = (HOST, port)
        proxy.reset()

    def close(self) -> None:
        """Close the proxies."""
        for proxy in self.proxies.values():
            proxy.close()


def cut(rig: Rig, network: Network, name: str, random: Random) -> None:
    """Cut the network before a server in one of its ways; return when events are applied again."""
    how, proxy = random.choice(CUTS[name]), network.proxies[name]
    rig.tell(f"network before the {name}: {'away' if how is RESET else how.how}")
    if how is RESET:
        (_, port), nobody = proxy.server, free_port()
        network.move(name, nobody)
        CLOCK.sleep(AWAY)
        network.move(name, port)
    else:
        proxy.arm(how)
        rig.until(lambda: not proxy.armed, f"the cut before the {name}")
    rig.progress()

"""A broker whose clients connect through a proxy."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from connector.sandbox.kafka import KafkaBroker
from connector.sandbox.ports import free_port
from connector.sandbox.settings import HOST
from tests.support.proxy import Proxy


class ProxiedBroker:
    """A broker with its proxy; a `tests.support.servers.environment.Broker`."""

    def __init__(self, folder: Path, proxy: Proxy, *, port: int, clients: int) -> None:
        settings = client_listener(port, clients, proxy.port)
        self._broker = KafkaBroker(folder, port, settings, die_with_parent=True)
        self.bootstrap = f"{HOST}:{proxy.port}"
        self.start, self.stop, self.kill = self._broker.start, self._broker.stop, self._broker.kill

    def rebuild(self) -> None:
        """Start again with empty data at the same address."""
        self.kill()
        shutil.rmtree(self._broker.data)
        self.start()


def client_listener(port: int, clients: int, advertised: int) -> dict[str, str]:
    """The settings of a broker that has a further listener for clients, and names another port to them."""
    controller = free_port()
    listeners = f"PLAINTEXT://{HOST}:{port},CLIENTS://{HOST}:{clients}"
    return {
        "listeners": f"{listeners},CONTROLLER://{HOST}:{controller}",
        "advertised.listeners": f"PLAINTEXT://{HOST}:{port},CLIENTS://{HOST}:{advertised}",
        "controller.quorum.voters": f"1@{HOST}:{controller}",
        "inter.broker.listener.name": "PLAINTEXT",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CLIENTS:PLAINTEXT,CONTROLLER:PLAINTEXT",
    }


@contextmanager
def proxied_broker(folder: Path) -> Iterator[tuple[ProxiedBroker, Proxy]]:
    """Start a broker that is ended with the block."""
    port, clients = free_port(), free_port()
    with Proxy((HOST, clients)) as proxy:
        broker = ProxiedBroker(folder / "kafka", proxy, port=port, clients=clients)
        broker.start()
        try:
            yield broker, proxy
        finally:
            broker.kill()

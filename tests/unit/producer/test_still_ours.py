"""An older producer that sees a newer one's work as damage checks first whether it has been overtaken."""

from __future__ import annotations

from threading import Event
from types import SimpleNamespace
from typing import Any

import pytest

from connector.clock import SystemClock
from connector.config.model import Config
from connector.errors import ConnectorError, Fenced, LogDamaged, PreflightError
from connector.log.transaction.xa import Decided
from connector.producer.producer import Producer
from connector.producer.states import ProducerState


class Publisher:
    """Of a producer that has been overtaken, or has not."""

    committed = SimpleNamespace(snapshot=False)

    def __init__(self, *, overtaken: bool) -> None:
        self._overtaken = overtaken
        self._drained = False

    def put(self, work: Any) -> None:
        self._drained = False

    def drain(self, *, hurried: bool = False) -> Any:
        self._drained = True
        return self.committed

    def confirm(self) -> None:
        assert self._drained
        if self._overtaken:
            raise Fenced("a newer producer runs")


@pytest.mark.parametrize("error", [LogDamaged("what is kept is not there"), PreflightError("the dump was ended")])
@pytest.mark.parametrize("overtaken", [True, False])
def test_error_of_an_overtaken_producer_is_fenced(error: ConnectorError, overtaken: bool) -> None:
    def accept(_: Decided) -> Any:
        """What is kept of the transaction: the newer producer has taken it away."""
        raise error

    capture = SimpleNamespace(read=lambda _: [Decided.__new__(Decided)], ended=False)
    publisher = Publisher(overtaken=overtaken)
    prepared = SimpleNamespace(accept=accept)
    online: Any = SimpleNamespace(
        publisher=publisher, put=publisher.put, stream=capture, prepared=prepared, completion=None
    )
    producer = Producer(Config(service="shop"), SimpleNamespace(), SystemClock(), Event())
    producer._held, producer.state = online, ProducerState.ONLINE
    with pytest.raises(Fenced if overtaken else type(error)):
        producer._step()
    assert (producer.state is ProducerState.FENCED) == overtaken

"""A request to go offline arrives although a producer's transaction is open before it."""

from __future__ import annotations

from threading import Event
from typing import Any, Self

import pytest

from connector.config.model import Config
from connector.errors import BrokerUnavailable
from connector.kafka import requests as requests_module
from connector.kafka.consumer import KafkaMessage
from connector.kafka.records import OFFLINE_KEY, control_message
from connector.kafka.requests import listening
from connector.log.epochs.control import OfflineRequest
from connector.log.ids import Epoch
from tests.support.clock import PATIENCE

ASKED = OfflineRequest(epoch=Epoch(4), asked_at=1, asked_by="me@here", reason="an upgrade")


class Behind:
    """An outage, and a topic with an open transaction, another record, a damaged request, and a request."""

    def __init__(self, *_: object, committed: bool = True, **__: object) -> None:
        key, value = control_message(ASKED)
        self._waiting: list[Any] = [BrokerUnavailable("gone for now"), None]
        if not committed:
            found = [(b"epoch:4", b"{}"), (OFFLINE_KEY, b"?"), (key, value)]
            self._waiting += [KafkaMessage(0, 7 + nth, *one) for nth, one in enumerate(found)]
        self.offsets: dict[int, int] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def assign(self, topic: str, offsets: dict[int, int]) -> None:
        assert (topic, offsets) == ("thl.s.control", {0: 7})

    def poll(self, timeout: float) -> KafkaMessage | None:
        if not self._waiting:
            read.set()
            return None
        found = self._waiting.pop(0)
        if isinstance(found, Exception):
            raise found
        return found  # type: ignore[no-any-return]


read = Event()


def test_request_behind_an_open_transaction_is_received(monkeypatch: pytest.MonkeyPatch) -> None:
    read.clear()
    monkeypatch.setattr(requests_module, "KafkaConsumer", Behind)
    received: list[OfflineRequest] = []
    with listening(Config(service="s"), 7, received.append):
        assert read.wait(PATIENCE)
    assert received == [ASKED]

"""A request to go offline ends only the producer that began the epoch it names."""

from __future__ import annotations

from dataclasses import replace
from threading import Event
from typing import Any

import pytest

from connector.clock import SystemClock
from connector.config.model import Config
from connector.log.epochs.control import EpochRecord, OfflineRequest
from connector.log.ids import Epoch, Seqno
from connector.producer.producer import Producer

ASKED = OfflineRequest(epoch=Epoch(4), asked_at=1, asked_by="me@here", reason="an upgrade")


@pytest.mark.parametrize(
    ("request_", "meant"),
    [
        (replace(ASKED, epoch=Epoch(3)), False),  # of the one before us, while we went online
        (ASKED, True),
        (replace(ASKED, epoch=Epoch(5)), True),  # of ours, too: we went back
        (replace(ASKED, epoch=Epoch(6)), False),  # of one that has overtaken us
        (replace(ASKED, offline_at=2, seqno=7), False),  # an answer
    ],
)
def test_a_request_is_obeyed_by_the_process_that_began_its_epoch(request_: OfflineRequest, meant: bool) -> None:
    stop, nothing = Event(), None
    source: Any = nothing
    producer = Producer(Config(), source, SystemClock(), stop)
    producer.ownership.epochs += [an_epoch(4), an_epoch(5)]
    producer._on_request(request_)
    assert stop.is_set() == meant
    assert producer.request == (request_ if meant else None)
    producer._on_request(replace(ASKED, asked_by="another"))
    assert producer.request == (request_ if meant else replace(ASKED, asked_by="another"))


def an_epoch(number: int) -> EpochRecord:
    epoch, first = Epoch(number), Seqno(0)
    return EpochRecord(epoch=epoch, first_seqno=first, source_id="h", server_uuid="u", started=0, reason="online")

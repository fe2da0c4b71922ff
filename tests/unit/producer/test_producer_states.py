"""The producer's state machine: what it counts, what it hands on, and how long a stop waits for an open event."""

from __future__ import annotations

from contextlib import ExitStack
from threading import Event
from types import SimpleNamespace
from typing import Any

import pytest

from connector.clock import SystemClock
from connector.config.model import Config
from connector.config.source import Source
from connector.errors import BrokerUnavailable, RecordsDamaged
from connector.health import BOUND, ProcessHealth
from connector.log.epochs.control import ControlState
from connector.producer import producer as producer_module
from connector.producer.producer import Producer
from connector.producer.states import ProducerState
from tests.support.clock import Slept

CONFIG = Config(service="shop", source=Source(restarts_in_event=2))


class Failing:
    """An online producer whose brokers are lost after a given event."""

    def __init__(self, last_finished: int) -> None:
        self.publisher = SimpleNamespace(committed=SimpleNamespace(last_finished=last_finished))
        self.stream = SimpleNamespace(ended=False, read=self.fail)
        self.encoder = SimpleNamespace(open=False)

    def fail(self, _: object) -> None:
        raise BrokerUnavailable("the brokers do not answer")


class Damaged(Failing):
    """An online producer whose record store is damaged after a given event."""

    def __init__(self, last_finished: int) -> None:
        super().__init__(last_finished)
        self.discarded = 0
        self.completion = SimpleNamespace(discard=self.discard)

    def fail(self, _: object) -> None:
        raise RecordsDamaged("the record store is damaged")

    def discard(self) -> None:
        self.discarded += 1


def step_online(producer: Producer, online: Any) -> ProducerState:
    producer._held, producer.state = online, ProducerState.ONLINE
    return producer._step()


def test_failures_with_events_between_them_do_not_add_up() -> None:
    producer = Producer(CONFIG, SimpleNamespace(), SystemClock(), Event())
    for seqno in range(10):
        assert step_online(producer, Failing(seqno)) is ProducerState.GOING_ONLINE


def test_too_many_failures_without_an_event_between_them_end_the_producer() -> None:
    producer = Producer(CONFIG, SimpleNamespace(), SystemClock(), Event())
    for seqno in (4, 5, 5):
        assert step_online(producer, Failing(seqno)) is ProducerState.GOING_ONLINE
    with pytest.raises(BrokerUnavailable):
        step_online(producer, Failing(5))


def test_a_damaged_record_store_is_discarded_and_made_again_once_after_an_event() -> None:
    producer = Producer(CONFIG, SimpleNamespace(), SystemClock(), Event())
    for seqno in (4, 5):
        online = Damaged(seqno)
        assert step_online(producer, online) is ProducerState.GOING_ONLINE
        assert online.discarded == 1
    again = Damaged(5)
    with pytest.raises(RecordsDamaged):
        step_online(producer, again)
    assert again.discarded == 1


def test_a_damaged_record_store_is_not_made_again_after_a_stop() -> None:
    stop = Event()
    producer = Producer(CONFIG, SimpleNamespace(), SystemClock(), stop)
    online = Damaged(5)
    fail = online.fail

    def stops(given: object) -> None:
        stop.set()
        fail(given)

    online.stream.read = stops
    assert step_online(producer, online) is ProducerState.ENDING
    assert online.discarded == 1


def test_trapped_events_are_accepted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    accepted = []

    class Recorded:
        def __init__(self, *, accept_trapped: bool, **_: object) -> None:
            accepted.append(accept_trapped)

        def run(self) -> Any:
            if len(accepted) == 1:
                raise BrokerUnavailable("not yet")
            committed = SimpleNamespace(snapshot=False)
            control = ControlState(None, None, ())
            return SimpleNamespace(publisher=SimpleNamespace(committed=committed), control=control, completion=None)

    monkeypatch.setattr(producer_module, "GoingOnline", Recorded)
    producer = Producer(CONFIG, SimpleNamespace(), Slept(), Event(), accept_trapped=True)
    producer._listeners = ExitStack()  # no brokers to listen on
    for _ in range(3):
        producer._held, producer.state = None, ProducerState.GOING_ONLINE
        assert producer._step() is ProducerState.ONLINE
    assert accepted == [True, True, False, False]


def test_open_event_has_five_seconds_to_end_after_a_stop() -> None:
    clock, stop = Slept(100.0), Event()

    class Endless:
        """An event that does not end; each read takes a second."""

        ended = False

        def read(self, _: object) -> list[Any]:
            assert clock.monotonic() < 200
            clock.sleep(1)
            if clock.monotonic() == 110:
                stop.set()
            return []

    online = SimpleNamespace(
        publisher=SimpleNamespace(committed=None),
        put=lambda _: None,
        stream=Endless(),
        encoder=SimpleNamespace(open=True),
        completion=None,
    )
    assert step_online(Producer(CONFIG, SimpleNamespace(), clock, stop), online) is ProducerState.ENDING
    assert clock.monotonic() == 116  # the first read that begins after 115 is not made


def test_stop_between_events_ends_at_once() -> None:
    clock, stop = Slept(100.0), Event()
    stop.set()
    online = SimpleNamespace(encoder=SimpleNamespace(open=False))
    assert step_online(Producer(CONFIG, SimpleNamespace(), clock, stop), online) is ProducerState.ENDING
    assert clock.monotonic() == 100


def test_producer_is_ready_while_it_publishes_and_stuck_if_the_source_is_read_without_end() -> None:
    clock, stop, told = Slept(100.0), Event(), []
    health = ProcessHealth(clock)
    producer = Producer(CONFIG, SimpleNamespace(), clock, stop, health=health)

    class Reads:
        """Returns after a second at first, then not for longer than anything may take."""

        ended = False

        def read(self, _: object) -> list[Any]:
            clock.sleep(1 if len(told) < 2 else BOUND + 1)
            told.append(health.ready())
            if len(told) == 3:
                stop.set()
            return []

    online = SimpleNamespace(
        publisher=SimpleNamespace(committed=None),
        put=lambda _: None,
        stream=Reads(),
        encoder=SimpleNamespace(open=False),
        completion=None,
    )
    producer.state = ProducerState.GOING_ONLINE
    assert health.ready() == (False, "starting")
    producer._held = online  # type: ignore[assignment]
    producer._enter(ProducerState.ONLINE)
    assert producer._step() is ProducerState.ENDING
    assert told == [(True, "online"), (True, "online"), (False, "reading the source has not gone on for 601 s")]
    producer._enter(ProducerState.ENDING)
    assert health.ready() == (False, "ending")

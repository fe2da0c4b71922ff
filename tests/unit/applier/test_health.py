"""What probes are told of an applier: Spark's tasks may hang, and a target may take as long as it needs."""

from __future__ import annotations

from threading import Event
from types import SimpleNamespace
from typing import Any

import pytest

from connector.applier import applier as applier_module
from connector.applier.applier import Applier
from connector.config.model import Config
from connector.health import BOUND, Answer, ProcessHealth
from tests.support.clock import Slept


class Stream:
    """A stream that returns these batches, one at each call, and then stops the applier."""

    def __init__(self, batches: list[object], *, tasks_run: bool, clock: Slept, stop: Event) -> None:
        self.tasks_run = tasks_run
        self._batches, self._clock, self._stop = batches, clock, stop
        self.health, self.between = ProcessHealth(clock), list[bool]()

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def next(self, _: float) -> object:
        self.between.append(self.health.alive().ok)
        self._clock.sleep(BOUND - 1)
        batch = self._batches.pop(0)
        if not self._batches:
            self._stop.set()
        return batch

    def leave_out(self, _: object) -> None:
        pass


def answers(batches: list[object], monkeypatch: pytest.MonkeyPatch, *, tasks_run: bool, apply: float) -> list[Answer]:
    """The answers to a probe after each round of an applier, and after each batch that it has applied."""
    clock, stop, found, batches_come = Slept(), Event(), list[Answer](), None not in batches
    health = ProcessHealth(clock)

    def accept(*_: object, **__: object) -> None:
        clock.sleep(apply)
        found.append(health.ready())

    stream = Stream(batches, tasks_run=tasks_run, clock=clock, stop=stop)
    stream.health = health
    monkeypatch.setattr(applier_module, "LogStream", lambda *_, **__: stream)
    monkeypatch.setattr(applier_module, "Executors", lambda *_: SimpleNamespace(check=lambda: None))
    position = SimpleNamespace(seqno=0, consistent=True, intent=None)
    core: Any = SimpleNamespace(done=False, waiting=False, position=position, accept=accept, full=frozenset)
    checked = SimpleNamespace(check=lambda _: found.append(health.ready()))
    monkeypatch.setattr(applier_module, "TailWatch", lambda *_: checked)
    session: Any = SimpleNamespace(slots=1)
    applier = Applier(Config(service="shop"), session, clock, stop, health=health)
    monkeypatch.setattr(applier, "_largest_message", lambda: 0)
    target: Any = SimpleNamespace(target_schema=SimpleNamespace(loading=()))
    signals: Any = SimpleNamespace(request=lambda _: None)
    applier._follow(target, core, {}, signals)
    assert health.alive().ok  # it has ended
    if batches_come:  # within `accept` no time counts
        assert all(stream.between)
    return found


BATCH = SimpleNamespace(parts=(), full=False)
APPLYING = Answer(ok=True, text="applying")


def test_tasks_of_spark_that_do_not_end_are_stuck(monkeypatch: pytest.MonkeyPatch) -> None:
    found = answers([None, None, None], monkeypatch, tasks_run=True, apply=0)
    assert [answer.ok for answer in found] == [True, False, False]
    assert found[1].text == f"reading by Spark has not gone on for {2 * BOUND - 2:.0f} s"


def test_applier_without_anything_to_read_is_alive(monkeypatch: pytest.MonkeyPatch) -> None:
    assert answers([None, None, None], monkeypatch, tasks_run=False, apply=0) == [APPLYING] * 3


def test_batches_that_come_slowly_are_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    assert answers([BATCH, BATCH, BATCH], monkeypatch, tasks_run=True, apply=0) == [APPLYING] * 3


def test_target_may_take_longer_than_any_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    assert answers([BATCH, BATCH], monkeypatch, tasks_run=True, apply=10 * BOUND) == [APPLYING] * 2

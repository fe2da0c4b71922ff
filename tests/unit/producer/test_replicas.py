"""Replicas hold publication until each has the transactions, and end the wait when told to stop."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event

import pytest
from prometheus_client import REGISTRY
from pydantic import SecretStr

from connector.clock import SystemClock
from connector.config.model import Config
from connector.config.publish import Publish
from connector.config.source import Source
from connector.errors import PreflightError, SourceUnavailable
from connector.log.gtid.source_gtids import Lacking, lacking
from connector.producer import replicas
from connector.producer.publish.replica_gate import ReplicaLagging
from connector.producer.replicas import Replicas
from connector.sandbox.ports import free_port
from tests.support.clock import PATIENCE

UUID = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
WANTED = f"{UUID}:1-9"
Answer = str | Exception


class Scripted:
    """A replica that answers as a test says, the last answer again and again."""

    answers: dict[str, list[Answer]]
    seen: float | None

    def __init__(self, url: str, source: Source) -> None:
        self.name = url.removeprefix("mysql://")
        self._executed: str | None = None

    def missing(self, gtids: str) -> Lacking | None:
        return None if self._executed is None else lacking(gtids, self._executed)

    def has(self, gtids: str) -> bool:
        return self._executed is not None and not lacking(gtids, self._executed)

    def ask(self, gtids: str) -> bool:
        answers = self.answers[self.name]
        answer = answers.pop(0) if len(answers) > 1 else answers[0]
        Scripted.seen = since(self.name)
        if isinstance(answer, Exception):
            raise answer
        self._executed = answer
        return self.has(gtids)


def since(name: str) -> float | None:
    return REGISTRY.get_sample_value("thl_replica_lagging_since_seconds", {"service": "s", "replica": name})


def config(*names: str) -> Config:
    return Config(service="s", publish=Publish(wait_for=tuple(SecretStr(f"mysql://{name}") for name in names)))


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("ROUND", 0.01), ("POLL", 0.01), ("LONGEST_WAIT", 0.01), ("WARN_AFTER", 0.0)):
        monkeypatch.setattr(replicas, name, value)
    monkeypatch.setattr(replicas, "Replica", Scripted)
    monkeypatch.setattr(replicas, "session", gone)


@contextmanager
def gone(source: Source) -> Iterator[None]:
    raise SourceUnavailable("the source does not answer")
    yield


@pytest.mark.usefixtures("quick")
def test_each_replica_is_waited_for_while_it_is_gone_and_asked_only_for_new_transactions(
    caplog: pytest.LogCaptureFixture,
) -> None:
    away = SourceUnavailable("a replica that is waited for does not answer")
    Scripted.answers = {"a": [away, f"{UUID}:1-8", away, f"{UUID}:1-20"], "b": ["", WANTED]}
    hold = Replicas(config("a", "b"), Event(), SystemClock())
    assert not hold.has(WANTED)
    with caplog.at_level(logging.INFO):
        hold.wait(WANTED, lambda: False)
    assert Scripted.answers == {"a": [f"{UUID}:1-20"], "b": [WANTED]}
    assert hold.has(WANTED)
    assert not hold.has(f"{UUID}:10")
    assert Scripted.seen  # while it was asked the metric told since when
    assert (since("a"), since("b")) == (0, 0)
    assert {record.message for record in caplog.records} >= {
        "publication waits for a replica that does not answer",
        "publication waits for a replica that lags",
        "publication continues",
    }
    behind = next(record for record in caplog.records if "lags" in record.message)
    assert behind.__dict__["lacks"] == 1


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("answer", ["", SourceUnavailable("away")])
@pytest.mark.parametrize("how", ["stop", "given up"])
def test_a_wait_ends_at_a_stop_or_when_it_is_given_up(answer: Answer, how: str) -> None:
    Scripted.answers = {"a": [answer]}
    stop = Event()
    hold = Replicas(config("a"), stop, SystemClock())
    if how == "stop":
        stop.set()
    with pytest.raises(ReplicaLagging):
        hold.wait(WANTED, lambda: how == "given up")
    assert since("a") == 0


@pytest.mark.usefixtures("quick")
def test_transactions_that_replicas_have_are_published_during_a_stop() -> None:
    Scripted.answers = {"a": [WANTED]}
    Replicas(config("a"), Event(), SystemClock()).wait(WANTED, lambda: True)


@pytest.mark.usefixtures("quick")
def test_a_replica_without_gtids_ends_the_producer() -> None:
    Scripted.answers = {"a": [PreflightError("no GTIDs")]}
    with pytest.raises(PreflightError):
        Replicas(config("a"), Event(), SystemClock()).wait(WANTED, lambda: False)


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("answer", ["", SourceUnavailable("away")])
def test_transactions_that_the_source_has_lost_are_given_up(answer: Answer, monkeypatch: pytest.MonkeyPatch) -> None:
    @contextmanager
    def successor(source: Source) -> Iterator[str]:
        yield f"{UUID}:1-8"

    monkeypatch.setattr(replicas, "session", successor)
    monkeypatch.setattr(replicas, "gtid_begun", lambda connection: connection)
    Scripted.answers = {"a": [answer]}
    hold = Replicas(config("a"), Event(), SystemClock())
    give_up = SystemClock().monotonic() + PATIENCE

    def not_yet() -> bool:
        assert SystemClock().monotonic() < give_up
        return False

    with pytest.raises(ReplicaLagging):
        hold.wait(WANTED, not_yet)


def test_a_replica_that_is_gone_is_logged_and_closed() -> None:
    name = f"127.0.0.1:{free_port()}"
    hold = Replicas(config(f"me:secret@{name}"), Event(), SystemClock())
    asked: list[bool] = []

    def given_up() -> bool:
        asked.append(True)
        return len(asked) > 2

    with pytest.raises(ReplicaLagging):
        hold.wait(WANTED, given_up)
    assert not hold.has(WANTED)
    hold.close()

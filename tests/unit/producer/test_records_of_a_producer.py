"""A producer with a record store: who may have it open, when it goes back, what it is told of loads and of time."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from threading import Event
from types import SimpleNamespace
from typing import Any

import pytest

from connector.cli import run as thl
from connector.clock import SystemClock
from connector.errors import ConfigError
from connector.log.epochs.control import ControlState, LogRecord
from connector.log.ids import LogId, Seqno
from connector.log.transaction.layout import TableName
from connector.log.transaction.position import PositionRecord, SourcePosition
from connector.producer import producer as producer_module
from connector.producer.encode.numbering import Numbering
from connector.producer.going_online import Online
from connector.producer.producer import Producer
from connector.producer.states import ProducerState
from connector.records.database import Database
from tests.support.clock import Slept
from tests.support.log_objects import epochs
from tests.unit.producer.test_producer_states import CONFIG, step_online

HOLDS = """
import sys
from pathlib import Path
from connector.records.database import Database, reserved
folder = Path(sys.argv[2])
with reserved(folder):
    if sys.argv[1] == "opens":
        opened = Database(folder, cache_bytes=1 << 20)
    print("held", flush=True)
    sys.stdin.read()
"""


@contextmanager
def another_process(does: str, folder: Path) -> Iterator[None]:
    """A process that has reserved a store, or has it open."""
    command = [sys.executable, "-c", HOLDS, does, str(folder)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield
        process.communicate("")


@pytest.mark.parametrize("does", ["opens", "reserves"])
def test_a_producer_whose_store_another_one_has_ends_before_it_fences_it(
    does: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    begun = []
    monkeypatch.setattr(producer_module, "Producer", lambda *_, **__: begun.append(1))
    folder = tmp_path / "records"
    Database(folder, cache_bytes=1 << 20).close()
    given = ["--set", "service=shop", "--set", f"source.records.dir={folder}"]
    with another_process(does, folder):
        assert thl(["produce", *given]) == ConfigError.exit_code
    assert "another process has the record store open" in capsys.readouterr().err
    assert not begun


class Completion:
    """A record store that notes what it is asked, beside what else is noted."""

    def __init__(self, told: list[object]) -> None:
        self.loads: object = None
        self._told = told
        self.tables = SimpleNamespace(find_again=lambda *given: self._told.append(("again", *given)) or True)

    def go_back(self, seqno: Seqno) -> None:
        self._told.append(("back", seqno))

    def prefetch(self, items: list[object]) -> None:
        self._told.append(("prefetch", items))

    def rest(self, now: float) -> None:
        self._told.append(("rest", now))

    def close(self) -> None:
        self._told.append("closed")


def an_online(told: list[object], completion: Any) -> Online:
    def begin(numbering: Numbering) -> None:
        told.append(("numbered from", numbering.next_seqno))

    def closes(what: str) -> Any:
        return lambda: told.append(what)

    control: Any = SimpleNamespace(epochs=epochs(0))
    encoder: Any = SimpleNamespace(begin=begin, next_seqno=Seqno(8))
    stream: Any = SimpleNamespace(close=closes("stream"))
    publisher: Any = SimpleNamespace(end=closes("publisher"))
    transactions: Any = SimpleNamespace(close=closes("transactions"))
    nothing: Any = None
    return Online(transactions, publisher, encoder, stream, nothing, nothing, control, 0, completion)


def position(last: int) -> PositionRecord:
    found: Any = SimpleNamespace(
        last_finished=Seqno(last), tails={}, last_barrier=Seqno(-1), resume=SourcePosition("f", 4)
    )
    return found  # type: ignore[no-any-return]


def test_a_store_goes_back_to_the_position_from_which_numbering_goes_on() -> None:
    told: list[object] = []
    an_online(told, Completion(told)).number(position(7))
    assert told == [("back", 7), ("numbered from", 8)]


def test_a_load_asks_the_store_whether_its_table_is_read_again() -> None:
    told: list[object] = []
    name = TableName("shop", "t")
    assert an_online(told, Completion(told)).read_again(name)
    assert told == [("again", name, 8)]
    assert not an_online(told, None).read_again(name)


def test_a_store_is_closed_after_all_that_writes_to_it() -> None:
    told: list[object] = []
    an_online(told, Completion(told)).close()
    assert told == ["stream", "publisher", "transactions", "closed"]


def test_a_store_is_told_the_loads_of_its_producer(monkeypatch: pytest.MonkeyPatch) -> None:
    completion = Completion([])

    class Recorded:
        def __init__(self, **_: object) -> None:
            pass

        def run(self) -> Any:
            publisher = SimpleNamespace(committed=SimpleNamespace(snapshot=False))
            control = ControlState(LogRecord(LogId("a" * 32), 1), None, ())
            return SimpleNamespace(publisher=publisher, control=control, completion=completion)

    monkeypatch.setattr(producer_module, "GoingOnline", Recorded)
    producer = Producer(CONFIG, SimpleNamespace(), SystemClock(), Event())
    producer._listeners = ExitStack()  # no brokers to listen on
    producer.state = ProducerState.GOING_ONLINE
    assert producer._step() is ProducerState.ONLINE
    assert completion.loads is producer._table_loads.known


def test_a_store_reads_ahead_what_comes_and_rests_after_each_reading() -> None:
    clock, told = Slept(100.0), []

    class Stream:
        ended = False

        def read(self, _: object) -> list[Any]:
            clock.sleep(1)
            self.ended = clock.monotonic() == 102
            return []

    online = SimpleNamespace(
        publisher=SimpleNamespace(committed=None),
        put=lambda _: None,
        stream=Stream(),
        encoder=SimpleNamespace(open=False),
        completion=Completion(told),
    )
    assert step_online(Producer(CONFIG, SimpleNamespace(), clock, Event()), online) is ProducerState.ENDING
    assert told == [("prefetch", []), ("rest", 101.0), ("prefetch", []), ("rest", 102.0)]

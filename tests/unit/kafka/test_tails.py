"""An apparent loss is looked at again up to the high watermark, before a reader calls the log damaged."""

from __future__ import annotations

from typing import Any, Self

import pytest

from connector.config.model import Config
from connector.errors import BrokerUnavailable, LogDamaged
from connector.kafka import tails as tails_module
from connector.kafka.tails import EVERY, SILENCE, TailWatch, check_tails
from connector.log.ids import Epoch, Seqno
from connector.log.transaction.position import PositionRecord
from connector.log.writing.tail import TailFound
from tests.support.clock import Slept
from tests.support.log_objects import position


class Log:
    """A partition whose committed messages are not all visible yet; the position names event 5."""

    def __init__(self, visible: int, written: int) -> None:
        self._visible, self._written = Seqno(visible), Seqno(written)
        self.looks: list[bool] = []

    def __call__(self, _: Config, *, high_watermark: bool = False, patience: float) -> Self:
        self.looks.append(high_watermark)
        return self

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def partitions(self, _: str) -> int:
        return 1

    def position(self) -> PositionRecord:
        return position(5)

    def tail(self, _: int) -> TailFound:
        return TailFound(self._written if self.looks[-1] else self._visible, Epoch(1), 0, 9)


@pytest.mark.parametrize(("visible", "looks"), [(5, [False]), (3, [False, True])])
def test_events_of_an_open_transaction_are_not_lost(
    visible: int, looks: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    log: Any = Log(visible, 5)
    monkeypatch.setattr(tails_module, "LogReader", log)
    check_tails(Config(service="s"))
    assert log.looks == looks


def test_events_missing_up_to_the_high_watermark_are_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tails_module, "LogReader", Log(3, 4))
    with pytest.raises(LogDamaged):
        check_tails(Config(service="s"))


def test_a_reader_that_waits_in_vain_says_so_once_a_minute(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    answers = True

    def check(*_: object) -> None:
        if not answers:
            raise BrokerUnavailable("the leader is gone")

    monkeypatch.setattr(tails_module, "check_tails", check)
    clock = Slept()
    watch = TailWatch(Config(service="s"), clock)

    def warnings_in(seconds: float) -> int:
        caplog.clear()
        for _ in range(int(seconds / EVERY)):
            clock.sleep(EVERY)
            watch.check(Seqno(3))
        return sum("the log's end cannot be read" in one.message for one in caplog.records)

    assert warnings_in(SILENCE) == 0
    answers = False
    assert warnings_in(2 * SILENCE) == 2
    assert "the leader is gone" in str(vars(caplog.records[0])["why"])
    answers = True
    assert warnings_in(SILENCE) == 0
    answers = False
    assert warnings_in(EVERY) == 1

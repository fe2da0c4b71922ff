"""An applier looks for its log before it claims its target: each claim counts as a restart.

`tests/integration/applier/test_apply.py` does the same with brokers and a target.
"""

from __future__ import annotations

from threading import Event
from types import SimpleNamespace
from typing import Any

import pytest

from connector.applier import applier as applier_module
from connector.applier.applier import Applier
from connector.config.model import Config
from connector.errors import LogMissing
from connector.log.ids import NO_SEQNO
from tests.support.clock import Slept

CONFIG = Config(service="shop")


class Claimed(Exception):
    """Raised by the claim of these tests, with which an attempt ends."""


class Attempts:
    """The attempts of one applier.

    Args:
        monkeypatch: replaces the log and the target.
        position: the position in the target; None: it has none.
        log: for each look whether the log is there.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch, position: Any, *log: bool) -> None:
        self.looks, self.closed = [*log], 0

        def claim(*_: object) -> None:
            raise Claimed

        def close() -> None:
            self.closed += 1

        monkeypatch.setattr(applier_module, "Executors", lambda *_: SimpleNamespace(check=lambda: None))
        monkeypatch.setattr(applier_module, "log_exists", lambda _: self.looks.pop(0))
        monkeypatch.setattr(applier_module, "read_position", lambda *_: position)
        session: Any = SimpleNamespace(slots=1)
        target: Any = SimpleNamespace(close=close)
        self.applier = Applier(CONFIG, session, Slept(), Event(), opened=lambda: target)
        monkeypatch.setattr(self.applier, "_claimant", SimpleNamespace(claim=claim))

    def next(self) -> type[Exception]:
        """Make an attempt; return what ends it."""
        with pytest.raises((Claimed, LogMissing)) as ended:
            self.applier._attempt()
        return ended.type


@pytest.mark.parametrize("position", [None, SimpleNamespace(seqno=NO_SEQNO)])
def test_a_target_without_events_is_not_claimed_before_its_log_is_there(
    position: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    attempts = Attempts(monkeypatch, position, False, False, True)
    assert [attempts.next() for _ in range(3)] == [LogMissing, LogMissing, Claimed]
    assert attempts.closed == 3


def test_a_target_with_events_is_claimed_and_the_handshake_refuses_it(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Attempts(monkeypatch, SimpleNamespace(seqno=0), False).next() is Claimed


def test_a_log_that_was_found_is_not_looked_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    attempts = Attempts(monkeypatch, None, True)
    assert [attempts.next() for _ in range(3)] == [Claimed] * 3
    assert attempts.looks == []

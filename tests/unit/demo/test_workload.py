"""The workload's threads, against a connection that runs nothing."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from random import Random
from unittest.mock import MagicMock

import pymysql
import pytest
from pymysql.cursors import Cursor

from connector.clock import SystemClock
from connector.demo import workload
from connector.demo.workload import ShopWorkload


def deadlock(cursor: Cursor, random: Random, names: Mapping[str, str]) -> None:
    if random.randrange(2):
        raise pymysql.err.OperationalError(1213, "Deadlock found")


def test_threads_that_lose_races_do_not_disturb_one_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workload._RETRYING, "sleep", lambda _: None)
    made = ShopWorkload(MagicMock(), SystemClock(), seed=1, rate=1e9, kinds=(deadlock,))
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        made.start(4)
        while made.transactions < 3000 and made._failure is None:
            SystemClock().sleep(0.01)
    finally:
        made.stop()
        sys.setswitchinterval(interval)

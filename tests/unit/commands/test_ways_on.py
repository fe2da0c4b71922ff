"""Hints of errors, and last lines of commands, that need no server."""

from __future__ import annotations

from pathlib import Path
from threading import Event
from types import SimpleNamespace
from typing import Any

import pytest
from pydantic import SecretStr

from connector import retrying
from connector.applier.applier import Applier
from connector.clock import SystemClock
from connector.commands import apply as apply_module
from connector.config.apply import Target as TargetSection
from connector.config.filters import TableRule
from connector.config.model import Config
from connector.config.source import Source
from connector.errors import PreflightError, TargetUnavailable
from connector.kafka.ends import no_log
from connector.log.ids import Epoch, LogId, Seqno
from connector.log.transaction.position import Intent, TargetPosition
from connector.mysql.preflight.wider_filters import columns_otherwise
from connector.mysql.server.connection import _user_hint
from connector.targets.target import TargetDatabase
from connector.verify.sqlite import SqliteReader

KINDS = {"id": "int", "born": "date", "seen": "timestamp", "mail": "varchar"}


@pytest.mark.parametrize("retries", [0, 2])
def test_unavailable_target_is_retried_as_often_as_configured(retries: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retrying, "LONGEST_WAIT", 0.001)
    asked: list[int] = []

    def gone() -> TargetDatabase:
        asked.append(1)
        raise TargetUnavailable("it does not answer")

    session: Any = SimpleNamespace(slots=2)  # as of local[2], and not used before the target answers
    config = Config(target=TargetSection(url=SecretStr("sqlite:///x.db"), retries=retries))
    with pytest.raises(TargetUnavailable):
        Applier(config, session, SystemClock(), Event(), opened=gone).run()
    assert len(asked) == retries + 1


def test_target_without_applier_tables_is_refused_with_the_command(tmp_path: Path) -> None:
    with pytest.raises(PreflightError) as raised:
        SqliteReader(tmp_path / "none.db")
    assert raised.value.hint == "thl apply"
    (tmp_path / "empty.db").touch()
    reader = SqliteReader(tmp_path / "empty.db")
    with pytest.raises(PreflightError) as raised, reader.view("shop"):
        pass
    assert raised.value.hint == "thl apply"
    reader.close()


def test_service_without_a_log_is_a_configuration_error() -> None:
    error = no_log(Config(service="nope"))
    assert error.exit_code == 2
    assert error.where["service"] == "nope"


def test_hint_for_a_refused_user_begins_with_the_password() -> None:
    hint = _user_hint(Source(user="thl"))
    assert hint.startswith("is source.password right?")
    assert "REPLICATION SLAVE, REPLICATION CLIENT, FLUSH_TABLES, XA_RECOVER_ADMIN, SELECT ON *.* TO 'thl'@'%'" in hint


def test_zero_dates_rule_changes_only_date_columns() -> None:
    before = TableRule(match=("shop.t",), zero_dates=("*",), drop=("mail",))
    assert list(columns_otherwise(KINDS, before, None, rekeyed=False)) == [
        "of columns that were dropped or masked: mail",
        "of columns whose zero dates were published as NULL: born, seen",
    ]
    assert not list(columns_otherwise(KINDS, before, before, rekeyed=False))


@pytest.mark.parametrize(
    ("position", "line"),
    [
        (TargetPosition(service="s"), "stopped before the first event of service s"),
        (TargetPosition(service="s", seqno=Seqno(0)), "stopped after event 0 of service s"),
        (
            TargetPosition(service="s", seqno=Seqno(7), event_id="mysql-bin.1:9;u:8", gtid_set="u:1-8"),
            "stopped after event 7 of service s: mysql-bin.1:9;u:8, GTIDs u:1-8",
        ),
        (
            TargetPosition(service="s", seqno=Seqno(7), consistent=False),
            "stopped after event 7 of service s; the initial load is not complete",
        ),
    ],
)
def test_applier_says_where_it_has_stopped(position: TargetPosition, line: str) -> None:
    assert apply_module._stopped(position) == line


INTENT = Intent(log_id=LogId("log"), first=Seqno(42), last=Seqno(50), epoch=Epoch(1), writers=2, hash_version=1,
                undivided=frozenset(), committed=frozenset({1}))  # fmt: skip


@pytest.mark.parametrize("seqno", [-1, 41])
@pytest.mark.parametrize("consistent", [True, False])
def test_applier_that_is_stopped_within_a_commit_says_that_the_target_is_not_consistent(
    seqno: int, consistent: bool
) -> None:
    position = TargetPosition(service="shop", seqno=Seqno(seqno), consistent=consistent, intent=INTENT)
    line = "stopped within the commit of events 42..50 of service shop: the target is not consistent; thl apply "
    line += "finishes the commit"
    assert apply_module._stopped(position) == line
    assert apply_module._finished(Config(), position, "no broker answers") == line

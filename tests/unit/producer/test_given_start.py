"""`thl produce --start` where the log exists: what is ignored with a line, and what is refused."""

from __future__ import annotations

import logging
from dataclasses import replace

import pytest

from connector.errors import ConfigError, PreflightError
from connector.log.epochs.control import EpochRecord
from connector.log.ids import NO_SEQNO, Epoch, Seqno
from connector.log.transaction.position import PositionRecord, SourcePosition
from connector.producer.given_start import check_start, tell_of_start

A, B = "3e11fa47-71ca-11e1-9e33-c80aa9429562", "4e11fa47-71ca-11e1-9e33-c80aa9429562"
BEFORE = EpochRecord(
    epoch=Epoch(1),
    first_seqno=Seqno(0),
    source_id="h",
    server_uuid="a",
    started=1,
    reason="online",
    gtid_set=f"{A}:1-10",
)
POSITION = PositionRecord(
    finished=None,
    resume=SourcePosition("binlog.000009", 700),
    gtid_set=f"{A}:1-50",
    open=None,
    tails={0: NO_SEQNO},
    server_uuid="a",
)


@pytest.mark.parametrize(
    "start",
    [
        "snapshot",
        "now",
        "earliest",
        f"{A}:1-10",
        f"{A}:1-50",
        "binlog.000009:700",
        "binlog.000008:900",
        " binlog.000001:4",
    ],
)
def test_a_start_that_the_log_is_past_is_accepted_at_every_start(start: str) -> None:
    check_start(start, POSITION, BEFORE, "a")


@pytest.mark.parametrize(
    "start", [f"{A}:1-51", f"{A}:1-10,{B}:1", "binlog.000009:701", "binlog.000010:4", "binlog.1000000:4"]
)
def test_a_start_after_the_position_is_refused_with_the_position(start: str) -> None:
    with pytest.raises(PreflightError) as refused:
        check_start(start, POSITION, BEFORE, "a")
    assert refused.value.where["position"] == POSITION.resume
    assert refused.value.where["gtid_set"] == POSITION.gtid_set
    assert "leave out --start" in refused.value.hint


@pytest.mark.parametrize("start", ["yesterday", "binlog.000009:18446744073709551616"])
def test_a_start_that_is_none_is_refused_although_the_log_exists(start: str) -> None:
    with pytest.raises(ConfigError, match=r"source\.start"):
        check_start(start, POSITION, BEFORE, "a")


@pytest.mark.parametrize(("position", "server"), [("b", "b"), ("a", "b"), ("b", "a")])
def test_a_file_of_another_server_is_not_compared(position: str, server: str) -> None:
    check_start("binlog.000010:4", replace(POSITION, server_uuid=position), BEFORE, server)


def test_gtids_that_the_log_began_with_are_accepted_after_a_fork_without_them() -> None:
    check_start(f"{A}:1-10", replace(POSITION, gtid_set=f"{A}:1-8,{B}:1-9"), BEFORE, "a")


@pytest.mark.parametrize("gtids", [None, "0-1-5", ""])
def test_gtids_are_compared_with_those_of_their_kind_alone(gtids: str | None) -> None:
    start = replace(BEFORE, gtid_set=None)
    check_start(f"{A}:1-60", replace(POSITION, gtid_set=gtids), start, "a")


def test_mariadbs_gtids_are_compared_by_domain() -> None:
    position, before = replace(POSITION, gtid_set="0-1-5,1-1-9"), replace(BEFORE, gtid_set="0-1-2")
    check_start("0-1-5", position, before, "a")
    with pytest.raises(PreflightError):
        check_start("0-1-6", position, before, "a")


def test_the_ignored_start_is_one_line_with_the_position_and_the_way_out(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    tell_of_start("now", "s", POSITION)
    (line,) = caplog.records
    assert line.levelno == logging.INFO
    assert "ignored" in line.getMessage()
    told = {"start": "now", "position": POSITION.resume, "gtid_set": POSITION.gtid_set, "last_seqno": -1}
    assert told.items() <= vars(line).items()
    assert "another `service`" in vars(line)["hint"]

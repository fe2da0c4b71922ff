"""`thl wait` asks until the target's own position fulfils the condition."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from connector.cli import run as thl
from connector.errors import ConfigError, ConnectorError, HistoriesDiffer, TargetUnavailable, TimedOut
from connector.log.ids import Epoch, Seqno
from connector.log.transaction.position import Digest, Finished, PositionRecord, SourcePosition
from connector.status.waiting import EventReached, HeartbeatReached, LogEnd, wait_for
from connector.targets.position import TargetRow
from tests.support.clock import Slept

UUID = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
ROW = TargetRow("a" * 32, 40, 2, "b.000002:90;0", f"{UUID}:1-40", True, 0, 0, 3)


@dataclass
class Target:
    """Gives one answer after the other, the last for ever."""

    answers: list[TargetRow | ConnectorError | None]
    asked: int = field(default=0)

    def __call__(self) -> TargetRow | None:
        answer = self.answers[min(self.asked, len(self.answers) - 1)]
        self.asked += 1
        if isinstance(answer, ConnectorError):
            raise answer
        return answer


@pytest.mark.parametrize(
    ("wanted", "reached"),
    [
        ("40", True),
        ("0", True),
        ("41", False),
        (f"{UUID}:40", True),
        (f"{UUID.upper()}:7-12", True),
        (f"{UUID}:41", False),
        (f"{UUID}:40-41", False),
        (f"{UUID.replace('3', '4')}:1", False),
    ],
)
def test_event_is_reached_by_seqno_or_gtids(wanted: str, reached: bool) -> None:
    assert EventReached.parse(wanted).reached(ROW) is reached


@pytest.mark.parametrize(("wanted", "reached"), [("0-1-7", True), ("0-1-8", False), ("1-1-1", False)])
def test_event_is_reached_by_gtids_of_mariadb(wanted: str, reached: bool) -> None:
    assert EventReached.parse(wanted).reached(replace(ROW, gtid_set="0-1-7")) is reached


def test_no_event_is_reached_before_the_first() -> None:
    assert not EventReached.parse("0").reached(None)
    assert not EventReached.parse(f"{UUID}:1").reached(replace(ROW, seqno=-1, gtid_set=None))


def test_impossible_condition_is_refused_at_once() -> None:
    clock = Slept()
    with pytest.raises(ConfigError) as refused:
        wait_for(EventReached.parse(f"{UUID}:1"), Target([replace(ROW, gtid_set=None)]), clock, None)
    assert "--to-seqno" in refused.value.hint
    with pytest.raises(HistoriesDiffer):
        wait_for(EventReached.parse("0-1-7"), Target([ROW]), clock, None)
    assert clock.seconds == 0


def test_new_or_unavailable_target_is_waited_for() -> None:
    target = Target([None, replace(ROW, seqno=3), TargetUnavailable("gone"), replace(ROW, seqno=39), ROW])
    assert wait_for(EventReached.parse("40"), target, Slept(), None) == ROW
    assert target.asked == 5


@pytest.mark.parametrize(("answer", "applied", "cause"), [(ROW, 40, ""), (TargetUnavailable("gone"), None, "gone")])
def test_timeout_names_condition_progress_and_cause(
    answer: TargetRow | ConnectorError, applied: int | None, cause: str
) -> None:
    clock = Slept()
    with pytest.raises(TimedOut) as raised:
        wait_for(EventReached.parse("41"), Target([answer]), clock, 3.0)
    assert raised.value.where == {"waited_for": 41, "applied": applied, "written": None}
    assert cause in raised.value.message
    assert 3.0 <= clock.seconds < 3.5


def test_error_that_is_not_retryable_is_raised() -> None:
    error = ConfigError("an unknown scheme")
    with pytest.raises(ConfigError) as raised:
        wait_for(EventReached.parse("1"), Target([error]), Slept(), None)
    assert raised.value is error


def test_heartbeat_is_reached_when_new_enough_and_target_consistent() -> None:
    found = iter([None, 6, 6, 7])
    condition = HeartbeatReached("mine", 7, lambda: next(found))
    target = Target([None, replace(ROW, consistent=False), ROW, replace(ROW, seqno=41), replace(ROW, seqno=42), ROW])
    assert wait_for(condition, target, Slept(), None).seqno == 40
    assert (target.asked, list(found)) == (6, [])
    assert HeartbeatReached("mine", None, lambda: 0).reached(ROW)
    with pytest.raises(TimedOut) as raised:
        wait_for(HeartbeatReached("mine", None, lambda: None), Target([ROW]), Slept(), 1.0)
    assert raised.value.where == {"waited_for": "mine", "applied": 40, "written": None}


@pytest.fixture
def waiting(tmp_path: Path) -> Callable[..., int]:
    """The command, with an SQLite target that has event 40."""
    file = tmp_path / "t.db"
    with sqlite3.connect(file) as connection:
        connection.execute(
            "CREATE TABLE thl_position (service, log_id, seqno, epoch, event_id, gtid_set, consistent, commit_time, "
            "applied_at, token)"
        )
        connection.execute("INSERT INTO thl_position VALUES ('s', 'a', 40, 2, 'b:9;0', NULL, 1, 0, 0, 1)")
        connection.execute("CREATE TABLE thl_tables (service, schema_name, table_name, target_name)")
        connection.execute("INSERT INTO thl_tables VALUES ('s', 'Ops', 'beat', 'Ops.beat'), ('t', 'ops', 'beat', 'x')")
        connection.execute("""CREATE TABLE "Ops.beat" (service, name, written)""")
        connection.execute("""INSERT INTO "Ops.beat" VALUES ('s', 'mine', '2026-11-22 06:30:00.000500')""")
    return lambda *words: thl(["wait", "--set", "service=s", "--set", f"target.url=sqlite:///{file}", *words])


def test_command_waits_for_event(waiting: Callable[..., int], capsys: pytest.CaptureFixture[str]) -> None:
    assert waiting("--to-seqno", "40") == 0
    assert capsys.readouterr().err == "applied 40 (b:9;0)\n"
    assert waiting("--to-seqno", "41", "--timeout", "0.3") == TimedOut.exit_code
    assert "[waited_for=41 applied=40]" in capsys.readouterr().err
    assert waiting("--to-gtid", "soon") == waiting("--to-gtid", "40") == 2


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("--to-heartbeat", "mine"), 0, "applied 40 (b:9;0)"),
        (("--to-heartbeat", "mine", "--from-time", "2026-11-22T06:30:00.000500Z"), 0, "applied 40 (b:9;0)"),
        (
            ("--to-heartbeat", "mine", "--from-time", "2026-11-22T07:30:00.000501+01:00"),
            TimedOut.exit_code,
            "waited_for=mine",
        ),
        (("--to-heartbeat", "other"), TimedOut.exit_code, "waited_for=other"),
        ((), 2, "one of --to-seqno, --to-gtid, --to-heartbeat"),
        (("--to-heartbeat", "mine", "--to-seqno", "1"), 2, "one of --to-seqno, --to-gtid, --to-heartbeat"),
        (("--to-seqno", "1", "--from-time", "2026-11-22"), 2, "--from-time needs --to-heartbeat"),
    ],
)
def test_command_waits_for_heartbeat(
    waiting: Callable[..., int], capsys: pytest.CaptureFixture[str], words: tuple[str, ...], code: int, said: str
) -> None:
    assert waiting("--set", "source.heartbeat_table=ops.BEAT", "--timeout", "0.3", *words) == code
    assert said in capsys.readouterr().err
    if "--to-heartbeat" in words and code != 2:
        assert waiting(*words) == 2
        assert "source.heartbeat_table names no table" in capsys.readouterr().err


def test_log_end_is_last_finished_event() -> None:
    assert LogEnd.of(None) is None
    position = PositionRecord(
        finished=None, resume=SourcePosition("b.1", 4), gtid_set=f"{UUID}:1-7", open=None, tails={}
    )
    assert LogEnd.of(position) is None
    finished = Finished(
        seqno=Seqno(40),
        epoch=Epoch(1),
        event_id="b.1:9;0",
        gtid=None,
        digest=Digest(0, 0, 0),
        start=position.resume,
    )
    end = LogEnd.of(replace(position, finished=finished, snapshot=True))
    assert end == LogEnd(40, "b.1:9;0", f"{UUID}:1-7", consistent=False)
    assert EventReached.parse("40").reached(end)
    assert EventReached.parse(f"{UUID}:7").reached(end)
    assert not EventReached.parse("41").reached(end)
    with pytest.raises(TimedOut) as refused:
        wait_for(EventReached.parse("41"), lambda: end, Slept(), 1.0, end="log")
    assert refused.value.where == {"waited_for": 41, "applied": None, "written": 40}


@pytest.mark.parametrize(
    "options", [("--producer", "--to-heartbeat", "x"), ("--producer", "--target", "--to-seqno", "1")]
)
def test_heartbeat_of_producer_and_two_ends_are_refused(waiting: Callable[..., int], options: tuple[str, ...]) -> None:
    assert waiting(*options) == 2

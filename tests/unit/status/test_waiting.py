"""`thl wait` looks until the target's own position has what is wanted."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from connector.cli import run as thl
from connector.errors import ConfigError, ConnectorError, HistoriesDiffer, TargetUnavailable, TimedOut
from connector.log.ids import Epoch, Seqno
from connector.log.transaction.position import Digest, Finished, PositionRecord, SourcePosition
from connector.status.target import TargetRow
from connector.status.waiting import LogEnd, Wanted, WantedHeartbeat, wait_for
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
def test_what_a_target_has(wanted: str, reached: bool) -> None:
    assert Wanted.parse(wanted).reached(ROW) is reached


@pytest.mark.parametrize(("wanted", "reached"), [("0-1-7", True), ("0-1-8", False), ("1-1-1", False)])
def test_what_a_target_of_mariadb_has(wanted: str, reached: bool) -> None:
    assert Wanted.parse(wanted).reached(replace(ROW, gtid_set="0-1-7")) is reached


def test_nothing_is_reached_before_the_first_event() -> None:
    assert not Wanted.parse("0").reached(None)
    assert not Wanted.parse(f"{UUID}:1").reached(replace(ROW, seqno=-1, gtid_set=None))


def test_what_can_never_be_reached_is_told_at_once() -> None:
    clock = Slept()
    with pytest.raises(ConfigError, match="has no GTIDs"):
        wait_for(Wanted.parse(f"{UUID}:1"), Target([replace(ROW, gtid_set=None)]), clock, None)
    with pytest.raises(HistoriesDiffer):
        wait_for(Wanted.parse("0-1-7"), Target([ROW]), clock, None)
    assert clock.seconds == 0


def test_it_waits_through_a_target_that_is_new_or_gone_for_a_while() -> None:
    target = Target([None, replace(ROW, seqno=3), TargetUnavailable("gone"), replace(ROW, seqno=39), ROW])
    assert wait_for(Wanted.parse("40"), target, Slept(), None) == ROW
    assert target.asked == 5


@pytest.mark.parametrize(
    ("answer", "told"),
    [(ROW, r"within 3 s \[wanted=41 applied=40\]"), (TargetUnavailable("gone"), r"within 3 s: gone \[wanted=41\]")],
)
def test_it_gives_up(answer: TargetRow | ConnectorError, told: str) -> None:
    clock = Slept()
    with pytest.raises(TimedOut) as raised:
        wait_for(Wanted.parse("41"), Target([answer]), clock, 3.0)
    assert raised.match("the target did not come so far")
    assert re.search(told, str(raised.value))
    assert 3.0 <= clock.seconds < 3.5


def test_a_target_that_is_misconfigured_is_not_waited_for() -> None:
    with pytest.raises(ConfigError, match="no target is called"):
        wait_for(Wanted.parse("1"), Target([ConfigError("no target is called that")]), Slept(), None)


def test_a_heartbeat_is_waited_for_until_one_is_new_enough_and_the_load_over() -> None:
    found = iter([None, 6, 6, 7])
    wanted = WantedHeartbeat("mine", 7, lambda: next(found))
    target = Target([None, replace(ROW, consistent=False), ROW, replace(ROW, seqno=41), replace(ROW, seqno=42), ROW])
    assert wait_for(wanted, target, Slept(), None).seqno == 40
    assert (target.asked, list(found)) == (6, [])
    assert WantedHeartbeat("mine", None, lambda: 0).reached(ROW)
    with pytest.raises(TimedOut, match=r"wanted=mine applied=40"):
        wait_for(WantedHeartbeat("mine", None, lambda: None), Target([ROW]), Slept(), 1.0)


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


def test_the_command(waiting: Callable[..., int], capsys: pytest.CaptureFixture[str]) -> None:
    assert waiting("--to-seqno", "40") == 0
    assert capsys.readouterr().err == "applied 40 (b:9;0)\n"
    assert waiting("--to-seqno", "41", "--timeout", "0.3") == TimedOut.exit_code
    assert "did not come so far within 0.3 s [wanted=41 applied=40]" in capsys.readouterr().err
    assert waiting("--to-gtid", "soon") == waiting("--to-gtid", "40") == 2


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("--to-heartbeat", "mine"), 0, "applied 40 (b:9;0)"),
        (("--to-heartbeat", "mine", "--from-time", "2026-11-22T06:30:00.000500Z"), 0, "applied 40 (b:9;0)"),
        (
            ("--to-heartbeat", "mine", "--from-time", "2026-11-22T07:30:00.000501+01:00"),
            TimedOut.exit_code,
            "wanted=mine",
        ),
        (("--to-heartbeat", "other"), TimedOut.exit_code, "wanted=other"),
        ((), 2, "one of --to-seqno, --to-gtid, --to-heartbeat"),
        (("--to-heartbeat", "mine", "--to-seqno", "1"), 2, "one of --to-seqno, --to-gtid, --to-heartbeat"),
        (("--to-seqno", "1", "--from-time", "2026-11-22"), 2, "--from-time needs --to-heartbeat"),
    ],
)
def test_the_command_waits_for_a_heartbeat(
    waiting: Callable[..., int], capsys: pytest.CaptureFixture[str], words: tuple[str, ...], code: int, said: str
) -> None:
    assert waiting("--set", "source.heartbeat_table=ops.BEAT", "--timeout", "0.3", *words) == code
    assert said in capsys.readouterr().err
    if "--to-heartbeat" in words and code != 2:
        assert waiting(*words) == 2
        assert "source.heartbeat_table names no table" in capsys.readouterr().err


def test_the_log_is_as_far_as_its_last_finished_event() -> None:
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
    assert Wanted.parse("40").reached(end)
    assert Wanted.parse(f"{UUID}:7").reached(end)
    assert not Wanted.parse("41").reached(end)
    with pytest.raises(TimedOut) as refused:
        wait_for(Wanted.parse("41"), lambda: end, Slept(), 1.0, end="log")
    assert refused.value.where == {"wanted": 41, "applied": None, "written": 40}


@pytest.mark.parametrize(
    "options", [("--producer", "--to-heartbeat", "x"), ("--producer", "--target", "--to-seqno", "1")]
)
def test_a_heartbeat_of_the_producer_and_two_ends_are_refused(
    waiting: Callable[..., int], options: tuple[str, ...]
) -> None:
    assert waiting(*options) == 2

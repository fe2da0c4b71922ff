"""`thl wait`: waits until the target, or the log on Kafka, has an event."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from connector.commands.grammar.bounds import TIME, timestamp
from connector.commands.grammar.command import ByValue, command, option
from connector.commands.grammar.options import configured, one_end
from connector.logs import echo

if TYPE_CHECKING:
    from connector.config.model import Config
    from connector.status.waiting import Condition, EventReached, ReachedPosition

WHAT = "What to wait for"


def gtids(_: click.Context, parameter: click.Parameter, value: str | None) -> EventReached | None:
    """A GTID or a set of them."""
    from connector.errors import Unsupported
    from connector.status.waiting import EventReached

    if value is None:
        return None
    try:
        found = EventReached.parse(value)
    except Unsupported as error:
        raise click.BadParameter(f"{value!r} is not a GTID or a GTID set", param=parameter) from error
    if found.seqno is not None:
        raise click.BadParameter(f"{value!r} is a seqno: --to-seqno", param=parameter)
    return found


def _applied(value: str) -> tuple[str, str]:
    """Tungsten's -applied, of a seqno or GTIDs."""
    value = value.strip()
    return "--to-seqno" if value.isascii() and value.isdecimal() else "--to-gtid", value


APPLIED = ByValue("--to-seqno or --to-gtid", _applied)


@command(
    earlier={
        "-applied": APPLIED,
        "--applied": APPLIED,
        "--heartbeat": "--to-heartbeat",
        "--since": "--from-time",
        "-limit": "--timeout",
    },
    examples={
        "thl wait --to-seqno 41 --timeout 60": "Wait up to a minute for event 41.",
        "thl wait --to-heartbeat deploy-7": "Wait for what `thl heartbeat deploy-7` wrote.",
        "thl wait --producer --to-gtid 3e11fa47-71ca-11e1-9e33-c80aa9429562:1-7": "Until the log has them.",
    },
)
@configured()
@option("--to-seqno", section=WHAT, type=click.IntRange(min=0), metavar="N", help="Event N.")
@option("--to-gtid", section=WHAT, callback=gtids, metavar="GTIDS", help="The transactions of a GTID or GTID set.")
@option(
    "--to-heartbeat",
    section=WHAT,
    metavar="NAME",
    help="A heartbeat with this name, in the target's copy of source.heartbeat_table.",
)
@option(
    "--from-time",
    section=WHAT,
    callback=timestamp,
    metavar="TIME",
    help=f"With --to-heartbeat: one written at TIME or later ({TIME}).",
)
@one_end(
    "Until the target has the event (the default).", "Until the producer has written it to the log.", default="target"
)
@option("--timeout", type=click.FloatRange(min=0), metavar="SECONDS", help="Exit with 12 when it takes longer.")
def wait(
    config: Config,
    *,
    end: str,
    to_seqno: int | None,
    to_gtid: EventReached | None,
    to_heartbeat: str | None,
    from_time: int | None,
    timeout: float | None,
) -> None:
    """Wait until the target, or with --producer the log on Kafka, has an event and all events before it.

    The event is named by its seqno, its GTID, or the heartbeat that `thl heartbeat NAME` wrote.
    """
    from connector.commands.grammar.unverified import warn_of_unverified
    from connector.status.waiting import EventReached

    if sum(one is not None for one in (to_seqno, to_gtid, to_heartbeat)) != 1:
        raise click.UsageError("one of --to-seqno, --to-gtid, --to-heartbeat has to be given")
    if from_time is not None and to_heartbeat is None:
        raise click.UsageError("--from-time needs --to-heartbeat")
    if to_heartbeat is not None and end == "producer":
        raise click.UsageError("--to-heartbeat is looked for in the target: not with --producer")
    warn_of_unverified(config, "kafka" if end == "producer" else "target")
    condition: Condition = to_gtid or EventReached(to_seqno)
    if to_heartbeat is not None:
        condition = _of_heartbeat(config, to_heartbeat, from_time)
    if end == "producer":
        row = _in_log(config, condition, timeout)
        echo(f"written {row.seqno} ({row.event_id})")
    else:
        row = _in_target(config, condition, timeout)
        echo(f"applied {row.seqno} ({row.event_id})")


def _in_target(config: Config, condition: Condition, timeout: float | None) -> ReachedPosition:
    from connector.clock import SystemClock
    from connector.status.waiting import wait_for
    from connector.targets.open import read_position

    url = config.target.url.get_secret_value()
    return wait_for(condition, lambda: read_position(url, config.service), SystemClock(), timeout)


def _in_log(config: Config, condition: Condition, timeout: float | None) -> ReachedPosition:
    from connector.clock import SystemClock
    from connector.kafka.log_reader import LogReader
    from connector.status.waiting import LogEnd, wait_for

    with LogReader(config) as reader:
        return wait_for(condition, lambda: LogEnd.of(reader.position()), SystemClock(), timeout, end="log")


def _of_heartbeat(config: Config, name: str, since: int | None) -> Condition:
    from connector.mysql.server.heartbeat_table import heartbeat_table
    from connector.status.heartbeat import heartbeat_time
    from connector.status.waiting import HeartbeatReached

    url, table = config.target.url.get_secret_value(), heartbeat_table(config.source)
    return HeartbeatReached(name, since, lambda: heartbeat_time(url, config.service, table, name))

"""`thl apply`: the log from Kafka into the target, until SIGTERM or SIGINT, or a place that is named."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from connector.commands.arguments import gtid, moment, position, tables
from connector.commands.options import configured

if TYPE_CHECKING:
    from connector.applier.stop_condition import Until
    from connector.config.model import Config
    from connector.log.transaction.layout import TableName
    from connector.log.transaction.position import SourcePosition, TargetPosition


@click.command()
@configured("kafka", "target")
@click.option("--until-seqno", type=click.IntRange(min=0), metavar="N", help="Event N is the last that is applied.")
@click.option(
    "--until-event", callback=position, metavar="FILE:POS", help="The event that ends there; else the one before."
)
@click.option("--until-gtid", callback=gtid, metavar="GTID", help="The event of that transaction is the last.")
@click.option(
    "--until-time",
    callback=moment,
    metavar="TIME",
    help="The last is before the first that was committed later (ISO, UTC); once TIME has passed, the log's end.",
)
@click.option(
    "--until-heartbeat", metavar="NAME", help="The next heartbeat of that name (`thl heartbeat`) is the last."
)
@click.option(
    "--from-seqno",
    type=click.IntRange(min=1),
    metavar="N",
    help="Apply again from event N on (tables with keys, whole images); a target without anything begins there.",
)
@click.option("--from-event", callback=position, metavar="FILE:POS", help="The same, from the event that ends there.")
@click.option(
    "--skip-seqno",
    "skip_seqnos",
    type=click.IntRange(min=0),
    multiple=True,
    metavar="N",
    help="Leave event N out, and note that in the target; can be repeated, and wants --because.",
)
@click.option(
    "--done-seqno",
    type=click.IntRange(min=0),
    metavar="N",
    help="Event N, which is the next one and DDL, was done on the target by hand; wants --because.",
)
@click.option(
    "--without",
    multiple=True,
    callback=tables,
    metavar="SCHEMA.TABLE",
    help="Apply nothing of this table (as the log calls it) from the next event on, and note that in the target; can "
    "be repeated, and wants --because.",
)
@click.option("--because", default="", metavar="TEXT", help="Why an event, or a table, is not applied.")
@click.option("--submitted", is_flag=True, help="Use the Spark that spark-submit has started: its master, its memory.")
def apply(
    config: Config,
    *,
    until_seqno: int | None,
    until_event: SourcePosition | None,
    until_gtid: str | None,
    until_time: int | None,
    until_heartbeat: str | None,
    from_seqno: int | None,
    from_event: SourcePosition | None,
    skip_seqnos: tuple[int, ...],
    done_seqno: int | None,
    without: tuple[TableName, ...],
    because: str,
    submitted: bool,
) -> None:
    """Apply the log from Kafka to the target, by Spark, until SIGTERM or SIGINT.

    Goes on from where the target is; a target without a position begins with the log's first event. A log that does not
    exist yet is waited for as brokers that are gone are (kafka.retries). With one of --until-… it ends there with 0:
    nothing behind it becomes visible, and a target that is beyond it is refused.
    """
    import signal
    from contextlib import suppress
    from threading import Event

    from connector import metrics
    from connector.applier.applier import Applier
    from connector.applier.excluded_tables import ExcludedTables
    from connector.applier.skips import Skips
    from connector.clock import SystemClock
    from connector.commands.who import who
    from connector.errors import TargetUnavailable
    from connector.kafka.handshake import tell_what_is_missing
    from connector.log.ids import Seqno
    from connector.spark.session import Session
    from connector.status.lag_monitor import lag_monitor
    from connector.targets.open import open_target

    until = _until(until_seqno, until_event, until_gtid, until_time, until_heartbeat)
    if from_seqno is not None and from_event is not None:
        raise click.UsageError("only one of --from-seqno, --from-event can be given")
    if bool(skip_seqnos or without or done_seqno is not None) != bool(because.strip()):
        raise click.UsageError("--skip-seqno, --done-seqno or --without, and --because go together")
    done = None if done_seqno is None else Seqno(done_seqno)
    skips = Skips([Seqno(one) for one in skip_seqnos], who(), because, done=done)
    excluded = ExcludedTables(without, who(), because) if without else None
    first = from_event if from_seqno is None else Seqno(from_seqno)
    metrics.serve(config.metrics.port)
    clock = SystemClock()
    with suppress(TargetUnavailable):  # which the applier tries again
        open_target(config.target, clock).close()  # before Spark, which takes seconds to start
    tell_what_is_missing(config)
    stop = Event()
    with Session(config.apply, f"thl-apply-{config.service}", own=not submitted) as session:
        # Only now: Spark puts a handler of its own in place, which would break a batch in the middle.
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: stop.set())
        with lag_monitor(config, clock):
            applier = Applier(config, session, clock, stop, until=until, first=first, skips=skips, without=excluded)
            position = applier.run()
    if position is None:
        click.echo(f"stopped before the target was claimed; service {config.service}", err=True)
    else:
        click.echo(_told(position), err=True)
    if applier.request is not None:
        click.echo(
            f"offline, as {applier.request.asked_by} asked: {applier.request.because or 'no reason given'}", err=True
        )


def _told(position: TargetPosition) -> str:
    """Where it is."""
    return (
        f"stopped after event {position.seqno} of service {position.service}: {position.event_id or 'nothing yet'}"
        + (f", GTIDs {position.gtid_set}" if position.gtid_set else "")
        + ("" if position.consistent else f"; {_missing(position)}")
    )


def _missing(position: TargetPosition) -> str:
    """Why it is not consistent."""
    if position.head > position.seqno:
        return f"it is consistent again after event {position.head}"
    return "the initial load is not complete"


def _until(
    seqno: int | None, event: SourcePosition | None, gtid: str | None, time: int | None, heartbeat: str | None
) -> Until | None:
    """The one that was given."""
    from connector.applier.stop_condition import ToEvent, ToGtid, ToHeartbeat, ToSeqno, ToTime
    from connector.log.ids import Seqno

    given: list[Until] = []
    if seqno is not None:
        given.append(ToSeqno(Seqno(seqno)))
    if event is not None:
        given.append(ToEvent(event.file, event.offset))
    if gtid is not None:
        given.append(ToGtid(gtid))
    if time is not None:
        given.append(ToTime(time))
    if heartbeat is not None:
        given.append(ToHeartbeat(heartbeat))
    if len(given) > 1:
        raise click.UsageError("only one of the options --until-… can be given")
    return given[0] if given else None

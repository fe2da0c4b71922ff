"""`thl apply`: applies the log from Kafka to the target, until SIGTERM, SIGINT or a bound."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from connector.commands.grammar.bounds import BEGIN, END, TIME, gtid, position, tables, timestamp
from connector.commands.grammar.command import command, option
from connector.commands.grammar.ending import echo_request, stop_at_signals
from connector.commands.grammar.options import configured, reason_option, relay_folder, relay_option, who
from connector.logs import echo

if TYPE_CHECKING:
    from connector.applier.skips import ExcludedTables, Skips
    from connector.applier.stop_condition import StopCondition
    from connector.config.model import Config
    from connector.log.transaction.layout import TableName
    from connector.log.transaction.position import SourcePosition, TargetPosition

EXCEPTIONS = "What is not applied"


@command(
    earlier={
        "--until-seqno": "--to-seqno",
        "--until-event": "--to-event",
        "--until-gtid": "--to-gtid",
        "--until-time": "--to-time",
        "--until-heartbeat": "--to-heartbeat",
        "--without": "--exclude-table",
        "--because": "--reason",
        "--from-relay": "--relay",
    },
    examples={
        "thl apply": "Apply until SIGTERM, SIGINT or `thl offline`.",
        "thl apply --to-time 2026-11-21T06:00:00Z": "Apply what was committed up to then, and end.",
        "thl apply --skip-seqno 41 --reason 'bad row, see ticket 7'": "Leave event 41 out, and continue.",
        "thl apply --exclude-table shop.audit --reason 'not needed'": "Continue without a table.",
    },
)
@configured("kafka", "target")
@option("--to-seqno", section=END, type=click.IntRange(min=0), metavar="N", help="Event N is the last one applied.")
@option(
    "--to-event",
    section=END,
    callback=position,
    metavar="FILE:POS",
    help="The event that ends at this binary log position is the last; if none does, the one before it.",
)
@option("--to-gtid", section=END, callback=gtid, metavar="GTID", help="The event of this transaction is the last.")
@option(
    "--to-time",
    section=END,
    callback=timestamp,
    metavar="TIME",
    help=f"End before the first event that was committed after TIME ({TIME}); once TIME has passed, at the log's end.",
)
@option(
    "--to-heartbeat",
    section=END,
    metavar="NAME",
    help="The next heartbeat with this name (written by `thl heartbeat NAME`) is the last event.",
)
@option(
    "--from-seqno",
    section=BEGIN,
    type=click.IntRange(min=1),
    metavar="N",
    help="Apply again from event N on (needs primary keys and full row images); an empty target begins with N.",
)
@option(
    "--from-event",
    section=BEGIN,
    callback=position,
    metavar="FILE:POS",
    help="The same, from the event that ends at this binary log position.",
)
@relay_option("Apply from a relay to its end, without Kafka and Spark.", BEGIN)
@option(
    "--skip-seqno",
    "skip_seqnos",
    section=EXCEPTIONS,
    type=click.IntRange(min=0),
    multiple=True,
    metavar="N",
    help="Do not apply event N, and record that in the target. Repeatable; needs --reason.",
)
@option(
    "--done-seqno",
    section=EXCEPTIONS,
    type=click.IntRange(min=0),
    metavar="N",
    help="Event N, the next one, is a DDL that was done on the target by hand: continue after it. Needs --reason.",
)
@option(
    "--exclude-table",
    "excluded_tables",
    section=EXCEPTIONS,
    multiple=True,
    callback=tables,
    metavar="SCHEMA.TABLE",
    help="From the next event on apply nothing to this table (its name in the log), and record that in the target. "
    "Repeatable; needs --reason.",
)
@reason_option("Why an event or a table is not applied; recorded in the target.", EXCEPTIONS)
@option("--submitted", is_flag=True, help="Use the Spark session of spark-submit, with its master and memory.")
def apply(
    config: Config,
    *,
    to_seqno: int | None,
    to_event: SourcePosition | None,
    to_gtid: str | None,
    to_time: int | None,
    to_heartbeat: str | None,
    from_seqno: int | None,
    from_event: SourcePosition | None,
    relay: Path | None,
    skip_seqnos: tuple[int, ...],
    done_seqno: int | None,
    excluded_tables: tuple[TableName, ...],
    reason: str,
    submitted: bool,
) -> None:
    """Apply the log from Kafka to the target with Spark, until SIGTERM or SIGINT.

    Continues from the target's position; a target without one begins with the log's first event. A log that does not
    exist yet, and brokers that do not answer, are waited for (kafka.retries). With one of --to-… the applier ends there
    with exit code 0: no later change becomes visible on the target, and a target beyond it is refused.
    """
    import gc
    from contextlib import suppress
    from threading import Event

    from connector import metrics
    from connector.applier.applier import Applier
    from connector.applier.from_relay import RelayApplier, finish_intent_from_relay
    from connector.clock import SystemClock
    from connector.errors import TargetUnavailable
    from connector.fetching.class_archive import find_options
    from connector.health import ProcessHealth
    from connector.kafka.handshake import warn_of_missing_log
    from connector.log.ids import Seqno
    from connector.spark.jvm_memory import jvm_memory
    from connector.spark.session import SparkRun
    from connector.status.lag_monitor import lag_monitor
    from connector.targets.open import open_target

    until = _bound(to_seqno, to_event, to_gtid, to_time, to_heartbeat)
    if from_seqno is not None and from_event is not None:
        raise click.UsageError("only one of --from-seqno, --from-event can be given")
    first = from_event if from_seqno is None else Seqno(from_seqno)
    skips, excluded = _exceptions(skip_seqnos, done_seqno, excluded_tables, reason)
    if relay is not None and (first is not None or skips or excluded or submitted):
        raise click.UsageError("--relay goes with the options --to-… alone")
    clock = SystemClock()
    health = ProcessHealth(clock)
    metrics.serve(config.metrics, health)
    if relay is not None:
        health.enter("applying from a relay", ready=True)
        position = RelayApplier(config, relay_folder(config, relay), clock, stop_at_signals(), until=until).run()
        echo(_ended(config, position))
        return
    with suppress(TargetUnavailable):  # which the applier tries again
        open_target(config.target, clock).close()  # before Spark, which takes seconds to start
    if (finished := finish_intent_from_relay(config, clock, stop_at_signals)) is not None:
        echo(_finished(config, finished.position, finished.reason))
        return
    warn_of_missing_log(config)
    stop = Event()
    jars = () if submitted else _java_and_jars(config)
    name = f"thl-apply-{config.service}"
    with SparkRun(config.apply, name, jars=jars, own=not submitted, jvm_options=find_options) as session:
        # Only now: a signal ends a start at once, but applying between two batches.
        stop_at_signals(stop)
        # As in `thl produce`: of a segment's many small objects none is in a cycle.
        gc.freeze()
        gc.set_threshold(100_000)
        with lag_monitor(config, clock), jvm_memory(config, session):
            applier = Applier(
                config,
                session,
                clock,
                stop,
                until=until,
                first=first,
                skips=skips,
                excluded=excluded,
                health=health,
            )
            position = applier.run()
    echo(_ended(config, position))
    if applier.request is not None:
        echo_request(applier.request.asked_by, applier.request.reason)


def _exceptions(
    skip_seqnos: tuple[int, ...], done_seqno: int | None, excluded_tables: tuple[TableName, ...], reason: str
) -> tuple[Skips, ExcludedTables | None]:
    """The events that are not applied, and the tables that are excluded, each with its reason."""
    from connector.applier.skips import ExcludedTables, Skips
    from connector.log.ids import Seqno

    if bool(skip_seqnos or excluded_tables or done_seqno is not None) != bool(reason.strip()):
        raise click.UsageError("--skip-seqno, --done-seqno or --exclude-table, and --reason go together")
    done = None if done_seqno is None else Seqno(done_seqno)
    skips = Skips([Seqno(one) for one in skip_seqnos], who(), reason, done=done)
    return skips, ExcludedTables(excluded_tables, who(), reason) if excluded_tables else None


def _java_and_jars(config: Config) -> tuple[Path, ...]:
    """Find Java and the jars by which Spark reads Kafka; fetch into the cache what is missing.

    Returns:
        the jars; none if the configuration names some, or they cannot be fetched: Spark then resolves them itself, from
        the caches and repositories that it knows.

    Raises:
        SandboxError: this machine has no Java 17, and none can be fetched.
    """
    import os

    from connector.errors import SandboxError
    from connector.fetching.jars import spark_kafka_jars
    from connector.fetching.java import java_home

    os.environ["JAVA_HOME"] = str(java_home())
    if any(name.startswith("spark.jars") for name in config.apply.spark):
        return ()
    try:
        return tuple(spark_kafka_jars())
    except SandboxError as error:
        echo(f"Spark resolves its Kafka connector itself: {error.message}")
        return ()


def _ended(config: Config, position: TargetPosition | None) -> str:
    """The line that the applier leaves on standard error."""
    if position is None:
        return f"stopped before the target was claimed; service {config.service}"
    return _stopped(position) + _loading(config)


def _loading(config: Config) -> str:
    """The tables that are being loaded, for the line that the applier leaves."""
    from connector.targets.open import open_signal_table

    with open_signal_table(config.target) as signals:
        names = [str(name) for name in signals.loading(config.service)]
    return f"; not consistent while {', '.join(names)} {'is' if len(names) == 1 else 'are'} loaded" if names else ""


def _finished(config: Config, position: TargetPosition, reason: str) -> str:
    """The line after a commit was finished from the relay."""
    from connector.applier.from_relay import causes_left
    from connector.log.transaction.position import CAUSES

    if position.intent is not None:
        return _stopped(position)
    place = f"event {position.seqno} of service {config.service}"
    causes = "; ".join(f"{cause}: {CAUSES[cause]}" for cause in causes_left(config, position))
    consistent = "the target is consistent at" if position.consistent else "the commit is complete up to"
    line = f"{reason}; finished a commit from the relay: {consistent} {place}"
    return f"{line} ({causes})" if causes else line


def _stopped(position: TargetPosition) -> str:
    """The end of a run in words."""
    from connector.log.ids import NO_SEQNO

    if position.intent is not None:
        return (
            f"stopped within the commit of events {position.intent.span} of service {position.service}: the target is "
            "not consistent; thl apply finishes the commit"
        )
    if position.seqno == NO_SEQNO:
        return f"stopped before the first event of service {position.service}"
    ids = ", ".join(filter(None, (position.event_id, position.gtid_set and f"GTIDs {position.gtid_set}")))
    return (
        f"stopped after event {position.seqno} of service {position.service}"
        + (f": {ids}" if ids else "")
        + ("" if position.consistent else f"; {_inconsistency(position)}")
    )


def _inconsistency(position: TargetPosition) -> str:
    """The reason why a position without an intent is not consistent; a load of single tables is none (`_loading`)."""
    if position.rewound_from > position.seqno:
        return f"the target is consistent again after event {position.rewound_from}"
    return "the initial load is not complete"


def _bound(
    seqno: int | None, event: SourcePosition | None, gtid: str | None, time: int | None, heartbeat: str | None
) -> StopCondition | None:
    """The option of --to-… that was given."""
    from connector.applier.stop_condition import ToEvent, ToGtid, ToHeartbeat, ToSeqno, ToTime
    from connector.log.ids import Seqno

    given: list[StopCondition] = []
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
        raise click.UsageError("only one of the options --to-… can be given")
    return given[0] if given else None

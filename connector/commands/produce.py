"""`thl produce`: reads MySQL's binary log into Kafka, until SIGTERM or SIGINT."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from connector.commands.grammar.bounds import BEGIN
from connector.commands.grammar.command import command, option
from connector.commands.grammar.ending import echo_request, stop_at_signals
from connector.commands.grammar.options import configured
from connector.commands.grammar.unverified import warn_of_unverified
from connector.logs import echo

if TYPE_CHECKING:
    from connector.clock import Clock
    from connector.config.model import Config
    from connector.log.transaction.position import PositionRecord
    from connector.producer.sources.source import EventSource

ACCEPT = "What is accepted"


@command(
    examples={
        "thl produce": "Continue the log; a new one begins with an initial load.",
        "thl produce --start now": "Begin a new log without an initial load.",
        "thl produce --dry-run": "Show what an initial load would read, and about how long that takes.",
        "thl produce --from-files /var/lib/thl/binlog": "Read archived files, without the server.",
    }
)
@configured()
@option(
    "--start",
    section=BEGIN,
    metavar="POSITION",
    help="Where a new log begins, in place of source.start: snapshot, now, earliest, a GTID set or FILE:POS. A log "
    "that exists goes on from its position: a line says so, and a start after its position is refused.",
)
@option(
    "--from-files",
    section=BEGIN,
    multiple=True,
    metavar="FOLDER|FILE",
    help="Read a folder of binary log files, or files in this order, to their end, in place of the server. Repeatable.",
)
@option("--from", "given", multiple=True, hidden=True, metavar="POSITION|FOLDER|FILE")
@option(
    "--dry-run",
    section=BEGIN,
    is_flag=True,
    help="Show the tables that an initial load would read, with the server's estimates of rows and bytes, and the time "
    "by a sample of the largest. Nothing is written, and Kafka is not asked.",
)
@option(
    "--accept-trapped",
    section=ACCEPT,
    is_flag=True,
    help="Continue although the source lacks transactions that the log has (`thl trapped` lists them). The log forks: "
    "targets that have applied them are refused. End the appliers first.",
)
@option(
    "--accept-partial",
    section=ACCEPT,
    multiple=True,
    metavar="PATTERN",
    help="Begin to capture these tables (schema.table, with * and ?) although the log lacks rows that filters left out "
    "before. Targets never get these rows, and a change of one of them ends an applier. Repeatable.",
)
def produce(
    config: Config,
    *,
    start: str | None,
    from_files: tuple[str, ...],
    given: tuple[str, ...],
    dry_run: bool,
    accept_trapped: bool,
    accept_partial: tuple[str, ...],
) -> None:
    """Read MySQL's binary log into Kafka, until SIGTERM or SIGINT.

    A new log begins at source.start: with an initial load by default. A log that exists is continued where it ends.
    """
    import gc
    from contextlib import nullcontext

    from connector import metrics
    from connector.clock import SystemClock
    from connector.health import ProcessHealth
    from connector.producer.heartbeats import heartbeats
    from connector.producer.producer import Producer
    from connector.producer.replicas import Replicas
    from connector.producer.semi_sync_monitor import watched_semi_sync

    clock = SystemClock()
    start, from_files = _beginning(start, from_files, given)
    if start is not None:
        config = config.model_copy(update={"source": config.source.model_copy(update={"start": start})})
    if dry_run:
        if from_files:
            raise click.UsageError("--dry-run is about an initial load, and files have none")
        _show_load(config, clock)
        return
    if config.source.records.dir is not None:
        from connector.records.database import reserved

        click.get_current_context().with_resource(reserved(config.source.records.dir))
    source = _files(config, from_files, clock, accept_trapped=accept_trapped) if from_files else _server(config, clock)
    warn_of_unverified(config, "kafka", "registry")
    stop = stop_at_signals()
    health = ProcessHealth(clock)
    metrics.serve(config.metrics, health)
    # The passing objects have no cycles but are many: a collection at every 700th allocation would cost a
    # fifth of the time.
    gc.freeze()
    gc.set_threshold(100_000)
    gate = Replicas(config, stop, clock) if config.publish.wait_for else None
    producer = Producer(
        config,
        source,
        clock,
        stop,
        accept_trapped=accept_trapped,
        accept_partial=accept_partial,
        start=start,
        gate=gate,
        health=health,
    )
    try:
        with nullcontext() if from_files else heartbeats(config, lambda: producer.publishes), watched_semi_sync(config):
            position = producer.run()
    finally:
        if gate is not None:
            gate.close()
    if producer.request is not None:
        echo_request(producer.request.asked_by, producer.request.reason)
    echo(_stopped(config, position))


def _show_load(config: Config, clock: Clock) -> None:
    """Print what an initial load would read; exit with the code of an error that would stop a table's load."""
    from connector.errors import escaped
    from connector.producer.sources.mysql import MySqlSource

    warn_of_unverified(config, "source")
    found, kept = MySqlSource(config, clock).estimate()
    click.echo("\n".join(map(escaped, found.lines())))
    until = f"for {kept / 86400:.1f} days" if kept else "until it is purged by hand"
    click.echo(f"The source keeps its binary log {until}; its transactions are published during the load")
    click.get_current_context().exit(found.exit_code)


def _server(config: Config, clock: Clock) -> EventSource:
    from connector.producer.sources.mysql import MySqlSource

    warn_of_unverified(config, "source", "replicas")
    return MySqlSource(config, clock)


def _files(config: Config, files: tuple[str, ...], clock: Clock, *, accept_trapped: bool) -> EventSource:
    """The source that reads files.

    Raises:
        ConfigError: an option or a field has no meaning without the server.
    """
    from pathlib import Path

    from connector.errors import ConfigError
    from connector.producer.sources.files import FileSource

    if accept_trapped:
        raise ConfigError("--accept-trapped needs the server: files do not show what the server lacks")
    if config.publish.wait_for:
        raise ConfigError(
            "publish.wait_for needs the server's replicas: it has no meaning with --from-files",
            hint="--set publish.wait_for=[]",
        )
    if config.source.semi_sync:
        raise ConfigError(
            "source.semi_sync needs the server, which waits for acknowledgements: it has no meaning with --from-files",
            hint="--set source.semi_sync=false",
        )
    return FileSource(config, [Path(file) for file in files], clock)


def _stopped(config: Config, position: PositionRecord | None) -> str:
    """The line that the producer leaves on standard error."""
    from connector.log.ids import NO_SEQNO

    if position is None:
        return f"stopped before going online; service {config.service}"
    last = position.last_finished
    after = "before the first event" if last == NO_SEQNO else f"after event {last}"
    where = f"file and position {position.resume}" + (f", GTIDs {position.gtid_set}" if position.gtid_set else "")
    unfinished = f"; event {position.open.seqno} is unfinished and will be given up" if position.open else ""
    unfinished += "; the initial load is unfinished and will be repeated" if position.snapshot else ""
    return f"stopped {after} of service {config.service}: {where}{unfinished}"


def _beginning(start: str | None, files: tuple[str, ...], given: tuple[str, ...]) -> tuple[str | None, tuple[str, ...]]:
    """Return the position at which a new log begins, or the files to read; `given` are the values of `--from`."""
    from pathlib import Path

    if given:
        click.echo("thl: --from is now --start (a position) and --from-files (folders and files)", err=True)
        if files:
            raise click.UsageError("--from-files and --from are the same option: give one of them")
        if len(given) > 1 or Path(given[0]).exists():
            files = given
        elif start is None:
            start = given[0]
        else:
            raise click.UsageError("--start and --from are the same option: give one of them")
    if start is not None and files:
        raise click.UsageError("--start and --from-files exclude each other")
    return start, files

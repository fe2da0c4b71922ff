"""`thl produce`: reads MySQL's binary log into Kafka, until SIGTERM or SIGINT."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from connector.commands.bounds import BEGIN
from connector.commands.command import command, option
from connector.commands.options import configured

if TYPE_CHECKING:
    from connector.config.model import Config

ACCEPT = "What is accepted"


@command(
    examples={
        "thl produce": "Continue the log; a new one begins with an initial load.",
        "thl produce --start now": "Begin a new log without an initial load.",
        "thl produce --from-files /var/lib/thl/binlog": "Read archived files, without the server.",
    }
)
@configured()
@option(
    "--start",
    section=BEGIN,
    metavar="POSITION",
    help="Where a new log begins, in place of source.start: snapshot, now, earliest, a GTID set or FILE:POS.",
)
@option(
    "--from-files",
    section=BEGIN,
    multiple=True,
    metavar="FOLDER|FILE",
    help="Read a folder of binary log files, or files in this order, to their end, in place of the server. Repeatable.",
)
@option("--from", "places", multiple=True, hidden=True, metavar="POSITION|FOLDER|FILE")
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
    places: tuple[str, ...],
    accept_trapped: bool,
    accept_partial: tuple[str, ...],
) -> None:
    """Read MySQL's binary log into Kafka, until SIGTERM or SIGINT.

    A new log begins at source.start: with an initial load by default. A log that exists is continued where it ends.
    """
    import gc
    import signal
    from contextlib import nullcontext
    from pathlib import Path
    from threading import Event

    from connector import metrics
    from connector.clock import SystemClock
    from connector.commands.unverified import warn_of_unverified
    from connector.errors import ConfigError
    from connector.producer.heartbeats import heartbeats
    from connector.producer.producer import Producer
    from connector.producer.replicas import Replicas
    from connector.producer.sources.files import FileSource
    from connector.producer.sources.mysql import MySqlSource
    from connector.producer.sources.source import Source

    clock = SystemClock()
    source: Source
    start, from_files = _beginning(start, from_files, places)
    if from_files:
        if accept_trapped:
            raise ConfigError("--accept-trapped needs the server: --from-files cannot tell what the server lacks")
        if config.publish.wait_for:
            raise ConfigError(
                "publish.wait_for needs the server's replicas: it has no meaning with --from-files",
                hint="--set publish.wait_for=[]",
            )
        source = FileSource(config, [Path(file) for file in from_files], clock)
    else:
        if start is not None:
            config = config.model_copy(update={"source": config.source.model_copy(update={"start": start})})
        source = MySqlSource(config, clock)
        warn_of_unverified(config, "source", "replicas")
    warn_of_unverified(config, "kafka", "registry")
    stop = Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    metrics.serve(config.metrics)
    # What passes through has no cycles, but is many objects: looking for cycles among them at every 700th costs a
    # fifth of the time.
    gc.freeze()
    gc.set_threshold(100_000)
    gate = Replicas(config, stop, clock) if config.publish.wait_for else None
    producer = Producer(
        config, source, clock, stop, accept_trapped=accept_trapped, accept_partial=accept_partial, gate=gate
    )
    try:
        with heartbeats(config) if isinstance(source, MySqlSource) else nullcontext():
            position = producer.run()
    finally:
        if gate is not None:
            gate.close()
    if producer.request is not None:
        said = producer.request.because or "no reason given"
        click.echo(f"offline, as {producer.request.asked_by} asked: {said}", err=True)
    if position is None:
        click.echo(f"stopped before going online; service {config.service}", err=True)
        return
    where = f"file and position {position.resume}" + (f", GTIDs {position.gtid_set}" if position.gtid_set else "")
    unfinished = f"; event {position.open.seqno} is unfinished and will be given up" if position.open else ""
    unfinished += "; the initial load is unfinished and will be repeated" if position.snapshot else ""
    click.echo(
        f"stopped after event {position.last_finished} of service {config.service}: {where}{unfinished}", err=True
    )


def _beginning(
    start: str | None, files: tuple[str, ...], places: tuple[str, ...]
) -> tuple[str | None, tuple[str, ...]]:
    """The position at which a new log begins, or the files to read; `places` are of `--from`, once both options."""
    from pathlib import Path

    if places:
        click.echo("thl: --from is now --start (a position) and --from-files (folders and files)", err=True)
        if files:
            raise click.UsageError("--from-files and --from are the same option: give one of them")
        if len(places) > 1 or Path(places[0]).exists():
            files = places
        elif start is None:
            start = places[0]
        else:
            raise click.UsageError("--start and --from are the same option: give one of them")
    if start is not None and files:
        raise click.UsageError("--start and --from-files exclude each other")
    return start, files

"""`thl produce`: MySQL's binary log into Kafka, until SIGTERM or SIGINT."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from connector.commands.options import configured

if TYPE_CHECKING:
    from connector.config.model import Config


@click.command()
@configured()
@click.option(
    "--from",
    "places",
    multiple=True,
    metavar="PLACE|FOLDER|FILE",
    help="Over source.start: where a new log begins. Or a folder with binary log files, or files (repeat it for each): "
    "these are read instead of the server, to their end.",
)
@click.option(
    "--accept-trapped",
    is_flag=True,
    help="Go on although the source lacks transactions that the log has (`thl trapped` lists them): the log forks, and "
    "targets that have applied them are refused. End the appliers before.",
)
@click.option(
    "--accept-partial",
    multiple=True,
    metavar="PATTERN",
    help="Begin to capture these tables (schema.table, with * and ?) although they hold rows that the log does not "
    "have, because filters left them out before: targets never get these, and a change of one of them ends an applier.",
)
def produce(config: Config, places: tuple[str, ...], *, accept_trapped: bool, accept_partial: tuple[str, ...]) -> None:
    """Read MySQL's binary log into Kafka, until SIGTERM or SIGINT.

    A new log begins at source.start: snapshot (the default), now, earliest, a GTID set or file:position. A log that
    exists goes on where it ends.
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
    if any(Path(place).exists() for place in places) or len(places) > 1:
        if accept_trapped:
            raise ConfigError("--accept-trapped is about a server: what is not in some files is not lost")
        if config.publish.wait_for:
            raise ConfigError(
                "publish.wait_for is about a server's replicas: what files hold is not waited for",
                hint="--set publish.wait_for=[]",
            )
        source = FileSource(config, [Path(place) for place in places], clock)
    else:
        if places:
            config = config.model_copy(update={"source": config.source.model_copy(update={"start": places[0]})})
        source = MySqlSource(config, clock)
        warn_of_unverified(config, "source", "replicas")
    warn_of_unverified(config, "kafka", "registry")
    stop = Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    metrics.serve(config.metrics.port)
    # What passes through has no cycles, but is many objects: looking for cycles among them at every 700th costs a
    # fifth of the time.
    gc.freeze()
    gc.set_threshold(100_000)
    hold = Replicas(config, stop, clock) if config.publish.wait_for else None
    producer = Producer(
        config, source, clock, stop, accept_trapped=accept_trapped, accept_partial=accept_partial, hold=hold
    )
    try:
        with heartbeats(config) if isinstance(source, MySqlSource) else nullcontext():
            position = producer.run()
    finally:
        if hold is not None:
            hold.close()
    if producer.request is not None:
        said = producer.request.because or "no reason given"
        click.echo(f"offline, as {producer.request.asked_by} asked: {said}", err=True)
    if position is None:
        click.echo(f"stopped before going online; service {config.service}", err=True)
        return
    where = f"file and position {position.resume}" + (f", GTIDs {position.gtid_set}" if position.gtid_set else "")
    unfinished = f"; event {position.open.seqno} is unfinished and will be given up" if position.open else ""
    unfinished += "; the initial load is unfinished and will begin anew" if position.snapshot else ""
    click.echo(
        f"stopped after event {position.last_finished} of service {config.service}: {where}{unfinished}", err=True
    )

"""`thl apply`: the log from Kafka into the target, until SIGTERM or SIGINT."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from connector.commands.options import configured

if TYPE_CHECKING:
    from connector.config import Config


@click.command()
@configured
@click.option("--until-seqno", type=click.IntRange(min=0), metavar="N", help="End once event N is on the target.")
@click.option("--submitted", is_flag=True, help="Use the Spark that spark-submit has started: its master, its memory.")
def apply(config: Config, until_seqno: int | None, submitted: bool) -> None:
    """Apply the log from Kafka to the target, by Spark, until SIGTERM or SIGINT.

    Goes on from where the target is; a target without a position begins with the log's first event.
    """
    import signal
    from threading import Event

    from prometheus_client import start_http_server

    from connector.clock import SystemClock
    from connector.pipeline.apply import Applier
    from connector.reassemble.spark import Session
    from connector.status.lookout import lookout
    from connector.thl.words import Seqno

    if config.metrics.port:
        start_http_server(config.metrics.port, addr="127.0.0.1")
    clock = SystemClock()
    stop = Event()
    until = None if until_seqno is None else Seqno(until_seqno)
    with Session(config.apply, f"thl-apply-{config.service}", own=not submitted) as session:
        # Only now: Spark puts a handler of its own in place, which would break a batch in the middle.
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: stop.set())
        with lookout(config, clock):
            position = Applier(config, session, clock, stop, until=until).run()
    if position is None:
        click.echo(f"stopped before the target was claimed; service {config.service}", err=True)
        return
    click.echo(
        f"stopped after event {position.seqno} of service {config.service}: {position.event_id or 'nothing yet'}"
        + (f", GTIDs {position.gtid_set}" if position.gtid_set else "")
        + ("" if position.consistent else "; the initial load is not complete"),
        err=True,
    )

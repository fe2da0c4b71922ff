"""`thl offline`: ask a service's applier, or its producer, to end, from anywhere that reaches the target, or Kafka."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from connector.commands.options import configured

if TYPE_CHECKING:
    from connector.config.model import Config

LOOK_SECONDS = 0.2


@click.command()
@configured()
@click.option("--producer", is_flag=True, help="The producer, not the applier.")
@click.option("--because", default="", metavar="TEXT", help="Why; who ends, and `thl status`, say it.")
@click.option("--wait", default=60.0, show_default=True, metavar="SECONDS", help="For it to be offline.")
def offline(config: Config, producer: bool, because: str, wait: float) -> None:
    """Ask the applier to go offline: between two events, its last commit done, with exit code 0.

    The request stands in the target, where the applier looks each second, until the next `thl apply` begins. With
    --producer it stands in the log's control topic, and the producer that runs ends as on SIGTERM: at an event's end.
    """
    from connector.commands.unverified import warn_of_unverified

    warn_of_unverified(config, "kafka" if producer else "target")
    if producer:
        _producer(config, because, wait)
    else:
        _applier(config, because, wait)


def _applier(config: Config, because: str, wait: float) -> None:
    from connector.clock import SystemClock
    from connector.commands.who import who
    from connector.errors import TargetUnavailable
    from connector.targets.open import open_signal_table
    from connector.targets.signal_table import Request

    clock = SystemClock()
    with open_signal_table(config.target) as desk:
        desk.ask_offline(config.service, Request(clock.now(), who(), because))
        deadline = clock.monotonic() + wait
        while True:
            found = desk.request(config.service)
            if found is None:
                raise TargetUnavailable("another applier has begun meanwhile", service=config.service)
            if found.offline_at is not None:
                click.echo(f"service {config.service} is offline after event {found.seqno}")
                return
            if clock.monotonic() >= deadline:
                raise TargetUnavailable(
                    f"no applier has gone offline within {wait:g} s",
                    hint="perhaps none is running; the request stands until one does, or the next `thl apply` begins",
                    service=config.service,
                )
            clock.sleep(LOOK_SECONDS)


def _producer(config: Config, because: str, wait: float) -> None:
    from queue import Empty, SimpleQueue

    from connector.clock import SystemClock
    from connector.commands.who import who
    from connector.errors import PreflightError, TimedOut
    from connector.kafka.log_reader import LogReader
    from connector.kafka.requests import listening, tell
    from connector.log.writing.control import OfflineRequest

    clock = SystemClock()
    with LogReader(config, settled=True) as reader:
        epochs = reader.control().epochs
    if not epochs:
        raise PreflightError("the log never had a producer", service=config.service)
    request = OfflineRequest(epoch=epochs[-1].epoch, asked_at=clock.now(), asked_by=who(), because=because)
    heard: SimpleQueue[OfflineRequest] = SimpleQueue()
    deadline = clock.monotonic() + wait
    with listening(config, tell(config, request), heard.put):
        while True:
            try:
                found = heard.get(timeout=max(deadline - clock.monotonic(), 0))
            except Empty:
                raise TimedOut(
                    f"the producer of epoch {request.epoch} has not gone offline within {wait:g} s",
                    hint="perhaps none is running; one that begins later is not meant",
                    service=config.service,
                ) from None
            if found.epoch == request.epoch and found.offline_at is not None:
                after = "before any event" if found.seqno in (None, -1) else f"after event {found.seqno}"
                click.echo(f"the producer of service {config.service} is offline {after}")
                return

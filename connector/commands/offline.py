"""`thl offline`: asks a service's applier to end, through the target; or its producer, through Kafka."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from connector.commands.grammar.command import OPTIONS, command, option
from connector.commands.grammar.options import configured, one_end, reason_option, who

if TYPE_CHECKING:
    from connector.config.model import Config

POLL_SECONDS = 0.2


@command(
    earlier={"--because": "--reason", "--wait": "--timeout"},
    examples={
        "thl offline --reason 'upgrade of the target'": "End the applier.",
        "thl offline --producer --timeout 300": "End the producer; wait up to five minutes for it.",
    },
)
@configured()
@one_end("The applier of the target (the default).", "The producer.", default="target")
@reason_option("Why; shown by the process that ends and by `thl status`.", OPTIONS)
@option(
    "--timeout",
    type=float,
    default=60.0,
    show_default=True,
    metavar="SECONDS",
    help="How long to wait until it is offline. The request remains valid after that.",
)
def offline(config: Config, end: str, reason: str, timeout: float) -> None:
    """Ask the applier or the producer to go offline; it ends between two events, with exit code 0.

    The request to the applier is a row in the target, which the applier reads every second; it is valid until the next
    `thl apply` begins. The request to the producer is a record in the log's control topic, for the producer that is
    online now.
    """
    from connector.commands.grammar.unverified import warn_of_unverified

    warn_of_unverified(config, "kafka" if end == "producer" else "target")
    if end == "producer":
        _producer(config, reason, timeout)
    else:
        _applier(config, reason, timeout)


def _applier(config: Config, reason: str, timeout: float) -> None:
    from connector.clock import SystemClock
    from connector.errors import TargetUnavailable
    from connector.targets.open import open_signal_table
    from connector.targets.signal_table import Request

    clock = SystemClock()
    with open_signal_table(config.target) as signals:
        signals.ask_offline(config.service, Request(clock.now(), who(), reason))
        deadline = clock.monotonic() + timeout
        while True:
            found = signals.request(config.service)
            if found is None:
                raise TargetUnavailable("another applier has started meanwhile", service=config.service)
            if found.offline_at is not None:
                click.echo(f"service {config.service} is offline after event {found.seqno}")
                return
            if clock.monotonic() >= deadline:
                raise TargetUnavailable(
                    f"no applier has gone offline within {timeout:g} s",
                    hint="perhaps none runs; the request is valid until the next `thl apply`; --timeout waits longer",
                    service=config.service,
                )
            clock.sleep(POLL_SECONDS)


def _producer(config: Config, reason: str, timeout: float) -> None:
    from queue import Empty, SimpleQueue

    from connector.clock import SystemClock
    from connector.errors import PreflightError, TimedOut
    from connector.kafka.log_reader import LogReader
    from connector.kafka.records import Request
    from connector.kafka.requests import listening, send_request
    from connector.log.epochs.control import OfflineRequest

    clock = SystemClock()
    with LogReader(config, high_watermark=True) as reader:
        epochs = reader.control().epochs
    if not epochs:
        raise PreflightError("the log never had a producer", service=config.service)
    request = OfflineRequest(epoch=epochs[-1].epoch, asked_at=clock.now(), asked_by=who(), reason=reason)
    received: SimpleQueue[Request] = SimpleQueue()
    deadline = clock.monotonic() + timeout
    with listening(config, send_request(config, request), received.put):
        while True:
            try:
                found = received.get(timeout=max(deadline - clock.monotonic(), 0))
            except Empty:
                raise TimedOut(
                    f"the producer of epoch {request.epoch} has not gone offline within {timeout:g} s",
                    hint="perhaps none runs; one that starts later ignores the request; --timeout waits longer",
                    service=config.service,
                ) from None
            if isinstance(found, OfflineRequest) and found.epoch == request.epoch and found.offline_at is not None:
                after = "before any event" if found.seqno in (None, -1) else f"after event {found.seqno}"
                click.echo(f"the producer of service {config.service} is offline {after}")
                return

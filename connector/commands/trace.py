"""`thl trace`: prints when an event was committed, published and applied, and where each time comes from."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from connector.commands.grammar.command import command
from connector.commands.grammar.options import configured, text_or_json

if TYPE_CHECKING:
    from connector.config.model import Config
    from connector.inspect.thl_events.attempts import Attempt
    from connector.status.trace import EventTrace, Instant


@command(examples={"thl trace 41": "Print the way of event 41.", "thl trace 41 --format json": ""})
@click.argument("seqno", type=click.IntRange(min=0), metavar="SEQNO")
@configured()
@text_or_json()
def trace(config: Config, seqno: int, as_json: bool) -> None:
    """Print when an event was committed on the source, published on Kafka and applied to the target.

    Each time comes from another clock, which is named; the differences are as good as these clocks. The time at which
    an event was applied is exact with target.audit; without it only the last event's is.
    """
    from connector.commands.grammar.unverified import warn_of_unverified
    from connector.errors import escaped

    warn_of_unverified(config, "target")
    found = _traced(config, seqno)
    if as_json:
        click.echo(json.dumps(found.as_object(), indent=2))
    else:
        click.echo("\n".join(map(escaped, found.lines())))


def _traced(config: Config, seqno: int) -> EventTrace:
    """The way of an event.

    Raises:
        ConfigError: there is no such log, or no such event.
        BrokerUnavailable, LogDamaged: see `LogList`.
        TargetUnavailable: the target does not answer.
    """
    from connector.kafka.log_reader import LogReader
    from connector.status.trace import ClockOf, EventTrace, Instant

    attempt, ending = _whole(config, seqno)
    messages, published = [], []
    with LogReader(config, point_lookup=True) as reader:
        log = reader.control().log
        for offset in (attempt.first, attempt.last):
            time = reader.published_at(attempt.partition, offset)
            messages.append(f"{config.topic}-{attempt.partition}@{offset}")
            clock = ClockOf.BROKER if time.by_broker else ClockOf.PRODUCER
            published.append(Instant(time.at, clock, f"of {messages[-1]}"))
    committed = ending["commit_time"]
    applied, why_not = _applied(config, log.log_id if log else "", seqno)
    return EventTrace(
        seqno=seqno,
        epoch=attempt.epoch,
        event_id=ending["event_id"],
        gtid=ending["gtid"],
        shard=ending["shard"],
        messages=(messages[0], messages[1]),
        committed=None if committed is None else Instant(committed, ClockOf.SOURCE, "of its binary log"),
        first_published=published[0],
        published=published[1],
        applied=applied,
        target=why_not,
    )


def _whole(config: Config, seqno: int) -> tuple[Attempt, dict[str, Any]]:
    """The finished attempt at an event, with its last fragment's header.

    Raises:
        ConfigError: the log does not have it, or its epoch left it out.
    """
    from connector.errors import ConfigError
    from connector.inspect.thl_events.choice import Choice
    from connector.inspect.thl_events.log import LogList

    for attempt in LogList(config).attempts(Choice(low=seqno, high=seqno)):
        if attempt.seqno == seqno and attempt.ending is not None and not attempt.trapped:
            return attempt, attempt.ending
    raise ConfigError(
        "the log has no finished event with this seqno",
        hint="thl info shows the log's seqnos; thl list --voided what was given up, or is trapped",
        seqno=seqno,
    )


def _applied(config: Config, log_id: str, seqno: int) -> tuple[Instant | None, str]:
    """The time at which the target got an event; without one, the reason."""
    from connector.status.trace import ClockOf, Instant
    from connector.targets.open import open_signal_table, read_position

    position = read_position(config.target.url.get_secret_value(), config.service)
    if position is None:
        return None, "nothing was applied to this target yet"
    if position.log_id != log_id:
        return None, f"the target has another log, {position.log_id}: this one is {log_id}"
    if position.seqno < seqno:
        return None, f"not yet: the target is at {position.seqno}"
    with open_signal_table(config.target) as signals:
        if seqno in signals.skipped(config.service):
            return None, "skipped: thl_skipped has the reason"
        at = signals.applied_at(config.service, seqno)
    if at is not None:
        return Instant(at, ClockOf.APPLIER, "in thl_applied"), ""
    exact = position.seqno == seqno
    origin = "in thl_position" if exact else f"in thl_position, with event {position.seqno}; exact with target.audit"
    return Instant(position.applied_at, ClockOf.APPLIER, origin, latest=not exact), ""

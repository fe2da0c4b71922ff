"""`thl list`: events of the log, as Tungsten lists them."""

from __future__ import annotations

import sys
from datetime import UTC, datetime, tzinfo
from typing import TYPE_CHECKING, Any

import click

from connector.commands.options import configured
from connector.commands.view_options import view_options

if TYPE_CHECKING:
    from collections.abc import Callable

    from connector.config.model import Config
    from connector.inspect.events.choice import Choice
    from connector.inspect.formats.printing import View

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def bound(option: str, value: str | None, zone: tzinfo) -> tuple[int | None, int | None]:
    """A seqno, or a time as µs since 1970 UTC; ISO 8601, of the zone where it names none."""
    if value is None:
        return None, None
    if value.isascii() and value.isdecimal():
        return int(value), None
    try:
        found = datetime.fromisoformat(value)
    except ValueError as error:
        raise click.BadParameter(
            f"{value!r} is neither a seqno nor a time like 2026-11-21T06:00:00", param_hint=option
        ) from error
    elapsed = (found if found.tzinfo else found.replace(tzinfo=zone)) - EPOCH
    return None, (elapsed.days * 86400 + elapsed.seconds) * 1_000_000 + elapsed.microseconds


def some(name: str, text: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """An option that is a number of events, 1 where none is given."""
    return click.option(
        f"-{name}",
        f"--{name}",
        type=click.IntRange(min=1),
        is_flag=False,
        flag_value=1,
        metavar="[N]",
        help=text,
    )


@click.command("list")
@configured("kafka")
@view_options
@click.option("-seqno", "--seqno", type=click.IntRange(min=0), metavar="N", help="This event alone.")
@click.option("-low", "--low", type=int, metavar="N", help="From this seqno on.")
@click.option("-high", "--high", type=int, metavar="N", help="Up to this seqno.")
@click.option("-from", "--from", "from_", metavar="N|TIME", help="From this seqno, or commit time, on.")
@click.option("-to", "--to", "to", metavar="N|TIME", help="Up to this seqno, or commit time.")
@some("first", "The first N, or the first.")
@some("last", "The last N, or the last.")
@click.option("-event", "--event", metavar="FILE:END", help="The one that ended there in the source's binary log.")
@click.option("-gtid", "--gtid", metavar="GTID", help="The one with this GTID.")
@click.option("--voided", is_flag=True, help="Also what was given up or is trapped, and what is not finished yet.")
def list_log(config: Config, view: View, **wanted: Any) -> None:
    """Print events of the log, fragment by fragment; all of them where nothing is chosen.

    A TIME is ISO 8601, of the time zone of -timezone where it names none. An event id or a GTID is looked for from the
    log's beginning, a seqno is found at once. Where an event is missing among them, or at a partition's end, it stops
    there and exits with 5.
    """
    from connector.inspect.events.log import LogList
    from connector.inspect.formats.printing import log_printer

    choice = chosen(view.zone, **wanted)
    printer = log_printer(view, sys.stdout.buffer)
    for listed in LogList(config).events(choice):
        printer.show(listed)
    printer.flush()


def chosen(
    zone: tzinfo, *, from_: str | None, to: str | None, event: str | None, gtid: str | None, **rest: Any
) -> Choice:
    """What the options choose.

    Raises:
        UsageError: two ways to choose at once.
    """
    from connector.inspect.events.choice import Choice, EventLocation

    low, since = bound("-from", from_, zone)
    high, until = bound("-to", to, zone)
    seqno, range_ = rest.pop("seqno"), (rest.pop("low"), rest.pop("high"))
    ways = {
        "-seqno": seqno is not None,
        "-low/-high": range_ != (None, None),
        "-from/-to": (from_, to) != (None, None),
        "-first": rest["first"] is not None,
        "-last": rest["last"] is not None,
        "-event": event is not None,
        "-gtid": gtid is not None,
    }
    asked = [name for name, given in ways.items() if given]
    if len(asked) > 1:
        raise click.UsageError(f"{' and '.join(asked)} exclude each other")
    if seqno is not None:
        low = high = seqno
    elif range_ != (None, None):
        low, high = range_
    if low is not None and high is not None and low > high:
        raise click.UsageError(f"{low} comes after {high}")
    return Choice(
        low=low,
        high=high,
        since=since,
        until=until,
        event=None if event is None else EventLocation.parse(event),
        gtid=gtid and gtid.strip().lower(),
        **rest,
    )

"""`thl list`: prints events of the log, in Tungsten's layout among others."""

from __future__ import annotations

from datetime import tzinfo
from typing import TYPE_CHECKING, Any

import click

from connector.commands.grammar.bounds import microseconds
from connector.commands.grammar.command import ByValue, Decorator, command, option
from connector.commands.grammar.options import VIEW_EARLIER, configured, relay_folder, relay_option, view_options

if TYPE_CHECKING:
    from pathlib import Path

    from connector.config.model import Config
    from connector.inspect.formats.printing import View
    from connector.inspect.thl_events.choice import Choice

WHICH = "Which events (default: all)"
ZONED = "ISO 8601; in the zone of --timezone unless it names one"


def some(name: str, text: str) -> Decorator:
    """An option that is a number of events, 1 if none is given."""
    return option(
        name,
        section=WHICH,
        type=click.IntRange(min=1),
        is_flag=False,
        flag_value=1,
        metavar="[N]",
        help=text,
    )


def either(end: str) -> ByValue:
    """Tungsten's -from or -to, of a seqno or a commit time."""

    def rewrite(value: str) -> tuple[str, str]:
        return f"--{end}-seqno" if value.isascii() and value.isdecimal() else f"--{end}-time", value

    return ByValue(f"--{end}-seqno or --{end}-time", rewrite)


@command(
    "list",
    earlier={
        **VIEW_EARLIER,
        "-seqno": "--seqno",
        "-low": "--from-seqno",
        "--low": "--from-seqno",
        "-high": "--to-seqno",
        "--high": "--to-seqno",
        "-from": either("from"),
        "--from": either("from"),
        "-to": either("to"),
        "--to": either("to"),
        "-first": "--first",
        "-last": "--last",
        "-event": "--event",
        "-gtid": "--gtid",
        "-by": "--by",
        "-no-checksum": "--no-checksum",
        "--file": "--relay",
    },
    examples={
        "thl list --last 5": "The last five events.",
        "thl list --seqno 41 --specs": "One event, with the columns' types.",
        "thl list --from-time 2026-11-21T06:00 --timezone Europe/Berlin --headers": "A line per fragment since then.",
        "thl list --from-seqno 40 --to-seqno 49 --format avro > part.avro": "Ten events as an Avro file.",
        "thl list --from-seqno 40 --format sql > from-40.sql": "SQL that MySQL executes: the events from 40 on.",
        "thl list --relay /var/lib/thl/relay --last": "The last event of a relay.",
    },
)
@configured("kafka")
@option("--seqno", section=WHICH, type=click.IntRange(min=0), metavar="N", help="This event only.")
@option("--from-seqno", section=WHICH, type=int, metavar="N", help="This event and later ones.")
@option("--to-seqno", section=WHICH, type=int, metavar="N", help="This event and earlier ones.")
@option("--from-time", section=WHICH, metavar="TIME", help=f"Events committed at TIME or later ({ZONED}).")
@option("--to-time", section=WHICH, metavar="TIME", help=f"Events committed at TIME or earlier ({ZONED}).")
@some("--first", "The first N events; without N, the first.")
@some("--last", "The last N events; without N, the last.")
@option("--event", section=WHICH, metavar="FILE:POS", help="The event that ends at this binary log position.")
@option("--gtid", section=WHICH, metavar="GTID", help="The event of this transaction.")
@relay_option("Print a relay's events instead of those on Kafka.", WHICH)
@option("--voided", section=WHICH, is_flag=True, help="Also events that were given up, are trapped, or unfinished.")
@option(
    "--no-checksum",
    section="Damage",
    is_flag=True,
    help="Print fragments whose checksum is wrong, on Kafka or in a relay, each with a warning, instead of stopping.",
)
@option("--by", type=click.IntRange(min=1), metavar="N", hidden=True, help="Without effect, as in Tungsten.")
@view_options
def list_log(
    config: Config, view: View, relay: Path | None, *, no_checksum: bool, by: int | None, **options: Any
) -> None:
    """Print events of the log, fragment by fragment; without a choice, all of them.

    A seqno or a time is found in a few reads; an event id or a GTID is searched from the log's beginning. Exits with 5
    at the first event that is missing, between others or at a partition's end.
    """
    from connector.inspect.formats.printing import log_printer
    from connector.inspect.relay import relay_events
    from connector.inspect.terminal import output
    from connector.inspect.thl_events.log import LogList

    del by  # scripts written for Tungsten give it
    choice = chosen(view.zone, **options)
    printer = log_printer(view, output())
    checksums = not no_checksum
    if relay is None:
        events = LogList(config, checksums=checksums).events(choice)
    else:
        events = relay_events(relay_folder(config, relay), config.topic, choice, checksums=checksums)
    for listed in events:
        printer.show(listed)
    printer.flush()


def chosen(
    zone: tzinfo,
    *,
    seqno: int | None,
    from_seqno: int | None,
    to_seqno: int | None,
    from_time: str | None,
    to_time: str | None,
    event: str | None,
    gtid: str | None,
    **rest: Any,
) -> Choice:
    """The choice that the options make.

    Raises:
        UsageError: two ways to choose at once.
    """
    from connector.inspect.thl_events.choice import Choice, EventLocation

    ways = {
        "--seqno": seqno is not None,
        "--from-… and --to-…": (from_seqno, to_seqno, from_time, to_time) != (None,) * 4,
        "--first": rest["first"] is not None,
        "--last": rest["last"] is not None,
        "--event": event is not None,
        "--gtid": gtid is not None,
    }
    asked = [name for name, given in ways.items() if given]
    if len(asked) > 1:
        raise click.UsageError(f"{', '.join(asked)} exclude each other")
    low, high = (from_seqno, to_seqno) if seqno is None else (seqno, seqno)
    if low is not None and high is not None and low > high:
        raise click.UsageError(f"the range is empty: it begins with {low}, and ends with {high}")
    return Choice(
        low=low,
        high=high,
        since=_time("--from-time", from_time, zone),
        until=_time("--to-time", to_time, zone),
        event=None if event is None else EventLocation.parse(event),
        gtid=gtid and gtid.strip().lower(),
        **rest,
    )


def _time(name: str, value: str | None, zone: tzinfo) -> int | None:
    try:
        return None if value is None else microseconds(value, zone)
    except ValueError as error:
        raise click.BadParameter(f"{value!r} is not a time like 2026-11-21T06:00:00", param_hint=name) from error

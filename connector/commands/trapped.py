"""`thl trapped`: lists the events of the log that its source does not have (errant GTIDs)."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from connector.commands.grammar.command import JSON, command
from connector.commands.grammar.options import configured, text_or_json

if TYPE_CHECKING:
    from connector.config.model import Config
    from connector.inspect.trapped import Trapped


@command(earlier=JSON)
@configured("kafka", "source")
@text_or_json()
@click.pass_context
def trapped(ctx: click.Context, config: Config, *, as_json: bool) -> None:
    """List the events of the log that the source does not have (errant), as after a failover to a lagging replica.

    Reads both and changes nothing. Exits with 8 if there are any.
    """
    from connector.errors import HistoriesDiffer
    from connector.inspect.trapped import find_trapped

    found = find_trapped(config)
    click.echo(json.dumps(asdict(found), indent=2) if as_json else "\n".join(_lines(found)))
    ctx.exit(HistoriesDiffer.exit_code if found.trapped else 0)


def _lines(found: Trapped) -> list[str]:
    if not found.trapped:
        return ["no trapped events: the source has every transaction of the log"]
    lines = [f"the source lacks {found.count} transactions of the log: {found.trapped}"]
    for event in found.events:
        changed = [f"{table} ({rows} rows)" for table, rows in event.rows.items()]
        changed += [f"{event.statements} statements"] if event.statements else []
        lines.append(
            f"seqno {event.seqno}, epoch {event.epoch}: {event.gtid}, committed {event.committed}, "
            f"{event.event_id}: {', '.join(changed) or 'no changes'}"
        )
    if found.passed:
        lines.append(f"{found.passed} of them are not events of the log: it passed them over")
    return lines

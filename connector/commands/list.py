"""`thl list`: events of the log, as Tungsten lists them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from connector.commands.options import configured

if TYPE_CHECKING:
    from connector.config import Config


@click.command("list")
@configured
@click.option("-low", "--low", type=int, metavar="N", help="From this seqno on.")
@click.option("-high", "--high", type=int, metavar="N", help="Up to this seqno.")
@click.option("-seqno", "--seqno", type=int, metavar="N", help="This one alone.")
@click.option("-first", "--first", type=click.IntRange(min=1), metavar="N", help="The first N.")
@click.option("-last", "--last", type=click.IntRange(min=1), metavar="N", help="The last N.")
@click.option("-headers", "--headers", is_flag=True, help="Without what the events change.")
@click.option("-json", "--json", "as_json", is_flag=True, help="A JSON object a line.")
@click.option("--voided", is_flag=True, help="Also what was given up, and what is not finished yet.")
def list_log(
    config: Config,
    *,
    low: int | None,
    high: int | None,
    seqno: int | None,
    first: int | None,
    last: int | None,
    headers: bool,
    as_json: bool,
    voided: bool,
) -> None:
    """Print events of the log, fragment by fragment, in Tungsten's layout."""
    from connector.listing.as_json import as_object
    from connector.listing.choice import Choice
    from connector.listing.log import LogList
    from connector.listing.tungsten import lines

    if seqno is not None:
        low = high = seqno
    for listed in LogList(config).events(Choice(low, high, first, last, voided)):
        if as_json:
            click.echo(json.dumps(as_object(listed, headers=headers), ensure_ascii=False))
        else:
            click.echo("\n".join(lines(listed, headers=headers)))

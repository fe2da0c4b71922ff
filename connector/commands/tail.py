"""`thl tail`: the log as it grows."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from connector.commands.options import configured
from connector.commands.view_options import view_options

if TYPE_CHECKING:
    from connector.config.model import Config
    from connector.inspect.formats.printing import View


@click.command()
@configured("kafka")
@view_options
@click.option(
    "-last", "--last", type=click.IntRange(min=0), default=0, metavar="N", help="Begin with the last N that are there."
)
@click.option("--until-seqno", type=click.IntRange(min=0), metavar="N", help="End after this event.")
@click.option("--voided", is_flag=True, help="Also what is given up.")
def tail(config: Config, view: View, last: int, until_seqno: int | None, voided: bool) -> None:
    """Print events as they come into the log, until SIGINT or SIGTERM; each when it is whole."""
    import signal
    from threading import Event

    from connector.inspect.events.follow import Following
    from connector.inspect.formats.printing import log_printer

    stop = Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    printer = log_printer(view, sys.stdout.buffer)
    for listed in Following(config, stop.is_set).events(last, voided=voided, until=until_seqno):
        if listed is None:
            printer.flush()
        else:
            printer.show(listed)
    printer.flush()

"""`thl tail`: prints events as the log grows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from connector.commands.grammar.command import command, option
from connector.commands.grammar.ending import stop_at_signals
from connector.commands.grammar.options import VIEW_EARLIER, configured, view_options

if TYPE_CHECKING:
    from connector.config.model import Config
    from connector.inspect.formats.printing import View

WHICH = "Which events"


@command(
    earlier={**VIEW_EARLIER, "-last": "--last", "--until-seqno": "--to-seqno"},
    examples={
        "thl tail --headers": "A line per fragment, as events arrive.",
        "thl tail --last 10 --format json": "The last ten events, and those that follow.",
    },
)
@configured("kafka")
@option(
    "--last", section=WHICH, type=click.IntRange(min=0), default=0, metavar="N", help="Begin with the last N events."
)
@option("--to-seqno", section=WHICH, type=click.IntRange(min=0), metavar="N", help="End after event N.")
@option("--voided", section=WHICH, is_flag=True, help="Also events that were given up.")
@view_options
def tail(config: Config, view: View, last: int, to_seqno: int | None, voided: bool) -> None:
    """Print events as they arrive in the log, each when it is complete, until SIGINT or SIGTERM."""

    from connector.inspect.formats.printing import log_printer
    from connector.inspect.terminal import output
    from connector.inspect.thl_events.follow import Following

    stop = stop_at_signals()
    printer = log_printer(view, output())
    for listed in Following(config, stop.is_set).events(last, voided=voided, until=to_seqno):
        if listed is None:
            printer.flush()
        else:
            printer.show(listed)
    printer.flush()

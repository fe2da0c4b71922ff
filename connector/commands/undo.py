"""`thl undo`: take a target's data back to an earlier event."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from connector.commands.options import configured

if TYPE_CHECKING:
    from connector.config.model import Config


@click.command()
@configured("kafka", "target")
@click.option("--to-seqno", type=click.IntRange(min=1), required=True, metavar="N", help="The event to go back to.")
def undo(config: Config, to_seqno: int) -> None:
    """Take the target back until it shows the source as it was after event N, by the before images in the log.

    An applier that runs is fenced. Refused before anything is changed where the events since cannot be undone: a DDL
    that did something, an initial load, images without all columns. `thl apply` goes forward again.
    """
    from contextlib import closing

    from connector.applier.undo import undo as take_back
    from connector.clock import SystemClock
    from connector.log.ids import Seqno
    from connector.targets.open import open_signal_table, open_target

    with closing(open_target(config.target, SystemClock())) as target, open_signal_table(config.target) as desk:
        position = take_back(config, target, desk, Seqno(to_seqno))
    click.echo(f"service {config.service} is at event {position.seqno}: {position.event_id}")

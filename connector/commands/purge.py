"""`thl purge`: deletes events of a relay."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from connector.commands.grammar.command import OPTIONS, command, option
from connector.commands.grammar.options import CONFIGURED, configured, relay_folder, relay_option
from connector.logs import echo

if TYPE_CHECKING:
    from connector.config.model import Config


@command(
    earlier={"-low": "--from-seqno", "-high": "--to-seqno", "-y": "--yes", "--file": "--relay"},
    examples={
        "thl purge --to-seqno 41": "Delete the files that have only events up to 41.",
        "thl purge --from-seqno 42 --yes": "Delete event 42 and all later ones.",
    },
)
@configured("target")
@option("--from-seqno", type=click.IntRange(min=0), metavar="N", help="This event and later ones.")
@option("--to-seqno", type=click.IntRange(min=0), metavar="N", help="This event and earlier ones, in whole files.")
@relay_option("The relay; the option can be left out.", OPTIONS)
@option("--yes", is_flag=True, help="Do not ask.")
def purge(config: Config, from_seqno: int | None, to_seqno: int | None, relay: Path | None, yes: bool) -> None:
    """Delete events at the beginning or at the end of a relay, while no applier writes to it.

    --to-seqno deletes only whole files, and the newest one stays. --from-seqno deletes every file if N is the oldest
    event or before it. Events that the target of the configuration needs to finish a commit of several writers are
    not deleted; the target must answer.
    """
    from connector.clock import SystemClock
    from connector.log.ids import Seqno
    from connector.relay.purge import Purge
    from connector.targets.open import open_signal_table

    if from_seqno is None and to_seqno is None:
        raise click.UsageError("--from-seqno or --to-seqno is needed")
    folder = relay_folder(config, relay or CONFIGURED)
    with open_signal_table(config.target) as signals, Purge(folder, SystemClock()) as purged:
        deletions = purged.deletions(
            None if from_seqno is None else Seqno(from_seqno),
            None if to_seqno is None else Seqno(to_seqno),
            signals.intent(config.service),
        )
        for deletion in deletions:
            click.echo(deletion.text)
        if not deletions:
            echo("nothing to delete")
        elif yes or click.confirm("Delete this?", default=False):
            purged.delete(deletions)

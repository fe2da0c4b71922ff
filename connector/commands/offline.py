"""`thl offline`: ask a service's applier to end, from anywhere that reaches the target."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from connector.commands.options import configured

if TYPE_CHECKING:
    from connector.config import Config

LOOK_SECONDS = 0.2


@click.command()
@configured
@click.option("--because", default="", metavar="TEXT", help="Why; the applier and `thl status` say it.")
@click.option("--wait", default=60.0, show_default=True, metavar="SECONDS", help="For the applier to be offline.")
def offline(config: Config, because: str, wait: float) -> None:
    """Ask the applier to go offline: between two events, its last commit done, with exit code 0.

    The request stands in the target, where the applier looks each second, until the next `thl apply` begins. The
    producer knows no target: it ends in the same way on SIGTERM.
    """
    from connector.clock import SystemClock
    from connector.commands.who import who
    from connector.errors import TargetUnavailable
    from connector.write.desk import Request
    from connector.write.open import open_desk

    clock = SystemClock()
    with open_desk(config.target) as desk:
        desk.ask_offline(config.service, Request(clock.now(), who(), because))
        deadline = clock.monotonic() + wait
        while True:
            found = desk.request(config.service)
            if found is None:
                raise TargetUnavailable("another applier has begun meanwhile", service=config.service)
            if found.offline_at is not None:
                click.echo(f"service {config.service} is offline after event {found.seqno}")
                return
            if clock.monotonic() >= deadline:
                raise TargetUnavailable(
                    f"no applier has gone offline within {wait:g} s",
                    hint="perhaps none is running; the request stands until one does, or the next `thl apply` begins",
                    service=config.service,
                )
            clock.sleep(LOOK_SECONDS)

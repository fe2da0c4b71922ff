"""What goes wrong with `thl serve`, which watches."""

from __future__ import annotations

from collections.abc import Iterator

from tests.integration.alerts.fleet import Fleet
from tests.integration.alerts.trouble import Troubles
from tests.support.producing import until

TROUBLES = Troubles()


@TROUBLES.fires("ThlServeDown")
def one_of_two_servers_has_ended(fleet: Fleet) -> Iterator[None]:
    with fleet.another_server() as other:
        other.stop()
        yield
        other.start()
        until(lambda: not fleet.firing())


@TROUBLES.fires("ThlServeAbsent")
def no_server_is_scraped(fleet: Fleet) -> Iterator[None]:
    fleet.alarms.scrape("thl-serve")
    yield
    fleet.alarms.scrape("thl-serve", fleet.ports["thl-serve"])


@TROUBLES.fires("ThlNotRead", besides=("ThlStateUnknown",))
def the_target_keeps_the_reading_waiting(fleet: Fleet) -> Iterator[None]:
    """For a minute, which is a constant of `thl serve`."""
    with fleet.locked("thl.thl_position"):
        yield

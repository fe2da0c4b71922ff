"""What comparisons of source and target find, and that there are none."""

from __future__ import annotations

from collections.abc import Iterator

from tests.integration.alerts.fleet import TOKEN, Fleet
from tests.integration.alerts.trouble import Troubles
from tests.support.clock import PATIENCE
from tests.support.producing import until
from tests.support.serving import ask

TROUBLES = Troubles()


@TROUBLES.fires("ThlVerifyDifferent")
def a_row_was_changed_on_the_target(fleet: Fleet) -> Iterator[None]:
    fleet.start(fleet.verifier, "thl-verify")
    _change_by_hand(fleet)
    yield
    _mend(fleet)


@TROUBLES.fires("ThlVerifyDifferent", besides=("ThlVerifyOld",))
def the_button_finds_a_changed_row(fleet: Fleet) -> Iterator[None]:
    """`thl verify --every` does not look meanwhile."""
    fleet.verifier.stop()
    _change_by_hand(fleet)
    _press(fleet, "different")
    yield
    _mend(fleet)
    _press(fleet, "equal")
    fleet.start(fleet.verifier, "thl-verify")


@TROUBLES.fires("ThlVerifyOld")
def nothing_is_compared_any_more(fleet: Fleet) -> Iterator[None]:
    fleet.verifier.stop()
    yield
    fleet.start(fleet.verifier, "thl-verify")


def _change_by_hand(fleet: Fleet) -> None:
    fleet.on_target(f"UPDATE {fleet.table} SET v = 'by hand' WHERE id = 2")


def _mend(fleet: Fleet) -> None:
    mended = fleet.thl("verify", "--repair", "--stall-timeout", str(PATIENCE / 3))
    assert mended.returncode == 0, mended.stdout + mended.stderr


def _press(fleet: Fleet, verdict: str) -> None:
    """Press the button of the page that compares, and wait for its verdict."""
    path = f"/api/services/{fleet.service}/actions/verify"
    answer = ask(fleet.ports["thl-serve"], path, data=b"", Authorization=f"Bearer {TOKEN}")
    assert answer.status == 202, answer.text

    def is_known() -> bool:
        comparison = fleet.shown()["targets"][0]["comparison"]
        return bool(comparison and comparison["verdict"] == verdict)

    until(is_known)

"""An applier as its target knows it."""

from __future__ import annotations

from secrets import token_hex
from typing import Final

from connector.log.transaction.position import TargetPosition
from connector.targets.target import TargetDatabase


class Claimant:
    """Claims a target again and again for one run of an applier: other appliers' claims fence it, its own never do.

    A claim can fail after the target committed it: the answer is lost, or the server goes then. The mark tells the next
    one whose it was.
    """

    def __init__(self) -> None:
        self._mark: Final = token_hex(16)
        self._token = 0  # of the last claim that is known

    def claim(self, target: TargetDatabase, service: str) -> TargetPosition:
        """Claim a target, as `TargetDatabase.claim`.

        Raises:
            Fenced: another applier has claimed it since this one did.
        """
        position = target.claim(service, self._token, self._mark)
        self._token = target.token
        return position

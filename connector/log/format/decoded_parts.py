"""Parts of a change that was too large for one message, put together again (`Chunk` in `schemas/fragment.avsc`).

For fragments that are decoded; those that stay bytes have `connector.log.format.row_parts`, by the same rules.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from connector.errors import LogDamaged
from connector.log.format import checked

Change = Mapping[str, Any]
"""An item of `changes`, as the schema says."""


def without_parts(changes: Sequence[Change]) -> Sequence[Change]:
    """A fragment's changes, but for a part of one."""
    return [change for change in changes if "data" not in change]


class DecodedParts:
    """Takes fragments of one event, in order.

    Args:
        decode: reads a change from its Avro bytes.
        at: where the event stands, for errors.
    """

    def __init__(self, decode: Callable[[bytes], Change], at: str) -> None:
        self._decode = decode
        self._at = at
        self._data = bytearray()
        self._size = 0  # of the change that is incomplete

    def whole(self, fragno: int, changes: Sequence[Change]) -> Sequence[Change]:
        """Return what a fragment adds: its changes; for a part nothing, or with the last part the whole change.

        Args:
            fragno: the fragment's; with 0 an event begins, or begins again.
            changes: the fragment's.

        Raises:
            LogDamaged: the parts do not follow each other, or a change is not one of its table.
        """
        if fragno == 0:
            self._data, self._size = bytearray(), 0
        if len(without_parts(changes)) == len(changes):
            self._expect(not self._size)
            return self._checked(changes)
        self._expect(len(changes) == 1)
        part = changes[0]
        self._expect(part["start"] == len(self._data) and (not self._size or part["size"] == self._size))
        self._size = part["size"]
        self._data += part["data"]
        self._expect(0 < len(self._data) <= self._size)
        if len(self._data) < self._size:
            return ()
        data, self._data, self._size = bytes(self._data), bytearray(), 0
        return self._checked((self._decode(data),))

    def _checked(self, changes: Sequence[Change]) -> Sequence[Change]:
        for change in changes:
            if "rows" in change:
                try:
                    checked.change(change)
                except (ValueError, KeyError) as error:
                    raise LogDamaged(f"a change is not one of its table: {error}", at=self._at) from error
        return changes

    def _expect(self, right: bool) -> None:
        if not right:
            raise LogDamaged("the parts of a large change do not follow each other", at=self._at)

"""Parts of a change that was too large for one message, put together again (`Chunk` in `schemas/fragment.avsc`).

For decoded fragments; `connector.log.format.row_parts` does the same for fragments as bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from connector.errors import LogDamaged
from connector.log.format import checked
from connector.log.rules import Rule, broken, damaged

MOST_BYTES: Final = 1 << 30  # of a change; as `connector.log.format.row_parts` has it

Change = Mapping[str, Any]
"""An item of `changes`, as the schema says."""


def without_parts(changes: Sequence[Change]) -> Sequence[Change]:
    """A fragment's changes without row parts."""
    return [change for change in changes if "data" not in change]


class DecodedParts:
    """Joins the row parts of one event, whose fragments it accepts in order.

    Args:
        decode: decodes a change from its Avro bytes.
        at: topic-partition@offset of the event, for errors.
    """

    def __init__(self, decode: Callable[[bytes], Change], at: str) -> None:
        self._decode = decode
        self._at = at
        self._data = bytearray()
        self._size = 0  # of the change that is incomplete

    def whole(self, fragno: int, changes: Sequence[Change]) -> Sequence[Change]:
        """Return what a fragment adds: its changes; for a part nothing, or with the last part the whole change.

        Args:
            fragno: the number of the fragment; with 0 an event begins, or begins again.
            changes: the changes of the fragment.

        Raises:
            LogDamaged: the parts do not follow each other, or a change does not fit its table.
        """
        if fragno == 0:
            self._data, self._size = bytearray(), 0
        if len(without_parts(changes)) == len(changes):
            self._expect(not self._size)
            return self._checked(changes)
        self._expect(len(changes) == 1)
        start, size, data = changes[0]["start"], changes[0]["size"], changes[0]["data"]
        self._expect(0 < len(data) <= size <= MOST_BYTES and self._size in (0, size))
        self._expect(start == len(self._data) and start + len(data) <= size)
        self._size = size
        self._data += data
        if len(self._data) < self._size:
            return ()
        whole, self._data, self._size = bytes(self._data), bytearray(), 0
        return self._checked((self._decode(whole),))

    def _checked(self, changes: Sequence[Change]) -> Sequence[Change]:
        for change in changes:
            if "rows" in change:
                try:
                    checked.change(change)
                except (ValueError, KeyError) as error:
                    raise damaged(error, at=self._at) from error
        return changes

    def _expect(self, right: bool) -> None:
        if not right:
            raise broken(LogDamaged, Rule.ROW_PARTS, at=self._at)

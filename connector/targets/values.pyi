from array import array
from collections.abc import Sequence

def rows(
    data: bytes | bytearray, ends: array[int], columns: int, selected: Sequence[int] | None = None
) -> list[tuple[int | float | str | bytes | None, ...]]: ...

from array import array
from collections.abc import Sequence

class NoDefault(ValueError):
    image: int
    column: int

def with_defaults(
    data: bytes | bytearray, ends: array[int], columns: int, defaults: Sequence[bytes | None]
) -> tuple[bytes, array[int]]: ...

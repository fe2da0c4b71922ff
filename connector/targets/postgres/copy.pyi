from array import array
from enum import IntEnum

class CopyKind(IntEnum):
    INT2 = 0
    INT4 = 1
    INT8 = 2
    FLOAT4 = 3
    FLOAT8 = 4
    NUMERIC = 5
    TEXT = 6
    BYTEA = 7
    DATE = 8
    TIMESTAMP = 9
    INTERVAL = 10
    BIT = 11

HEADER: bytes
TRAILER: bytes

class ValueDoesNotFit(ValueError):
    image: int
    column: int
    reason: str

def copy_rows(
    data: bytes | bytearray,
    ends: array[int],
    first: int,
    kinds: bytes,
    bits: bytes,
    selected: bytes,
    operation: int,
    limit: int,
) -> tuple[bytes, int]: ...

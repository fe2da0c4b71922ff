from enum import IntEnum

class ValueKind(IntEnum):
    INTEGER = 1
    FLOAT = 2
    DOUBLE = 3
    DECIMAL = 4
    YEAR = 5
    DATE = 6
    TIME2 = 7
    DATETIME2 = 8
    TIMESTAMP2 = 9
    OLD_TIME = 10
    OLD_DATETIME = 11
    OLD_TIMESTAMP = 12
    UTF8 = 13
    MAPPED = 14
    WIDE = 15
    MULTIBYTE = 16
    BYTES = 17
    PADDED = 18
    BIT = 19
    ENUM = 20
    SET = 21
    JSON = 22
    EITHER = 23
    COMPRESSED = 64

class RowCodec:
    width: int
    column: int
    def __init__(
        self, specs: list[tuple[int, int, int, bool, object, tuple[bytes, ...]]], largest: int = ...
    ) -> None: ...

from array import array

class TungstenRows:
    def __init__(self, row: bytes, columns: list[bytes], keys: list[bytes], key: list[bool]) -> None: ...
    def printed(
        self, data: bytes | bytearray, ends: bytes | array[int], before: bytes = b"", after: bytes = b""
    ) -> bytes: ...

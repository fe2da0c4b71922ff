from array import array

class JsonRows:
    def __init__(self, keys: list[bytes], whole: list[bool], single: list[bool]) -> None: ...
    def printed(
        self, data: bytes | bytearray, ends: bytes | array[int], before: bytes = b"", after: bytes = b""
    ) -> bytes: ...

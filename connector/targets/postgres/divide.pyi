from array import array

HASH_VERSION: int

def divided(
    data: bytes | bytearray, ends: array[int], key: bytes, count: int, seed: int
) -> list[tuple[bytearray, array[int]]]: ...

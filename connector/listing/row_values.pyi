from array import array

Value = int | float | str | bytes | None

def row_values(
    data: bytes | bytearray, ends: bytes | array[int], width: int
) -> list[dict[str, list[Value] | None]]: ...

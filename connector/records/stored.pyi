from typing import Final

PART: Final[int]
HEADER: Final[int]

def replaced(
    changed: dict[bytes, bytes | None], known: dict[bytes, bytes | None], dirty: set[bytes]
) -> tuple[list[bytes], int]: ...
def before(part: bytes) -> list[tuple[bytes, bytes | None]]: ...

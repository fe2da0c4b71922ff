from collections.abc import Callable, Sequence

from connector.log.writing.fragment import Fragment
from connector.log.writing.progress import Progress

def size_of(items: Sequence[object]) -> int: ...
def rows_of(ended: list[Fragment]) -> int: ...
def gtids_of(items: Sequence[object]) -> str: ...
def send_on(
    items: Sequence[object],
    at: int,
    progress: Progress,
    send: Callable[[str, int, bytes, bytes], None],
    topic: str,
    ended: list[Fragment],
) -> int: ...

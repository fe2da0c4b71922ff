from collections.abc import Sequence

from connector.log.compact.net_changes import NetChanges

def joined(changes: Sequence[NetChanges], topic: str, *, apart: bool = False) -> list[NetChanges]: ...

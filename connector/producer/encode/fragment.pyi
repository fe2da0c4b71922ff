class EventHeader:
    @property
    def seqno(self) -> int: ...
    def __init__(
        self,
        seqno: int,
        epoch: int,
        kind: int,
        shard: str,
        prev_seqno: int,
        last_barrier: int,
        server_id: int,
        thread_id: int,
        gtid: str | None,
        last_committed: int,
        sequence_number: int,
        metadata: bytes,
    ) -> None: ...
    def end(self, event_id: str | None, commit_time: int | None, outcome: int) -> None: ...

class FragmentWriter:
    def __init__(self, opening: bytes, source_id: str) -> None: ...
    def write(
        self,
        header: EventHeader,
        fragno: int,
        last: bool,
        rows: int,
        changes: list[bytes | tuple[bytes, int, bytes | bytearray, int, int]],
    ) -> bytes: ...

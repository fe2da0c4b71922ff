"""The records of a relay file, read.

A record is as `connector.relay.record` writes it, whatever its type:

- 0: a fragment, with its message.
- 1: the first of a file: JSON with the log's ID, the event before, and whether it is in the file before this one.
- 2: events that the log passes over here, because they are trapped: the seqnos of the first and the last, int64.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import BinaryIO, Final, NamedTuple

from connector.log.format import checked
from connector.log.ids import NO_SEQNO, Epoch, LogId, Seqno
from connector.relay.record import checksum, framed

FRAGMENT: Final = 0
FILE: Final = 1
TRAPPED: Final = 2

_LENGTH: Final = struct.Struct(">iBi")
_HEAD: Final = struct.Struct(">qi?q")
_PLACE: Final = struct.Struct(">qiq")
_RANGE: Final = struct.Struct(">qq")
_DATA: Final = struct.Struct(">i")
_END: Final = struct.Struct(">BI")
_LEAST: Final = _LENGTH.size + _DATA.size + _END.size
_CRC32: Final = 1


class Broken(Exception):
    """Raised where a file's bytes are no record.

    Args:
        at: the offset of the first of them.
        reason: the reason.
        cut: true: the file ends within the record.
    """

    def __init__(self, at: int, reason: str, *, cut: bool = False) -> None:
        super().__init__(f"{reason} at byte {at}")
        self.at = at
        self.cut = cut


class Frame(NamedTuple):
    """A record: its type, its header, its data, the offsets where it begins and ends, and if its checksum is wrong."""

    kind: int
    head: bytes
    data: bytes
    begin: int
    end: int
    wrong: bool = False


class RelayFragment(NamedTuple):
    """A fragment's record: the fields of its header, and the message."""

    seqno: Seqno
    fragno: int
    last_frag: bool
    epoch: Epoch
    source_id: str
    event_id: str
    shard: str
    commit_time: int
    partition: int
    offset: int
    value: bytes


@dataclass(frozen=True, slots=True)
class FileHead:
    """The first record of a file.

    Args:
        log_id, service: the log.
        seqno, epoch: the event before the file's first; the epoch is 0 before the log's first event.
        continues: that event is in the file before this one.
        gtid_set: the transactions that are applied before the log's first event; None elsewhere, and without GTIDs.
    """

    log_id: LogId
    service: str
    seqno: Seqno
    epoch: Epoch
    continues: bool
    gtid_set: str | None


def frames(file: BinaryIO, at: int = 0, *, checksums: bool = True) -> Iterator[Frame]:
    """Yield the records of a file from an offset on, to its end.

    Args:
        file: the file.
        at: the offset.
        checksums: False: records with a wrong checksum are yielded, too.

    Raises:
        Broken: the bytes there are no record.
    """
    file.seek(at)
    while lengths := file.read(_LENGTH.size):
        if len(lengths) < _LENGTH.size:
            raise Broken(at, "the file ends within a record", cut=True)
        size, kind, head_size = _LENGTH.unpack(lengths)
        if size < _LEAST or not 0 <= head_size <= size - _LEAST:
            raise Broken(at, "no record begins")
        rest = file.read(size - _LENGTH.size)
        if len(rest) < size - _LENGTH.size:
            raise Broken(at, "the file ends within a record", cut=True)
        method, crc = _END.unpack_from(rest, len(rest) - _END.size)
        whole = lengths + rest
        wrong = method != _CRC32 or checksum(memoryview(whole)[: size - 4]) != crc
        if wrong and checksums:
            raise Broken(at, "a checksum is wrong")
        (data_size,) = _DATA.unpack_from(rest, head_size)
        begin = head_size + _DATA.size
        if data_size < 0 or begin + data_size != len(rest) - _END.size:
            raise Broken(at, "a record's lengths contradict each other")
        yield Frame(kind, rest[:head_size], rest[begin : begin + data_size], at, at + size, wrong)
        at += size


def fragment_of(frame: Frame) -> RelayFragment:
    """Return the fragment of a record.

    Raises:
        Broken: the header has other fields.
    """
    try:
        seqno, fragno, last_frag, epoch = _HEAD.unpack_from(frame.head)
        at = _HEAD.size
        texts: list[str] = []
        for _ in range(3):
            size = int.from_bytes(frame.head[at : at + 2], "big")
            texts.append(frame.head[at + 2 : at + 2 + size].decode())
            at += 2 + size
        commit_time, partition, offset = _PLACE.unpack(frame.head[at:])
    except (struct.error, UnicodeDecodeError) as error:
        raise Broken(frame.begin, f"a fragment's header is wrong ({error})") from error
    if min(seqno, fragno, epoch, commit_time, partition, offset) < 0 or commit_time > checked.LATEST:
        raise Broken(frame.begin, "a fragment's header has impossible numbers")
    source_id, event_id, shard = texts
    return RelayFragment(
        Seqno(seqno),
        fragno,
        last_frag,
        Epoch(epoch),
        source_id,
        event_id,
        shard,
        commit_time,
        partition,
        offset,
        frame.data,
    )


def file_head(frame: Frame) -> FileHead:
    """Return the content of a file's first record.

    Raises:
        Broken: it is another record.
    """
    if frame.kind != FILE:
        raise Broken(frame.begin, "the file's first record is missing")
    try:
        head = checked.record(FileHead(**json.loads(frame.head)))
    except checked.WRONG as error:
        raise Broken(frame.begin, f"the file's first record has other fields ({error})") from error
    if head.seqno < NO_SEQNO or head.epoch < 0:
        raise Broken(frame.begin, "the file's first record has impossible numbers")
    return head


def file_head_record(head: FileHead) -> bytes:
    """Return a file's first record."""
    return framed(FILE, json.dumps(asdict(head)).encode())


def trapped(frame: Frame) -> tuple[Seqno, Seqno]:
    """Return the first and the last event that the log passes over.

    Raises:
        Broken: the header has other fields.
    """
    try:
        first, last = _RANGE.unpack(frame.head)
    except struct.error as error:
        raise Broken(frame.begin, f"a record's header is wrong ({error})") from error
    return Seqno(first), Seqno(last)


def trapped_record(first: Seqno, last: Seqno) -> bytes:
    """Return the record of events that the log passes over."""
    return framed(TRAPPED, _RANGE.pack(first, last))

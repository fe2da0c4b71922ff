"""A task's result on its way to the driver: its parts as bytes, through Spark or in a file.

What goes through Spark is in the JVM's heap several times, so a result goes in pieces. Where executor and driver are
one machine, the bytes are in a file of the session's private folder, which the driver maps, and the piece has its path.

Segments are pickled, as all is that Spark's Python workers return; both processes run the same version of this package.
Small ones are pickled together, so that a table's layout and the names of classes are there once.
"""

from __future__ import annotations

import os
import pickle
import struct
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import Final, NamedTuple

import pyarrow as pa

from connector import errors
from connector.errors import BrokerUnavailable, ConfigError, ConnectorError
from connector.kafka.message_batch import MESSAGES_SCHEMA
from connector.log.compact.segment import Segment, Unread
from connector.relay.spool import SpooledRecords, SpoolFile
from connector.spark.stream.parts import Part

_HEAD: Final = struct.Struct("<8sQ")  # messages or pickled parts, and their size
_MESSAGES: Final = b"messages"
_PICKLED: Final = b"pickled "
_END: Final = b"the end "
_TOGETHER: Final = 1 << 20  # bytes of the messages of parts that are pickled together
_ALIGNED: Final = 8  # bytes: Arrow reads numbers in place
_PROTOCOL: Final = 5
# Arrow and pickle raise these for bytes that are missing.
_DAMAGED: Final = (OSError, ValueError, EOFError, LookupError, AttributeError, TypeError, ImportError, struct.error,
                   pickle.UnpicklingError)  # fmt: skip
PIECE_BYTES: Final = 4 << 20  # bytes


FAILED: Final = -1


class ResultPiece(NamedTuple):
    """A piece of a result.

    Args:
        partition, begin: the first offset of the task's range.
        number: 0, 1 … within the result; FAILED: the task has failed.
        content: bytes of the result, or the path of its file; where the task has failed `failure_as_bytes`.
        left_out: bytes of messages that the task has left out since the piece before (`ForeignLoads`).
    """

    partition: int
    begin: int
    number: int
    content: bytes
    left_out: int = 0


def failure_as_bytes(error: ConnectorError) -> bytes:
    """An error of a task, for `failure_of`."""
    kind = next(one.__name__ for one in type(error).__mro__ if getattr(errors, one.__name__, None) is one)
    return pickle.dumps((kind, error.message, error.hint, error.where), _PROTOCOL)


def failure_of(piece: ResultPiece) -> ConnectorError:
    """The error of a task that has failed."""
    kind, message, hint, where = pickle.loads(piece.content)  # noqa: S301 (of this session's own tasks)
    error: ConnectorError = getattr(errors, kind)(message, hint=hint, **where)
    return error


def serialized(parts: Iterable[Part]) -> Iterator[bytes | pa.Buffer]:
    """Yield the bytes of a result; none if there are no parts."""
    some = False
    waiting: list[Segment | Unread] = []
    size = 0
    for part in parts:
        some = True
        if isinstance(part, pa.RecordBatch):
            if part.schema != MESSAGES_SCHEMA:
                raise ValueError(f"messages in columns {part.schema}")
            yield from _pickled(waiting)
            waiting, size = [], 0
            yield from _headed(_MESSAGES, part.serialize())
            continue
        waiting.append(part)
        size += part.size
        if size >= _TOGETHER:
            yield from _pickled(waiting)
            waiting, size = [], 0
    yield from _pickled(waiting)
    if some:
        yield from _headed(_END, b"")


def _pickled(parts: list[Segment | Unread]) -> Iterator[bytes | pa.Buffer]:
    if parts:
        yield from _headed(_PICKLED, pickle.dumps(parts, _PROTOCOL))


def _headed(kind: bytes, content: bytes | pa.Buffer) -> Iterator[bytes | pa.Buffer]:
    yield _HEAD.pack(kind, len(content))
    yield content
    yield bytes(-len(content) % _ALIGNED)


def in_pieces(parts: Iterable[Part]) -> Iterator[bytes]:
    """Yield a result in pieces of about `PIECE_BYTES` bytes."""
    piece = bytearray()
    for content in serialized(parts):
        for at in range(0, len(content), PIECE_BYTES):
            piece += content[at : at + PIECE_BYTES]
            if len(piece) >= PIECE_BYTES:
                yield bytes(piece)
                piece = bytearray()
    if piece:
        yield bytes(piece)


def deserialized(result: pa.Buffer) -> Iterator[Part]:
    """Yield the parts of a result; messages share its memory.

    Raises:
        BrokerUnavailable: bytes are missing; a task can read its range again.
    """
    at = 0
    kind = b"" if len(result) else _END
    spools: dict[bytes, SpoolFile] = {}
    while kind != _END:
        try:
            kind, size = _HEAD.unpack_from(result, at)
            parts = _read(kind, result[at + _HEAD.size : at + _HEAD.size + size])
        except _DAMAGED as error:
            raise BrokerUnavailable("the result of one of Spark's tasks is damaged", cause=str(error)) from error
        yield from (_with_records(part, spools) for part in parts)
        at += _HEAD.size + size + -size % _ALIGNED


def _with_records(part: Part, spools: dict[bytes, SpoolFile]) -> Part:
    """Return a part, a segment with its records open.

    Args:
        part: the part.
        spools: the files that were opened before.
    """
    if not isinstance(part, Segment) or not isinstance(part.records, SpooledRecords):
        return part
    try:
        return replace(part, records=part.records.opened(spools))
    except OSError as error:
        raise _unreadable(part.records.path, error) from error


def _read(kind: bytes, content: pa.Buffer) -> Sequence[Part]:
    if kind == _MESSAGES:
        return [pa.ipc.read_record_batch(content, MESSAGES_SCHEMA)]
    if kind == _PICKLED:
        parts: list[Part] = pickle.loads(content)  # noqa: S301 (of this session's own tasks)
        return parts
    if kind == _END:
        return ()
    raise ValueError(f"a part of the kind {kind!r}")


def written(folder: Path, parts: Iterable[Part]) -> bytes:
    """Write a result into a new file, which is deleted if there is an error, and return its path."""
    number, path = tempfile.mkstemp(dir=folder)
    try:
        with os.fdopen(number, "wb") as file:
            for content in serialized(parts):
                file.write(content)
    except BaseException:
        Path(path).unlink(missing_ok=True)  # the session may have ended
        raise
    return os.fsencode(path)


def joined_pieces(pieces: Iterable[ResultPiece], folder: Path | None) -> Iterator[pa.Buffer]:
    """Yield the results of a batch, those of each partition in order.

    Args:
        pieces: all pieces of some tasks.
        folder: the folder of results' files; None: the pieces have the bytes.

    Raises:
        BrokerUnavailable: a piece is missing; a task can read its range again.
        ConfigError: a file cannot be read.
    """
    for (partition, begin), same in groupby(sorted(pieces), key=lambda piece: piece[:2]):
        found = list(same)
        if [piece.number for piece in found] != list(range(len(found))):
            raise BrokerUnavailable(
                "the result of one of Spark's tasks is incomplete", at=f"{partition}@{begin}", pieces=len(found)
            )
        yield pa.py_buffer(b"".join(piece.content for piece in found)) if folder is None else _opened(found[0].content)


def _opened(path: bytes) -> pa.Buffer:
    """Map a result's file, which is gone when nothing refers to its bytes any more."""
    name = os.fsdecode(path)
    try:
        with pa.memory_map(name) as file:
            result = file.read_buffer()
        Path(name).unlink()
    except OSError as error:
        raise _unreadable(path, error) from error
    return result


def _unreadable(path: bytes, error: OSError) -> ConfigError:
    return ConfigError(
        f"what Spark's workers have stored cannot be read: {error.strerror}",
        hint="does another program remove files below apply.checkpoint_dir? how many files may this process open?",
        file=os.fsdecode(path),
    )

"""A task's result on its way to the driver: its parts as bytes, in rows of Spark or in a file.

A row goes through the JVM's heap several times, so a parcel goes in pieces. Where executor and driver are one machine,
the bytes are in a file of the session's private folder, which the driver maps, and the row has its path.

Segments are pickled: both processes run the same version of this package, and Spark's own rows are pickled, too.
"""

from __future__ import annotations

import os
import pickle
import struct
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

import pyarrow as pa

from connector.kafka.arrow_reader import MESSAGES_SCHEMA
from connector.spark.stream.parts import Part

_HEAD: Final = struct.Struct("<8sQ")  # the kind of a part, and its size
_MESSAGES: Final = b"messages"
_PICKLED: Final = b"pickled "
_ALIGNED: Final = 8  # bytes: Arrow reads numbers in place
_PROTOCOL: Final = 5
PIECE: Final = 4 << 20  # bytes of a row: Spark holds a row several times


def packed(parts: Iterable[Part]) -> Iterator[bytes | pa.Buffer]:
    """Yield the bytes of a parcel."""
    for part in parts:
        content: bytes | pa.Buffer
        if isinstance(part, pa.RecordBatch):
            if part.schema != MESSAGES_SCHEMA:
                raise ValueError(f"messages in columns {part.schema}")
            kind, content = _MESSAGES, part.serialize()
        else:
            kind, content = _PICKLED, pickle.dumps(part, _PROTOCOL)
        yield _HEAD.pack(kind, len(content))
        yield content
        yield bytes(-len(content) % _ALIGNED)


def in_pieces(parts: Iterable[Part]) -> Iterator[bytes]:
    """Yield a parcel in pieces of about `PIECE` bytes."""
    piece = bytearray()
    for content in packed(parts):
        for at in range(0, len(content), PIECE):
            piece += content[at : at + PIECE]
            if len(piece) >= PIECE:
                yield bytes(piece)
                piece = bytearray()
    if piece:
        yield bytes(piece)


def unpacked(parcel: pa.Buffer) -> Iterator[Part]:
    """Yield the parts of a parcel; messages share its memory."""
    at = 0
    while at < len(parcel):
        kind, size = _HEAD.unpack_from(parcel, at)
        content = parcel[at + _HEAD.size : at + _HEAD.size + size]
        if kind == _MESSAGES:
            yield pa.ipc.read_record_batch(content, MESSAGES_SCHEMA)
        else:
            yield pickle.loads(content)  # noqa: S301 (of this session's own tasks)
        at += _HEAD.size + size + -size % _ALIGNED


def spooled(folder: Path, parts: Iterable[Part]) -> bytes:
    """Write a parcel into a new file, and return its path."""
    number, path = tempfile.mkstemp(dir=folder)
    with os.fdopen(number, "wb") as file:
        for content in packed(parts):
            file.write(content)
    return os.fsencode(path)


def opened(path: bytes) -> pa.Buffer:
    """Map a parcel's file, which is gone when nothing refers to its bytes any more."""
    name = os.fsdecode(path)
    with pa.memory_map(name) as file:
        parcel = file.read_buffer()
    Path(name).unlink()
    return parcel

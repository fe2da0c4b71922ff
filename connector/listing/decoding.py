"""Messages of the event topic as what schemas/fragment.avsc says of them: whole, or their headers alone."""

from __future__ import annotations

import io
from functools import cache
from typing import Any, Final

import fastavro

from connector.encode.schema import change_schema, fragment_schema, single_object_header
from connector.errors import LogDamaged
from connector.thl.chunks import Chunks

HEADER_BYTES: Final = 10


def fragment_of(value: bytes, at: str) -> dict[str, Any]:
    """The whole fragment.

    Args:
        value: a message.
        at: where it stands, for the error.

    Raises:
        LogDamaged: it is not a fragment of our schema.
    """
    return _read(value, at, _schema(headers=False))


def chunks(at: str) -> Chunks:
    """For the fragments of one event, of which one stands there: what is a change in parts becomes one."""
    return Chunks(lambda data: _decoded(data, at, _change_schema()))


def header_of(value: bytes, at: str) -> dict[str, Any]:
    """The same without `changes`, and without reading them: they stand behind everything else.

    Raises:
        LogDamaged: as `fragment_of`.
    """
    return _read(value, at, _schema(headers=True))


def body_of(value: bytes, at: str) -> bytes:
    """The fragment's own Avro bytes.

    Raises:
        LogDamaged: it is written with another schema.
    """
    if value[:HEADER_BYTES] != single_object_header():
        raise LogDamaged("a message is written with another schema than ours", at=at, begins=value[:HEADER_BYTES].hex())
    return value[HEADER_BYTES:]


def _read(value: bytes, at: str, schema: Any) -> dict[str, Any]:
    return _decoded(body_of(value, at), at, schema)


def _decoded(data: bytes, at: str, schema: Any) -> dict[str, Any]:
    try:
        decoded: Any = fastavro.schemaless_reader(io.BytesIO(data), schema, None)
    except (EOFError, ValueError, IndexError, OverflowError) as error:
        raise LogDamaged(f"a fragment cannot be decoded: {error}", at=at) from error
    fragment: dict[str, Any] = decoded
    return fragment


@cache
def _schema(*, headers: bool) -> Any:
    schema = fragment_schema()
    fields = schema["fields"]
    if headers:
        fields = fields[: [field["name"] for field in fields].index("changes")]
    return fastavro.parse_schema({**schema, "fields": fields})


@cache
def _change_schema() -> Any:
    return fastavro.parse_schema(change_schema(fragment_schema()))

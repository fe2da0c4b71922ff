"""Messages of the event topic as what schemas/fragment.avsc says of them: whole, or their headers alone."""

from __future__ import annotations

import io
from functools import cache
from typing import Any, Final

import fastavro

from connector.errors import LogDamaged
from connector.log.format import checked
from connector.log.format.decoded_parts import DecodedParts
from connector.log.format.framing import REGISTERED, body_at, schema_of
from connector.schema import change_schema, fragment_schema, schema_fingerprint

SHOWN: Final = 10  # bytes of a message that is none, for the error


def fragment_of(value: bytes, at: str) -> dict[str, Any]:
    """The whole fragment.

    Args:
        value: a message.
        at: where it stands, for the error.

    Raises:
        LogDamaged: it is not a fragment of our schema.
    """
    return _read(value, _body(value, at), at, _schema(None))


def chunks(at: str) -> DecodedParts:
    """For the fragments of one event, of which one stands there: what is a change in parts becomes one."""
    return DecodedParts(lambda data: _read(data, 0, at, _change_schema()), at)


def header_of(value: bytes, at: str) -> dict[str, Any]:
    """The same without `changes`, and without reading them: they stand behind everything else.

    Raises:
        LogDamaged: as `fragment_of`.
    """
    return _read(value, _body(value, at), at, _schema("changes"))


def body_of(value: bytes, at: str) -> bytes:
    """The fragment's own Avro bytes.

    Raises:
        LogDamaged: it is written with another schema.
    """
    return value[_body(value, at) :]


def _body(value: bytes, at: str) -> int:
    """Where they begin, after it was found that they are of our schema."""
    try:
        body = body_at(value)
    except ValueError as error:
        raise LogDamaged("a message is not a fragment", at=at, begins=value[:SHOWN].hex()) from error
    metadata = None
    if value[:1] == REGISTERED:
        metadata = _read(value, body, at, _schema("event_id"))["metadata"]
    if schema_of(value, metadata) != schema_fingerprint():
        raise LogDamaged("a message is written with another schema than ours", at=at, begins=value[:SHOWN].hex())
    return body


def _read(value: bytes, body: int, at: str, schema: Any) -> dict[str, Any]:
    stream = io.BytesIO(value)
    stream.seek(body)
    try:
        decoded: Any = fastavro.schemaless_reader(stream, schema, None)
    except (EOFError, ValueError, IndexError, OverflowError) as error:
        raise LogDamaged(f"a fragment cannot be decoded: {error}", at=at) from error
    fragment: dict[str, Any] = decoded
    try:
        checked.commit_time(fragment.get("commit_time"))
    except ValueError as error:
        raise LogDamaged(f"a fragment cannot be decoded: {error}", at=at) from error
    return fragment


@cache
def _schema(before: str | None) -> Any:
    """Of the whole, or of what comes before a field: a record's fields follow each other."""
    schema = fragment_schema()
    fields = schema["fields"]
    if before is not None:
        fields = fields[: [field["name"] for field in fields].index(before)]
    return fastavro.parse_schema({**schema, "fields": fields})


@cache
def _change_schema() -> Any:
    return fastavro.parse_schema(change_schema(fragment_schema()))

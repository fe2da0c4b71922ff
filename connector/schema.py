"""The fragment's Avro schemas, the first bytes of messages, and the decoding of whole messages with fastavro.

Events of the kind `load` have a schema of their own, with more symbols: earlier versions refuse it by name.

Without a registry Avro single-object encoding (Avro specification, "Single object encoding"): the marker C3 01, the
schema's CRC-64-AVRO fingerprint as eight bytes little-endian, then the value. With one Confluent's wire format: a zero
byte, the schema's number there as four bytes big-endian, then the value. `log.format.framing` tells them apart.
"""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

from fastavro import parse_schema, schemaless_reader
from fastavro.schema import fingerprint, to_parsing_canonical_form

from connector.log.format.fragment_reader import check_change, check_fragment, fingerprint_of
from connector.log.format.framing import LOAD_FINGERPRINT, SCHEMA, SINGLE_OBJECT, registered
from connector.log.rules import damaged

SCHEMA_FILE: Final = "fragment.avsc"
LOAD_SCHEMA_FILE: Final = "load.avsc"


@dataclass(frozen=True, slots=True)
class Framing:
    """The first bytes of a producer's messages.

    Args:
        opening: the bytes before each value.
        facts: metadata that every message needs then.
        load_opening, load_facts: the same of events of the kind `load`.
    """

    opening: bytes
    facts: Mapping[str, str]
    load_opening: bytes
    load_facts: Mapping[str, str]


@cache
def fragment_schema() -> dict[str, Any]:
    """Return the schema of the event topic's messages, except those of loads.

    Returns:
        `schemas/fragment.avsc`, parsed as JSON: beside the package in a checkout, inside it in a wheel.
    """
    return _schema_in(SCHEMA_FILE)


@cache
def load_schema() -> dict[str, Any]:
    """Return the schema of messages of the kind `load`: `schemas/load.avsc`, parsed as JSON."""
    return _schema_in(LOAD_SCHEMA_FILE)


def _schema_in(name: str) -> dict[str, Any]:
    packaged = files("connector") / "schemas" / name
    checkout = Path(__file__).parents[1] / "schemas" / name
    text = packaged.read_text("utf-8") if packaged.is_file() else checkout.read_text("utf-8")
    schema: dict[str, Any] = json.loads(text)
    return schema


def change_schema(schema: dict[str, Any]) -> Any:
    """Return the schema of one item of a fragment's `changes`, with which a change in parts is decoded.

    Args:
        schema: the fragment's schema, as parsed JSON.
    """
    return next(field["type"]["items"] for field in schema["fields"] if field["name"] == "changes")


@cache
def single_object_header() -> bytes:
    """Return the ten bytes before the Avro body: marker, and fingerprint of the schema's parsing canonical form."""
    return SINGLE_OBJECT + bytes.fromhex(schema_fingerprint())


@cache
def schema_fingerprint() -> str:
    """Return the fingerprint of this version's parsing canonical form, in hexadecimal digits."""
    return fingerprint(to_parsing_canonical_form(fragment_schema()), "CRC-64-AVRO")


def framing(number: int | None = None, load_number: int | None = None) -> Framing:
    """Return the framing of a producer with or without a registry.

    Args:
        number, load_number: the numbers of the schema and of that of loads in the registry; None: no registry.
    """
    if (number is None) != (load_number is None):
        raise ValueError("a registry numbers both schemas")
    if number is None or load_number is None:
        return Framing(single_object_header(), {}, SINGLE_OBJECT + bytes.fromhex(LOAD_FINGERPRINT), {})
    facts, load_facts = ({SCHEMA: fingerprint} for fingerprint in (schema_fingerprint(), LOAD_FINGERPRINT))
    return Framing(registered(number), facts, registered(load_number), load_facts)


def read_fragment(value: bytes, at: str) -> dict[str, Any]:
    """Decode a message to its fields by name.

    Args:
        value: the message.
        at: topic-partition@offset, for errors.

    Raises:
        LogDamaged: the message is not a fragment of this schema, or is damaged.
    """
    body = check_fragment(value, at)
    return decoded(_parsed(load=fingerprint_of(value, at) == LOAD_FINGERPRINT), value, body, at)


def read_change(data: bytes, at: str) -> dict[str, Any]:
    """Decode one change, for a change in parts after they were joined; also one of a load.

    Raises:
        LogDamaged: the change is damaged.
    """
    check_change(data, at)
    return decoded(_parsed_change(), data, 0, at)


def decoded(schema: Any, value: bytes, start: int, at: str) -> dict[str, Any]:
    """Decode the bytes from an index on with fastavro.

    fastavro accepts numbers that the log does not allow, so a message of this schema must be checked first.

    Args:
        schema: the schema, parsed by fastavro.

    Raises:
        LogDamaged: the bytes contradict the schema.
    """
    stream = io.BytesIO(value)
    stream.seek(start)
    try:
        found: Any = schemaless_reader(stream, schema, None)
    except (EOFError, ValueError, TypeError, IndexError, KeyError, StopIteration, OverflowError) as error:
        raise damaged(error, at=at) from error
    fields: dict[str, Any] = found
    return fields


@cache
def _parsed(*, load: bool) -> Any:
    return parse_schema(load_schema() if load else fragment_schema())


@cache
def _parsed_change() -> Any:
    return parse_schema(change_schema(load_schema()))

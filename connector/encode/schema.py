"""The fragment's Avro schema, and the ten bytes that every message begins with.

Avro single-object encoding (Avro specification, "Single object encoding"): the marker C3 01, the schema's
CRC-64-AVRO fingerprint as eight bytes little-endian, then the value.
"""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

from fastavro.schema import fingerprint, to_parsing_canonical_form

MARKER: Final = b"\xc3\x01"
SCHEMA_FILE: Final = "fragment.avsc"


@cache
def fragment_schema() -> dict[str, Any]:
    """The schema of every message of the event topic.

    Returns:
        `schemas/fragment.avsc`, parsed as JSON: beside the package in a checkout, inside it in a wheel.
    """
    packaged = files("connector") / "schemas" / SCHEMA_FILE
    checkout = Path(__file__).parents[2] / "schemas" / SCHEMA_FILE
    text = packaged.read_text("utf-8") if packaged.is_file() else checkout.read_text("utf-8")
    schema: dict[str, Any] = json.loads(text)
    return schema


def change_schema(schema: dict[str, Any]) -> Any:
    """Of one item of a fragment's `changes`: what a change that came in parts is read with.

    Args:
        schema: of fragments, as parsed JSON.
    """
    return next(field["type"]["items"] for field in schema["fields"] if field["name"] == "changes")


@cache
def single_object_header() -> bytes:
    """The ten bytes before the Avro body: marker and the fingerprint of the schema's parsing canonical form."""
    canonical = to_parsing_canonical_form(fragment_schema())
    return MARKER + bytes.fromhex(fingerprint(canonical, "CRC-64-AVRO"))

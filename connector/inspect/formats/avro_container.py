"""Writes fragments as an Avro object container file (Avro specification, "Object Container Files").

The fragments' bytes are copied, not decoded and encoded again, so their CRC-32 holds in the file, too. The file's
schema is that of loads, which reads the other messages as well: it has more symbols in two enums, behind theirs.
"""

from __future__ import annotations

import hashlib
import json
from typing import BinaryIO, Final

from connector.log.format import avro
from connector.schema import load_schema

MAGIC: Final = b"Obj\x01"
BLOCK_BYTES: Final = 1 << 16


class Container:
    """Writes a container file. The sync marker is derived from the schema, so the same log makes the same file.

    Args:
        out: receives the file.
    """

    def __init__(self, out: BinaryIO) -> None:
        self._out = out
        self._block: list[bytes] = []
        self._size = 0
        schema = json.dumps(load_schema()).encode()
        self._sync = hashlib.sha256(schema).digest()[:16]
        facts = ((b"avro.schema", schema), (b"avro.codec", b"null"))
        out.write(
            MAGIC + avro.long(len(facts)) + b"".join(avro.block(name) + avro.block(value) for name, value in facts)
        )
        out.write(avro.long(0) + self._sync)

    def add(self, body: bytes) -> None:
        """Add a fragment's Avro bytes."""
        self._block.append(body)
        self._size += len(body)
        if self._size >= BLOCK_BYTES:
            self.flush()

    def flush(self) -> None:
        """End the current block."""
        if self._block:
            self._out.write(avro.long(len(self._block)) + avro.long(self._size))
            self._out.writelines(self._block)
            self._out.write(self._sync)
        self._block, self._size = [], 0

"""Writes binary logs of old versions byte by byte, as MySQL's format documentation describes them.

No server that runs here writes them: 3.23 wrote version 1, 4.0 and 4.1 version 3, 5.0 and early 5.1 version 4 with
other lengths of the fixed parts.
"""

from __future__ import annotations

import struct

TIME = 1_000_000_000


class OldLog:
    """Appends events of version 1 or 3; `data` is the file.

    Args:
        version: 1: headers of 13 bytes; 3: of 19, with the place where the event begins.
    """

    def __init__(self, version: int = 3, server: bytes = b"4.1.22-log") -> None:
        self.data = b"\xfebin"
        self.version = version
        self.event(1, struct.pack("<H50sI", version, server, 0))

    def event(self, kind: int, body: bytes, *, flags: int = 0, place: int | None = None) -> int:
        """Returns where the event begins."""
        at = len(self.data)
        size = (13 if self.version == 1 else 19) + len(body)
        self.data += struct.pack("<IBII", TIME, kind, 1, size)
        if self.version != 1:
            self.data += struct.pack("<IH", at if place is None else place, flags)
        self.data += body
        return at

    def query(self, sql: bytes, *, schema: bytes = b"s", thread: int = 7, place: int | None = None) -> int:
        head = struct.pack("<IIBH", thread, 0, len(schema), 0)
        return self.event(2, head + schema + b"\0" + sql, place=place)


def clauses(*texts: bytes) -> bytes:
    return b"".join(bytes([len(text)]) + text for text in texts)


def load_body(code: int, *, flags: int = 0x04, block: bytes = b"", file_id: int = 3) -> bytes:
    """LOAD, NEW_LOAD or CREATE_FILE: 2 lines to skip, the columns a and b`c of s.t from /data/x'y.txt."""
    head = struct.pack("<IIIBBI", 7, 1, 2, 1, 1, 2)
    if code == 8:
        head += struct.pack("<I", file_id)
    ex = clauses(b"||", b'"', b"\n", b">", b"\\") + bytes([flags])
    if code == 6:  # one character each; nothing begins a line
        ex = b',"\n\0\\' + bytes([flags, 0x08])
    return head + ex + bytes([1, 3]) + b"a\0b`c\0" + b"t\0s\0" + b"/data/x'y.txt\0" + block


def described(lengths: dict[int, int], *, types: int = 27, header: int = 19, server: bytes = b"5.0.96-log") -> bytes:
    """A file of version 4 without checksums, with the given format description.

    Args:
        lengths: of the fixed parts, by type, where they are not those that 5.0 and 5.1 have.
    """
    usual = {
        1: 56,
        2: 13,
        4: 8,
        6: 18,
        8: 4,
        9: 4,
        10: 4,
        11: 4,
        12: 18,
        15: 84,
        17: 4,
        18: 26,
        19: 8,
        23: 8,
        24: 8,
        25: 8,
    }
    fixed = bytes((usual | lengths).get(kind, 0) for kind in range(1, types + 1))
    body = struct.pack("<H50sIB", 4, server, 0, header) + fixed
    return b"\xfebin" + event(4, 15, body)


def event(
    at: int,
    kind: int,
    body: bytes,
    *,
    extra: bytes = b"",
    flags: int = 0,
    log_pos: int | None = None,
    server_id: int = 1,
) -> bytes:
    """An event of version 4 without checksum that stands at a place; `extra` are bytes that its header has more."""
    size = 19 + len(extra) + len(body)
    end = at + size if log_pos is None else log_pos
    return struct.pack("<IBIIIH", TIME, kind, server_id, size, end, flags) + extra + body

"""HEARTBEAT events: the source is there, and has read its log so far."""

from __future__ import annotations

from connector.errors import CorruptBinlog
from connector.mysql.fields import Fields

END, FILE, OFFSET = 0, 1, 2
LARGEST = 1 << 62  # no place is so far


def heartbeat(body: bytes, second: bool, log_pos: int, offset: int, *, mariadb: bool = False) -> tuple[str, int]:
    """File and offset.

    Args:
        body: the name (first version), or a list of type, length, value.
        second: which version.
        log_pos: of the event's header: the place modulo 2^32, all that the first version has.
        offset: where we are: not behind the heartbeat.
        mariadb: who sends it: its first version has, beyond 4 GiB, the place (8 bytes) before the name.

    Raises:
        CorruptBinlog: it tells no place, or one that cannot be.
    """
    if mariadb and log_pos == 0:
        fields = Fields(body)
        place = fields.number(8)
        return _checked(fields.rest().decode(errors="replace"), place)
    if not second:
        place = offset & ~0xFFFFFFFF | log_pos
        return body.decode(errors="replace"), place if place >= offset else place + (1 << 32)
    file, place = "", -1
    fields = Fields(body)
    while fields.left:
        kind = fields.packed()
        if kind == END:
            break
        value = fields.packed_text()
        if kind == FILE:
            file = value.decode(errors="replace")
        elif kind == OFFSET:
            place = Fields(value).packed()
    return _checked(file, place)


def _checked(file: str, place: int) -> tuple[str, int]:
    if not file or not 0 <= place < LARGEST:
        raise CorruptBinlog("a heartbeat without a place")
    return file, place

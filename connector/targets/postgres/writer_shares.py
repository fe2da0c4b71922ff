"""Divides the net changes of a table among several writers, each key's to one of them."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from typing import Final
from zlib import crc32

from connector.ddl.syntax.type_names import FLOATS
from connector.log.compact.net_changes import Images, NetChanges, Partial
from connector.log.transaction.layout import TableLayout
from connector.targets.postgres.divide import HASH_VERSION, divided
from connector.targets.types import parse

__all__ = ["HASH_VERSION", "divide", "divisible"]

_NONE: Final = Images(b"", array("Q"))


def divisible(layout: TableLayout) -> bool:
    """False for a table without a key, or whose keys the target may take for equal when they are not: 0.0 and -0.0."""
    return bool(layout.key) and not any(parse(layout.columns[index].type).base in FLOATS for index in layout.key)


def divide(net: NetChanges, count: int) -> Iterator[NetChanges | None]:
    """Yield the share of each writer; None where it has none.

    Args:
        net: changes of a table with a key, no moved or added partial rows among them.
        count: number of writers.
    """
    layout = net.layout
    seed = crc32(str(layout.name).encode())  # or the first keys of all small tables would go to the same writer
    whole = _places(layout.key, len(layout.columns))
    parts = [_shares(images, whole, count, seed) for images in (net.inserts, net.updates, net.deletes)]
    changed = [_NONE] * count
    if net.partial is not None:
        old = range(len(layout.columns) + 1, len(layout.columns) + 1 + len(layout.key))
        changed = _shares(net.partial.changed, _places(old, old.stop), count, seed)
    for inserts, updates, deletes, partial in zip(*parts, changed, strict=True):
        rows = len(inserts) + len(updates) + len(deletes) + len(partial)
        rest = Partial(partial, _NONE, _NONE) if len(partial) else None
        if not rows:
            yield None
            continue
        yield NetChanges(layout, inserts, updates, deletes, rows, rest, net.again, net.replaces, net.history_of)


def _places(key: Sequence[int], columns: int) -> bytes:
    """For each column its place in the key from 1 on, or 0."""
    places = bytearray(columns)
    for place, column in enumerate(key, 1):
        places[column] = place
    return bytes(places)


def _shares(images: Images, key: bytes, count: int, seed: int) -> list[Images]:
    if not len(images):
        return [_NONE] * count
    return [Images(data, ends) for data, ends in divided(images.data, images.ends, key, count, seed)]

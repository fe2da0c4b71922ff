"""Two streams of rows, in any order, compared as multisets in memory that does not grow with them.

First every row is counted into one of `BUCKETS` by its key, and its digest added to the bucket's sum: equal counts
and sums mean equal multisets (two different ones agree with a chance of 2^-128). Only when some buckets differ the
streams are read again, and the rows of a few of those buckets are kept and compared one by one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from operator import itemgetter
from typing import Any, Final
from zlib import crc32

from connector.verify.report import Difference, What
from connector.verify.values import Row, shown

BUCKETS: Final = 1 << 14
EXAMINED: Final = 256
NAMED: Final = 500
_MODULUS: Final = 1 << 128

Rows = Callable[[], Iterable[Row]]


@dataclass(slots=True)
class Sums:
    """What is kept of a stream: a count and a sum of digests per bucket."""

    counts: list[int] = field(default_factory=lambda: [0] * BUCKETS)
    digests: list[int] = field(default_factory=lambda: [0] * BUCKETS)


def compare(source: Rows, target: Rows, names: Sequence[str], key: Sequence[int]) -> tuple[int, tuple[Difference, ...]]:
    """Compare two tables.

    Args:
        source, target: begin to read the rows anew, all from one view each.
        names: of the columns.
        key: indexes of the columns that tell rows apart; empty: the whole row does.

    Returns:
        The number of the source's rows, and the first differences.
    """
    key_of = _key(key)
    here, there = _sums(source(), key_of), _sums(target(), key_of)
    differing = [
        bucket
        for bucket in range(BUCKETS)
        if (here.counts[bucket], here.digests[bucket]) != (there.counts[bucket], there.digests[bucket])
    ]
    rows = sum(here.counts)
    if not differing:
        return rows, ()
    examined = frozenset(differing[:EXAMINED])
    found = _examine(_kept(source(), key_of, examined), _kept(target(), key_of, examined), names, key)
    if len(differing) > EXAMINED or len(found) > NAMED:
        total = f"and more: {rows} rows on the source, {sum(there.counts)} on the target"
        found = [*found[:NAMED], Difference(What.MORE, detail=total)]
    return rows, tuple(found)


def _key(key: Sequence[int]) -> Callable[[Row], Any]:
    return itemgetter(*key) if key else lambda row: row


def _sums(rows: Iterable[Row], key_of: Callable[[Row], Any]) -> Sums:
    sums = Sums()
    counts, digests = sums.counts, sums.digests
    for row in rows:
        bucket = crc32(repr(key_of(row)).encode()) % BUCKETS
        counts[bucket] += 1
        digest = blake2b(repr(row).encode(), digest_size=16).digest()
        digests[bucket] = (digests[bucket] + int.from_bytes(digest, "big")) % _MODULUS
    return sums


def _kept(rows: Iterable[Row], key_of: Callable[[Row], Any], buckets: frozenset[int]) -> dict[Any, Counter[Row]]:
    kept: dict[Any, Counter[Row]] = {}
    for row in rows:
        row_key = key_of(row)
        if crc32(repr(row_key).encode()) % BUCKETS in buckets:
            kept.setdefault(row_key, Counter())[row] += 1
    return kept


def _examine(
    source: dict[Any, Counter[Row]], target: dict[Any, Counter[Row]], names: Sequence[str], key: Sequence[int]
) -> list[Difference]:
    differences = []
    for row_key in sorted(source.keys() | target.keys(), key=repr):
        here, there = source.get(row_key, Counter()), target.get(row_key, Counter())
        if here == there:
            continue
        example = next(iter(here or there))
        row = ", ".join(f"{names[index]}={shown(example[index])}" for index in key or range(len(names)))
        if not there:
            differences.append(Difference(What.MISSING, row))
        elif not here:
            differences.append(Difference(What.EXTRA, row))
        elif here.keys() == there.keys():
            counts = f"({here.total()} on the source, {there.total()} on the target)"
            differences.append(Difference(What.COUNT, row, counts))
        else:
            differences.append(Difference(What.CHANGED, row, _columns(here, there, names)))
    return differences


def _columns(here: Counter[Row], there: Counter[Row], names: Sequence[str]) -> str:
    ours, theirs = next(iter(here - there or here)), next(iter(there - here or there))
    changed = [
        f"{name}: {shown(a)} on the source, {shown(b)} on the target"
        for name, a, b in zip(names, ours, theirs, strict=True)
        if a != b
    ]
    return f"({'; '.join(changed)})"

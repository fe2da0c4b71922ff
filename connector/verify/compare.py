"""Compares two streams of rows, in any order, as multisets in memory that does not grow with them.

First every row is counted into one of `BUCKETS` by its key, and its digest added to the bucket's sum: equal counts
and sums mean equal multisets (different ones agree with a probability of 2^-128). If buckets differ, the streams are
read again, once or several times, and the rows of some of these buckets are kept and compared one by one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from operator import itemgetter
from typing import Any, Final
from zlib import crc32

from connector.verify.report import Difference, DifferenceKind
from connector.verify.values import Row, shown

BUCKETS: Final = 1 << 14
EXAMINED: Final = 256
NAMED: Final = 500
KEPT_ROWS: Final = 1 << 20  # of a table that are kept at a time, unless `EXAMINED` buckets have more
_MODULUS: Final = 1 << 128

Rows = Callable[[], Iterable[Row]]


@dataclass(slots=True)
class Sums:
    """The count and the sum of digests of each bucket of a stream."""

    counts: list[int] = field(default_factory=lambda: [0] * BUCKETS)
    digests: list[int] = field(default_factory=lambda: [0] * BUCKETS)


def compare(
    source: Rows, target: Rows, names: Sequence[str], key: Sequence[int], named: int = NAMED
) -> tuple[int, tuple[Difference, ...]]:
    """Compare two tables.

    Args:
        source, target: read the rows from the start, from one view each time.
        names: the names of the columns.
        key: indexes of the key's columns; empty: the whole row is the key.
        named: the most differences that are named.

    Returns:
        The number of rows of the source, and the first differences.
    """
    key_of = _key(key)
    of_source, of_target = _sums(source(), key_of), _sums(target(), key_of)
    differing = [
        bucket
        for bucket in range(BUCKETS)
        if (of_source.counts[bucket], of_source.digests[bucket])
        != (of_target.counts[bucket], of_target.digests[bucket])
    ]
    rows = sum(of_source.counts)
    if not differing:
        return rows, ()
    of_both = max(rows, sum(of_target.counts), 1)
    at_once = max(EXAMINED, KEPT_ROWS * BUCKETS // of_both)
    found: list[Difference] = []
    while differing and len(found) <= named:
        examined, differing = frozenset(differing[:at_once]), differing[at_once:]
        found += _examine(_kept(source(), key_of, examined), _kept(target(), key_of, examined), names, key)
    if differing or len(found) > named:
        total = f"and more: {rows} rows on the source, {sum(of_target.counts)} on the target"
        found = [*found[:named], Difference(DifferenceKind.MORE, detail=total)]
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
        of_source, of_target = source.get(row_key, Counter()), target.get(row_key, Counter())
        if of_source == of_target:
            continue
        example = next(iter(of_source or of_target))
        row = ", ".join(f"{names[index]}={shown(example[index])}" for index in key or range(len(names)))
        values = tuple(example[index] for index in key)
        if not of_target:
            differences.append(Difference(DifferenceKind.MISSING, row, key=values))
        elif not of_source:
            differences.append(Difference(DifferenceKind.EXTRA, row, key=values))
        elif of_source.keys() == of_target.keys():
            counts = f"({of_source.total()} on the source, {of_target.total()} on the target)"
            differences.append(Difference(DifferenceKind.COUNT, row, counts))
        else:
            changed = _columns(of_source, of_target, names)
            detail = f"({'; '.join(changed)})"
            differences.append(Difference(DifferenceKind.CHANGED, row, detail, values, frozenset(changed)))
    return differences


def _columns(of_source: Counter[Row], of_target: Counter[Row], names: Sequence[str]) -> list[str]:
    source = next(iter(of_source - of_target or of_source))
    target = next(iter(of_target - of_source or of_target))
    return [
        f"{name}: {shown(a)} on the source, {shown(b)} on the target"
        for name, a, b in zip(names, source, target, strict=True)
        if a != b
    ]

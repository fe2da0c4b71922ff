"""MySQL's GTID sets: `uuid:1-5:7`, with tags since 8.3 `uuid:1-5:tag:1-3`.

The text form is described in MySQL's manual, "GTID Sets". Numbers go from 1 to 2**63 - 2.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from connector.errors import Unsupported

_UUID: Final = re.compile(r"[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}")
_TAG: Final = re.compile(r"[a-z_][a-z0-9_]{0,31}")
_SPAN: Final = re.compile(r"(\d{1,19})(?:-(\d{1,19}))?")
_LARGEST: Final = 2**63 - 2


class Span(NamedTuple):
    """Numbers from `first` to `last`, both included."""

    first: int
    last: int


class GtidSet:
    """A set of GTIDs. It can be changed.

    The numbers of a source (`uuid` or `uuid:tag`) are kept as ascending, disjoint spans that do not touch. `add` of a
    number in the last span or directly after it, the usual case in a server's log, only extends that span.
    """

    __slots__ = ("_sources",)

    def __init__(self) -> None:
        self._sources: dict[str, list[Span]] = {}

    @classmethod
    def parse(cls, text: str) -> GtidSet:
        """Read MySQL's text form. White space and upper case are allowed; the empty text is the empty set.

        Raises:
            Unsupported: the text is not a GTID set of MySQL.
        """
        result = cls()
        for part in "".join(text.split()).lower().split(","):
            if not part:
                continue
            uuid, *rest = part.split(":")
            source = _source(uuid, text)
            if not rest:
                raise _not_a_set(text)
            tagged = False
            for word in rest:
                if span := _SPAN.fullmatch(word):
                    first = int(span[1])
                    last = int(span[2] or first)
                    if not 1 <= first <= _LARGEST or last > _LARGEST:
                        raise _not_a_set(text)
                    if first <= last:  # MySQL reads 5-3 as an empty span
                        result._insert(source, Span(first, last))
                    tagged = False
                elif _TAG.fullmatch(word) and not tagged:
                    source = f"{_source(uuid, text)}:{word}"
                    tagged = True
                else:
                    raise _not_a_set(text)
            if tagged:
                raise _not_a_set(text)
        return result

    def add(self, gtid: str, count: int = 1) -> None:
        """Add a GTID, or `count` consecutive GTIDs that begin with it.

        Raises:
            Unsupported: not a GTID of MySQL.
        """
        source, _, number = gtid.rpartition(":")
        spans = self._sources.get(source)
        if spans is not None and number.isascii() and number.isdecimal():
            first, last = spans[-1]
            if first <= int(number) <= min(last + 1, _LARGEST + 1 - count):
                spans[-1] = Span(first, max(last, int(number) + count - 1))
                return
        source, (begin, _) = _one(gtid)
        if begin > _LARGEST + 1 - count:
            raise Unsupported("Not GTIDs of MySQL", first=gtid, count=count)
        self._insert(source, Span(begin, begin + count - 1))

    def remove(self, gtid: str) -> None:
        """Remove a GTID, if the set contains it.

        Raises:
            Unsupported: not a GTID of MySQL.
        """
        source, (number, _) = _one(gtid)
        kept = _without(self._sources.get(source, []), [Span(number, number)])
        if kept:
            self._sources[source] = kept
        else:
            self._sources.pop(source, None)

    def contains(self, gtid: str) -> bool:
        """Return whether the set contains a GTID.

        Raises:
            Unsupported: not a GTID of MySQL.
        """
        source, (number, _) = _one(gtid)
        spans = self._sources.get(source, [])
        at = bisect_right(spans, number, key=_first) - 1
        return at >= 0 and number <= spans[at].last

    __contains__ = contains

    def issubset(self, other: GtidSet) -> bool:
        """Return whether the other set contains every GTID of this one."""
        return not self - other

    def copy(self) -> GtidSet:
        """Return a copy that can be changed independently."""
        return self._of((source, list(spans)) for source, spans in self._sources.items())

    def count(self) -> int:
        """The number of GTIDs."""
        return sum(last - first + 1 for spans in self._sources.values() for first, last in spans)

    def __or__(self, other: GtidSet) -> GtidSet:
        result = self.copy()
        for source, spans in other._sources.items():
            for span in spans:
                result._insert(source, span)
        return result

    def __sub__(self, other: GtidSet) -> GtidSet:
        return self._of(
            (source, _without(spans, other._sources.get(source, []))) for source, spans in self._sources.items()
        )

    def __and__(self, other: GtidSet) -> GtidSet:
        return self - (self - other)

    def __bool__(self) -> bool:
        return bool(self._sources)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, GtidSet) and self._sources == other._sources

    __hash__ = None  # type: ignore[assignment]  # it can be changed

    def __iter__(self) -> Iterator[tuple[str, Span]]:
        """Sources (`uuid` or `uuid:tag`) and their spans, in the order of the text form."""
        for source in sorted(self._sources):
            for span in self._sources[source]:
                yield source, span

    def __str__(self) -> str:
        """MySQL's form in one line: sources in order, tagged numbers of a source after its untagged ones."""
        parts: dict[str, list[str]] = {}
        for source in sorted(self._sources):
            uuid, _, tag = source.partition(":")
            words = parts.setdefault(uuid, [uuid])
            if tag:
                words.append(tag)
            words += [f"{first}-{last}" if first < last else str(first) for first, last in self._sources[source]]
        return ",".join(":".join(words) for words in parts.values())

    def __repr__(self) -> str:
        return f"GtidSet({str(self)!r})"

    @classmethod
    def _of(cls, sources: Iterable[tuple[str, list[Span]]]) -> GtidSet:
        result = cls()
        result._sources = {source: spans for source, spans in sources if spans}
        return result

    def _insert(self, source: str, span: Span) -> None:
        spans = self._sources.setdefault(source, [])
        first, last = span
        low = bisect_right(spans, first, key=_first)
        if low and spans[low - 1].last + 1 >= first:
            low -= 1
            first, last = spans[low].first, max(last, spans[low].last)
        high = bisect_right(spans, last + 1, key=_first)
        if high > low:
            last = max(last, spans[high - 1].last)
        spans[low:high] = [Span(first, last)]


def _first(span: Span) -> int:
    return span.first


def _without(spans: list[Span], gone: list[Span]) -> list[Span]:
    """The numbers of `spans` that are not in `gone`, found in one pass over both."""
    result: list[Span] = []
    at = 0
    for first, last in spans:
        low = first
        while at < len(gone) and gone[at].last < low:
            at += 1
        cut = at
        while cut < len(gone) and gone[cut].first <= last:
            if low < gone[cut].first:
                result.append(Span(low, gone[cut].first - 1))
            low = gone[cut].last + 1
            cut += 1
        if low <= last:
            result.append(Span(low, last))
    return result


def _one(gtid: str) -> tuple[str, Span]:
    uuid, *rest = gtid.strip().lower().split(":")
    *tag, number = rest or [""]
    if len(tag) > 1 or not number.isascii() or not number.isdecimal() or not 1 <= int(number) <= _LARGEST:
        raise Unsupported("Not a GTID of MySQL", gtid=gtid)
    source = _source(uuid, gtid)
    if tag:
        if not _TAG.fullmatch(tag[0]):
            raise Unsupported("Not a GTID of MySQL", gtid=gtid)
        source = f"{source}:{tag[0]}"
    return source, Span(int(number), int(number))


def _source(uuid: str, text: str) -> str:
    if not _UUID.fullmatch(uuid):
        raise _not_a_set(text)
    digits = uuid.replace("-", "")
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


def _not_a_set(text: str) -> Unsupported:
    return Unsupported("Not a GTID set of MySQL", hint="uuid:1-5:7[:tag:1-3][,uuid:…]", text=text[:200])

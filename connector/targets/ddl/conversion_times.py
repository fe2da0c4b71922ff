"""Converts a literal that is the DEFAULT of a DATE, TIME, DATETIME or TIMESTAMP, as MySQL does."""

from __future__ import annotations

import re
from calendar import monthrange
from datetime import UTC, datetime, timedelta
from decimal import Decimal

from connector.ddl.syntax.ast_column import Now
from connector.log.transaction.layout import Column
from connector.targets.ddl.literals import Bytes, LiteralValue, Number, Text
from connector.targets.ddl.session import Session, zone_of
from connector.targets.types import fraction, parse

_CLOCK = r"(?:[ T](\d{1,2})(?::(\d{1,2})(?::(\d{1,2})(?:\.(\d{0,6}))?)?)?)?"
_WITH_SIGNS = re.compile(rf"(\d{{4}}|\d\d)[-/.](\d{{1,2}})[-/.](\d{{1,2}}){_CLOCK}")
_DIGITS = re.compile(r"(\d{4}|\d\d)(\d\d)(\d\d)(?:(\d\d)(\d\d)(\d\d)(?:\.(\d{1,6}))?)?")
_TIME = re.compile(r"(-)?(?:(\d{1,2}) )?(\d{1,3}):(\d{1,2})(?::(\d{1,2})(?:\.(\d{0,6}))?)?")
_TIME_DIGITS = re.compile(r"(-)?()(\d{0,3}?)(\d{0,2}?)(\d{1,2})(?:\.(\d{1,6}))?")
_ZERO = (0, 0, 0, 0, 0, 0)
_LAST = (23, 59, 59)

Fields = tuple[int, int, int, int, int, int]


def now(column: Column, default: Now, session: Session) -> str | None:
    """CURRENT_TIMESTAMP as a value of a column; None if the session's time zone is not known."""
    base = parse(column.type).base
    zone = UTC if base == "timestamp" and not default.date else zone_of(session.zone)
    if zone is None or base not in ("date", "datetime", "timestamp") or (base == "timestamp" and default.date):
        return None
    at = (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=session.micros)).astimezone(zone)
    if base == "date":
        return _shown(at, 0)[:10]
    places = fraction(column)
    if default.digits > places or (session.mariadb and default.digits < places):
        return None
    unit = 10 ** (6 - default.digits)
    at = at.replace(microsecond=at.microsecond // unit * unit)
    if default.date:
        at = at.replace(hour=0, minute=0, second=0, microsecond=0)
    return _shown(at, places)


def date(found: LiteralValue, session: Session) -> str | None:
    """A date; None if not known. MySQL rounds the fraction of the time first, MariaDB never does."""
    fields, digits = _read(found, ("", "DATE", "TIMESTAMP"))
    if fields is None or not _valid(fields, session):
        return None
    _, more = ("", 0) if session.mariadb else _rounded(digits, 0, session)
    if more and fields[3:] == _LAST:  # the next day
        if not (isinstance(found, Text) and not found.type and _in_calendar(fields)):
            return None
        try:
            return _shown(datetime(*fields) + timedelta(seconds=1), 0)[:10]
        except OverflowError:
            return None
    return "{:04}-{:02}-{:02}".format(*fields[:3])


def timestamp(column: Column, found: LiteralValue, session: Session) -> str | None:
    """A date with a time, in UTC for a TIMESTAMP; None if not known."""
    fields, digits = _read(found, ("", "DATE", "TIMESTAMP"))
    if fields is None or not _valid(fields, session):
        return None
    places = fraction(column)
    kept, more = _rounded(digits, places, session)
    if 0 in fields[1:3] or fields[0] == 0 or not _in_calendar(fields):
        if more or (parse(column.type).base == "timestamp" and fields != _ZERO):
            return None
        return "{:04}-{:02}-{:02} {:02}:{:02}:{:02}".format(*fields) + (f".{kept}" if places else "")
    try:
        at = datetime(*fields) + timedelta(seconds=more)
    except OverflowError:
        return None
    if parse(column.type).base == "timestamp":
        utc = _in_utc(at, session)
        if utc is None:
            return None
        at = utc
    return f"{_shown(at, 0)}.{kept}" if places else _shown(at, 0)


def time(column: Column, found: LiteralValue, session: Session) -> str | None:
    """A time; None if not known."""
    text = _text_of(found, ("", "TIME"))
    match = text and (_TIME.fullmatch(text) or _TIME_DIGITS.fullmatch(text))
    if not match:
        return None
    days, hours, minutes, seconds = (int(part or 0) for part in match.groups()[1:5])
    places = fraction(column)
    kept, more = _rounded(match[6] or "", places, session)
    if minutes > 59 or seconds > 59 or (match[2] and hours > 23):
        return None
    whole = ((days * 24 + hours) * 60 + minutes) * 60 + seconds + more
    if whole > 838 * 3600 + 59 * 60 + 59 or (whole == 838 * 3600 + 59 * 60 + 59 and int(kept or 0)):
        return None
    sign = "-" if match[1] and (whole or int(kept or 0)) else ""
    return f"{sign}{whole // 3600:02}:{whole // 60 % 60:02}:{whole % 60:02}" + (f".{kept}" if places else "")


def _text_of(found: LiteralValue, types: tuple[str, ...]) -> str | None:
    """The characters of a string, or the digits of a number."""
    if isinstance(found, Number):
        return f"{found.value:f}" if isinstance(found.value, Decimal) else None
    if isinstance(found, Bytes):
        return None
    return found.text.strip(" ") if found.type in types else None


def _read(found: LiteralValue, types: tuple[str, ...]) -> tuple[Fields | None, str]:
    """The fields from year to second, and the digits of the fraction."""
    text = _text_of(found, types)
    if text is None:
        return None, ""
    if text == "0":
        return _ZERO, ""
    match = _WITH_SIGNS.fullmatch(text) or (
        _DIGITS.fullmatch(text) if len(text.partition(".")[0]) in (6, 8, 12, 14) else None
    )
    if match is None:
        return None, ""
    year, month, day, hour, minute, second = (int(part or 0) for part in match.groups()[:6])
    if len(match[1]) == 2 and (year, month, day) != (0, 0, 0):
        year += 2000 if year < 70 else 1900
    return (year, month, day, hour, minute, second), match[7] or ""


def _valid(fields: Fields, session: Session) -> bool:
    """True if a server accepts it. A date with zeros passes NO_ZERO_DATE: the server has accepted the statement."""
    _, month, day, hour, minute, second = fields
    if month > 12 or day > 31 or hour > 23 or minute > 59 or second > 59:
        return False
    if 0 in (month, day):
        return fields[:3] == _ZERO[:3] or "NO_ZERO_IN_DATE" not in session.modes
    return _in_calendar(fields) or "ALLOW_INVALID_DATES" in session.modes


def _in_calendar(fields: Fields) -> bool:
    year, month, day = fields[:3]
    return bool(year and month and day) and day <= monthrange(year, month)[1]


def _rounded(digits: str, places: int, session: Session) -> tuple[str, int]:
    """The fraction with this number of places, and the carry in seconds."""
    digits = digits.ljust(places, "0")
    kept, rest = digits[:places], digits[places:]
    cuts = (
        "TIME_ROUND_FRACTIONAL" not in session.modes if session.mariadb else "TIME_TRUNCATE_FRACTIONAL" in session.modes
    )
    if cuts or rest < "5":
        return kept, 0
    number = int(kept or 0) + 1
    return (str(number).rjust(places, "0"), 0) if number < 10**places else ("0" * places, 1)


def _in_utc(at: datetime, session: Session) -> datetime | None:
    """A time of the session's zone in UTC; None if the local time does not exist or is ambiguous."""
    zone = zone_of(session.zone)
    if zone is None:
        return None
    first, second = (at.replace(tzinfo=zone, fold=fold).astimezone(UTC) for fold in (0, 1))
    return first.replace(tzinfo=None) if first == second else None


def _shown(at: datetime, places: int) -> str:
    text = f"{at.year:04}-{at:%m-%d %H:%M:%S}"
    return f"{text}.{at.microsecond:06d}"[: len(text) + places + 1] if places else text

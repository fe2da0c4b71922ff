"""Control characters in names and values cannot forge a line of a log, a listing or an error."""

from __future__ import annotations

import json
import logging
from array import array

import pytest

from connector.errors import ConfigError, escaped
from connector.inspect.formats.tungsten import rows_head, shown, statements, value_head
from connector.inspect.formats.tungsten_rows import TungstenRows
from connector.logs import REPEATED, JsonFormatter, Repetitions, TextFormatter
from connector.status.report import _line

EVIL = "t\n2026-01-01T00:00:00.000Z ERROR forged \x1b[2J\x9b"
HARMLESS = "t\\n2026-01-01T00:00:00.000Z ERROR forged \\x1b[2J\\x9b"


def record(text: str, created: float = 0.0, **fields: object) -> logging.LogRecord:
    made = logging.makeLogRecord({"name": "connector.x", "msg": text, "levelname": "INFO", "created": created})
    made.__dict__.update(fields)
    return made


def test_an_event_of_the_log_is_one_line_whatever_its_fields_hold() -> None:
    line = TextFormatter().format(record("read", table=EVIL, why=ConfigError("a", hint="b")))
    assert line.endswith(f"read table={HARMLESS} why=a\\n  hint: b")
    assert line.isprintable()


def test_ordinary_text_of_any_language_stays_as_it_is() -> None:
    line = TextFormatter().format(record("gelesen", table="Bücher.漢字 🙂"))
    assert line.endswith(" gelesen table=Bücher.漢字 🙂")
    assert escaped("Bücher 漢字 🙂") == "Bücher 漢字 🙂"


def test_error_keeps_its_line_ends_and_escapes_control_characters() -> None:
    assert str(ConfigError("a\x1b[2J", hint="b\x9b", name=EVIL)) == f"a\\x1b[2J [name={HARMLESS}]\n  hint: b\\x9b"


def test_name_with_a_line_end_stays_inside_its_message() -> None:
    told = str(ConfigError(f"there is no {EVIL}", hint=f"drop {EVIL}"))
    assert [line for line in told.splitlines() if not line.startswith("  ")] == ["there is no t"]
    assert len(told.splitlines()) == 4
    assert [line for line in told.splitlines() if line.startswith("  hint")] == ["  hint: drop t"]


def test_traceback_escapes_control_characters() -> None:
    failed = record("failed")
    failed.exc_info = (ValueError, ValueError(EVIL), None)
    first, *others = TextFormatter().format(failed).split("\n")
    assert first.endswith("failed")
    assert others
    assert all(line.startswith("  ") and line.isprintable() for line in others)


def test_an_event_as_json_is_ascii() -> None:
    name = "\x1b\x9b\u202e\u2028Bücher"
    line = JsonFormatter().format(record(name, table=name))
    assert line.isascii()
    assert line.isprintable()
    assert json.loads(line)["table"] == name


def test_names_in_a_listing_stay_on_their_line() -> None:
    assert list(rows_head(0, "insert", EVIL, EVIL))[2:] == [f" - SCHEMA = {HARMLESS}", f" - TABLE = {HARMLESS}"]
    assert statements(0, EVIL, "SELECT 1", {})[0][0] == f"- SCHEMA = {HARMLESS}"
    assert "\n" not in _line("inconsistentTables", (EVIL,))


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("two\nlines\tof Bücher\r\n", "two\nlines\tof Bücher\r\n"),
        ("a\x1b[2Jb\x9b\x7fc\rd\0", "a\\x1b[2Jb\\x9b\\x7fc\\rd\\x00"),
        ("no\u00a0break \u00c2\u00a0", "no\u00a0break \u00c2\u00a0"),
    ],
)
def test_values_keep_their_line_ends_and_escape_control_characters(value: str, text: str) -> None:
    assert shown(value) == text
    data = value.encode()
    row = bytes([0, 2, 2, 6]) + _varint(len(data)) + data + bytes([0])
    printer = TungstenRows(b"ROW ", [value_head("COL", "1: a").encode()], [b""], [False])
    printed = printer.printed(row, array("q", [len(row)]))
    assert printed == f"ROW 0\n  - COL(1: a) = {text}\n".encode()


def _varint(size: int) -> bytes:
    return bytes([size << 1]) if size < 64 else bytes([(size << 1 & 0x7F) | 0x80, size >> 6])


def test_repeated_librdkafka_message_is_logged_once_a_minute_with_its_count() -> None:
    lines = Repetitions()
    say = "FAIL [rdkafka#consumer-{}] [thrd:h:9092/bootstrap]: Connect failed (after {}ms in state CONNECT)"
    passed = [lines.filter(record(say.format(1, n), created=n / 10)) for n in range(100)]
    assert passed == [True] + [False] * 99
    later = record(say.format(2, 5), created=REPEATED)
    assert lines.filter(later)
    assert later.__dict__["repeated"] == 99
    assert all(lines.filter(record("applying", created=n)) for n in range(3))

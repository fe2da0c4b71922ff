"""What is printed to a terminal cannot control it; files and pipes get exact bytes."""

from __future__ import annotations

import io
import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest

from connector.inspect.terminal import TerminalOutput
from tests.support.binlog_writer import ColumnDef, LogWriter, image

HOSTILE = "\x1b]0;x\x07\x9b2J\x7f\r"


def escaped(*written: bytes) -> bytes:
    terminal = io.BytesIO()
    out = TerminalOutput(terminal)
    out.writelines(written)
    out.flush()
    return terminal.getvalue()


def test_control_characters_are_escaped_as_in_json_and_other_text_stays() -> None:
    assert escaped(b"a\tb\n\xc3\xa4\xf0\x9f\x98\x80") == b"a\tb\n\xc3\xa4\xf0\x9f\x98\x80"
    shown = "".join(f"\\u{ord(char):04x}" if not char.isprintable() else char for char in HOSTILE)
    assert escaped(HOSTILE.encode()) == shown.encode()


def test_characters_may_be_divided_among_writes_and_bytes_that_are_none_are_escaped() -> None:
    assert escaped(b"\xc2", b"\x9b", b"\xc3", b"\xa4", b"\x9b\n") == b"\\u009b\xc3\xa4\\x9b\n"


@pytest.fixture
def hostile_log(tmp_path: Path) -> Path:
    log = LogWriter()
    log.begin()
    log.table_map([ColumnDef(15, (400).to_bytes(2, "little"), collation=255)])
    text = HOSTILE.encode()
    log.rows(30, 1, image([len(text).to_bytes(2, "little") + text]))
    log.query(f"INSERT INTO `t{HOSTILE}` VALUES (1)".encode())
    log.commit()
    (tmp_path / "log.000001").write_bytes(log.data)
    return tmp_path / "log.000001"


@pytest.mark.parametrize("options", [["tungsten"], ["json"], ["sql"], ["text", "--events"], ["json", "--events"]])
def test_a_binary_log_shown_on_a_terminal_does_not_control_it(hostile_log: Path, options: list[str]) -> None:
    command = [sys.executable, "-m", "connector", "binlog", str(hostile_log), "--format", *options]
    ours, theirs = pty.openpty()
    try:
        process = subprocess.Popen(command, stdout=theirs)
        os.close(theirs)
        shown = b""
        while True:
            try:
                data = os.read(ours, 1 << 16)
            except OSError:  # its other end is closed
                break
            if not data:
                break
            shown += data
        assert process.wait(60) == 0
    finally:
        os.close(ours)
    text = shown.decode().replace("\r\n", "\n")  # the terminal's own line ends
    assert "INSERT INTO" in text
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f]", text)


def test_a_binary_log_written_to_a_pipe_is_exact(hostile_log: Path) -> None:
    command = [sys.executable, "-m", "connector", "binlog", str(hostile_log), "--format", "sql"]
    assert HOSTILE.encode() in subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout

"""Runs `thl binlog` in this process, and writes logs for it."""

from __future__ import annotations

import io
import json
import struct
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

from connector import cli
from tests.support.binlog_writer import ColumnDef, LogWriter, image

RECORDED = Path("tests/testdata/binlog/mysql-9.7.000001")
SERVER = "cb11a404-e581-11f1-bd7c-02fc00000001"  # that wrote it
INT = ColumnDef(3, unsigned=False)
UUID = bytes(range(16))


class Told(NamedTuple):
    """The exit code and output of a run."""

    code: int
    out: bytes
    err: str

    @property
    def objects(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.out.splitlines()]

    @property
    def rows(self) -> list[int]:
        """The first column of every row after its change."""
        return [
            next(iter(row["after"].values()))
            for found in self.objects
            for change in found["changes"]
            for row in change.get("rows", ())
        ]


def binlog(*arguments: object, stdin: bytes = b"") -> Told:
    out, err = io.TextIOWrapper(io.BytesIO()), io.StringIO()
    given = io.TextIOWrapper(io.BufferedReader(io.BytesIO(stdin)))  # type: ignore[arg-type]
    with redirect_stdout(out), redirect_stderr(err), patch.object(sys, "stdin", given):
        code = cli.run(["binlog", *map(str, arguments)])
    out.flush()
    return Told(code, out.buffer.getvalue(), err.getvalue())  # type: ignore[attr-defined]


def gtid(log: LogWriter, number: int, *, committed: int = 1_700_000_000_000_000) -> None:
    body = b"\1" + UUID + struct.pack("<Q", number) + b"\2" + struct.pack("<QQ", number - 1, number)
    log.event(33, body + committed.to_bytes(7, "little"))


def transactions(log: LogWriter, *numbers: int, gtids: bool = True) -> list[int]:
    """Writes a one-row transaction per number, committed in that second; returns their starts, and the end."""
    starts = []
    for number in numbers:
        starts.append(len(log.data))
        if gtids:
            gtid(log, number, committed=number * 1_000_000)
        log.begin()
        log.table_map([INT])
        log.rows(30, 1, image([struct.pack("<i", number)]))
        log.commit()
    return [*starts, len(log.data)]

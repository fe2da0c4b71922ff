"""A transaction of two million rows passes through a relay in memory that does not grow with it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from connector.log.transaction.position import TargetPosition
from connector.relay.folder import Owner
from tests.support.fragments import change, column, encoded, record, scanned, statement
from tests.support.relay import names, writer
from tests.unit.applier.test_core import history

ROWS = 5000  # of a fragment
COLUMNS = [column("id"), column("v", "longtext") | {"charset": "utf8mb4"}]
PEAK = "import resource\nprint(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
MORE = 60_000  # kilobytes: batches of other sizes, and what Python keeps

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]


def events(rows: int) -> Iterator[dict[str, Any]]:
    create = statement("CREATE TABLE orders (id INT NOT NULL PRIMARY KEY, v LONGTEXT)")
    yield record(0, [create], kind="ddl", shard="#UNKNOWN")
    for fragno in range(rows // ROWS):
        found = [(None, [n, "v"]) for n in range(fragno * ROWS, (fragno + 1) * ROWS)]
        last = fragno + 1 == rows // ROWS
        one = change("insert", found) | {"columns": COLUMNS}
        yield record(1, [one], fragno=fragno, last_frag=last, rows=(fragno + 1) * ROWS, last_barrier=0)


def write(folder: str, rows: int) -> None:
    relay = writer(Path(folder))
    relay.begin(TargetPosition(service="shop"), history([0], 1), None, Owner(1))
    for offset, one in enumerate(events(rows)):
        (message,) = scanned([encoded(one)], offset=offset)
        relay.add_message(message)
    relay.sync_soon()
    relay.sync()
    relay.close()


def peak(program: str, *words: str) -> int:
    """Run a program; return the most kilobytes that it had."""
    done = subprocess.run([sys.executable, "-c", f"{program}\n{PEAK}", *words], stdout=subprocess.PIPE, check=True)
    return int(done.stdout.splitlines()[-1])


def test_two_million_rows_are_written_listed_and_applied_in_bounded_memory(tmp_path: Path) -> None:
    thl = "import sys\nfrom connector.cli import run\nassert run(sys.argv[1:]) == 0"
    peaks: dict[str, list[int]] = {"write": [], "list": [], "apply": []}
    for rows in (1_000_000, 2_000_000):
        relay, target = str(tmp_path / f"relay{rows}"), f"target.url=sqlite:///{tmp_path / str(rows)}.db"
        peaks["write"].append(peak(f"from {__name__} import write\nwrite({relay!r}, {rows})"))
        assert len(names(Path(relay))) == 1
        peaks["list"].append(peak(thl, "list", "--sizes", "--relay", relay, "--set", "service=shop"))
        words = ("apply", "--relay", relay, "--set", "service=shop", "--set", target)
        peaks["apply"].append(peak(thl, *words, "--set", "apply.batch_bytes=4000000"))
    print(peaks)
    assert all(large < small + MORE for small, large in peaks.values()), peaks

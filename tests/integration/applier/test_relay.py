"""The relay as an archive, with `thl` as processes."""

from __future__ import annotations

import json
import os
import re
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.apply_process import REPOSITORY, THL, Scene
from tests.support.clock import PATIENCE
from tests.support.relay import names, seqnos
from tests.support.servers.environment import Broker

CLOSED = "127.0.0.1:1"  # no broker


def thl(folder: Path, *words: str, code: int = 0) -> subprocess.CompletedProcess[str]:
    """Run a command to its end."""
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    done = subprocess.run(
        [THL, *words], cwd=folder, env=environment, capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done


@pytest.fixture
def archive(kafka_broker: Broker, tmp_path: Path) -> Iterator[Scene]:
    """A SQLite target whose applier keeps a relay."""
    made = Scene(tmp_path, kafka_broker.bootstrap)
    keep_relay(made.file, tmp_path / "relay", retention=1e6, max_file_bytes=4000)
    yield made
    for process in made.processes:
        process.end()


def keep_relay(file: Path, folder: Path, **more: object) -> None:
    document = yaml.safe_load(file.read_text())
    document["relay"] = {"dir": str(folder), **more}
    file.write_text(yaml.safe_dump(document))


def without_file(text: str) -> list[str]:
    return [line for line in text.splitlines() if not line.startswith("- FILE = ")]


@pytest.mark.long
def test_the_archive_is_listed_as_the_topic_and_fills_another_target(archive: Scene, tmp_path: Path) -> None:
    archive.insert(40)
    archive.log.online()
    archive.insert(20, size=300)
    last = archive.insert(1, size=9000)
    assert archive.start(THL, "apply", "--to-seqno", str(last)).wait() == 0, archive.log_tail()
    folder = tmp_path / "relay"
    assert len(names(folder)) > 3
    on_kafka = thl(tmp_path, "list").stdout
    in_files = thl(tmp_path, "list", "--relay", str(folder)).stdout
    assert without_file(in_files) == without_file(on_kafka)
    assert set(re.findall(r"^- FILE = (.*)$", in_files, re.MULTILINE)) == set(names(folder))
    some = ("--from-seqno", "7", "--to-seqno", "50", "--specs")
    assert without_file(thl(tmp_path, "list", *some, "--relay", str(folder)).stdout) == without_file(
        thl(tmp_path, "list", *some).stdout
    )
    index = [
        json.loads(line)
        for line in thl(tmp_path, "index", "--relay", str(folder), "--format", "json").stdout.splitlines()
    ]
    assert [one["file"] for one in index] == names(folder)
    assert [one["firstSeqno"] for one in index[1:]] == [one["lastSeqno"] + 1 for one in index[:-1]]
    assert index[-1]["lastSeqno"] == last

    other = tmp_path / "other.db"
    words = (
        "--set",
        f"target.url=sqlite:///{other}",
        "--set",
        f"kafka.bootstrap={CLOSED}",
        "--relay",
        str(folder),
    )
    first = thl(tmp_path, "apply", *words, "--to-seqno", "30")
    assert "stopped after event 30" in first.stderr
    thl(tmp_path, "apply", *words)
    assert rows_of(other) == rows_of(archive.target)
    thl(tmp_path, "purge", "--to-seqno", str(index[1]["lastSeqno"]), "--yes")
    assert seqnos(folder) == list(range(index[2]["firstSeqno"], last + 1))
    empty = ("--set", f"target.url=sqlite:///{tmp_path / 'third.db'}", "--relay", str(folder))
    refused = thl(tmp_path, "apply", *empty, code=5)
    assert f"the relay lacks events 0..{index[2]['firstSeqno'] - 1}" in refused.stderr


def rows_of(file: Path) -> list[Any]:
    with sqlite3.connect(file) as db:
        (table,) = db.execute("SELECT target_name FROM thl_tables WHERE table_name = 'orders'").fetchone()
        found = db.execute(f'SELECT * FROM "{table}" ORDER BY id').fetchall()
        position = db.execute("SELECT log_id, seqno, epoch, event_id, gtid_set, offsets FROM thl_position").fetchall()
    return [*found, *position]


@pytest.mark.long
def test_killed_appliers_leave_a_relay_without_gaps(archive: Scene, tmp_path: Path) -> None:
    for point in ("relay.after_write:3", "relay.after_sync:2", "apply.after_commit:2"):
        for _ in range(8):
            archive.insert(10, size=500)
        process = archive.start(THL, "apply", "--set", "apply.batch_messages=20", THL_CRASH_POINT=point)
        process.wait()
        process.end()
    last = archive.insert(5)
    process = archive.start(THL, "apply", "--to-seqno", str(last))
    assert process.wait() == 0, archive.log_tail()
    assert seqnos(tmp_path / "relay") == list(range(last + 1))
    archive.reaches(last)


@pytest.mark.long
def test_a_full_disk_is_one_error_and_the_target_does_not_change(archive: Scene, tmp_path: Path) -> None:
    archive.insert(10)
    program = (
        "import os, sys, types\n"
        "from connector.cli import main\n"
        "from connector.relay import appending\n"
        "def full(number, content):\n"
        "    raise OSError(28, 'No space left on device')\n"
        "appending.os = types.SimpleNamespace(**{**vars(os), 'write': full})\n"
        "sys.argv[1:1] = ['apply']\n"
        "main()"
    )
    process = archive.start(sys.executable, "-c", program)
    assert process.wait() == 4
    text = process.log.read_text()
    assert "No space left on device; nothing of them was applied" in text
    assert "relay.dir" in text
    assert archive.applied() == []


def test_a_cluster_is_refused_by_the_option(archive: Scene, tmp_path: Path) -> None:
    refused = thl(tmp_path, "apply", "--set", "apply.master=spark://127.0.0.1:7077", code=2)
    assert "relay.dir" in refused.stderr
    assert "local[N]" in refused.stderr

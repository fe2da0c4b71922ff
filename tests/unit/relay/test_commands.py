"""`thl apply --relay`, `thl list --relay`, `thl index --relay` and `thl purge` on the command line, with SQLite."""

from __future__ import annotations

import json
import signal
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from connector import cli
from connector.config.loading import load
from connector.relay.frames import frames
from tests.support.fragments import change, column, encoded, marker, record, statement
from tests.support.memory_target import MemoryTarget
from tests.support.relay import names, seqnos, writer
from tests.unit.applier.test_core import LOG_ID, Rig, history, table

COLUMNS = [column("id"), column("v", "longtext") | {"charset": "utf8mb4"}]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    made = tmp_path / "relay"
    relay = writer(made)
    rig = Rig(MemoryTarget(), history([0], 99), relay=relay)
    rows = [change("insert", [(None, [n, f"v{n}"])]) | {"columns": COLUMNS} for n in range(20)]
    create = statement("CREATE TABLE orders (id INT NOT NULL PRIMARY KEY, v LONGTEXT)")
    first = [marker(1, 0, -1, log_id=LOG_ID), record(0, [create], kind="ddl", shard="#UNKNOWN")]
    events = [record(n, [rows[n]], last_barrier=0) for n in range(1, 20)]
    rig.accept(table([encoded(one) for one in [*first, *events]]))
    relay.close()
    return made


@pytest.fixture(autouse=True)
def signals() -> Iterator[None]:
    """`thl apply` replaces the handlers of this process."""
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def said(capfd: pytest.CaptureFixture[str], *words: str, code: int = 0) -> tuple[str, str]:
    capfd.readouterr()
    found = cli.run([*words, "--set", "service=shop"])
    out, err = capfd.readouterr()
    assert found == code, err
    return out, err


def test_a_relay_fills_a_target_up_to_a_bound_and_to_its_end(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    words = ("apply", "--relay", "relay", "--set", "target.url=sqlite:///t.db")
    _, err = said(capfd, *words, "--to-seqno", "7")
    assert err.splitlines()[-1].startswith("stopped after event 7 of service shop: binlog.000001:0000000000001007;7")
    said(capfd, *words)
    with sqlite3.connect(tmp_path / "t.db") as db:
        ((name,),) = db.execute("SELECT target_name FROM thl_tables").fetchall()
        assert db.execute(f'SELECT count(*), max(v) FROM "{name}"').fetchone() == (19, "v9")
        assert db.execute("SELECT seqno, consistent FROM thl_position").fetchone() == (19, 1)


@pytest.mark.parametrize("other", ["--from-seqno 3", "--skip-seqno 3 --reason x", "--exclude-table a.b --reason x"])
def test_a_relay_goes_with_bounds_alone(capfd: pytest.CaptureFixture[str], other: str) -> None:
    _, err = said(capfd, "apply", "--relay", "relay", *other.split(), code=2)
    assert "--relay goes with the options --to-… alone" in err


def test_events_are_chosen_as_on_kafka(capfd: pytest.CaptureFixture[str], folder: Path) -> None:
    def listed(*words: str) -> list[int]:
        out, _ = said(capfd, "list", "--relay", "relay", "--format", "json", "--headers", *words)
        found = [json.loads(line) for line in out.splitlines()]
        assert {one["file"] for one in found} <= set(names(folder))
        return [one["seqno"] for one in found]

    assert listed() == list(range(20))
    assert listed("--seqno", "5") == [5]
    assert listed("--from-seqno", "15") == [15, 16, 17, 18, 19]
    assert listed("--to-seqno", "2") == [0, 1, 2]
    assert listed("--first", "3") == [0, 1, 2]
    assert listed("--last", "2") == [18, 19]
    assert listed("--event", "binlog.000001:1004") == [4]
    assert listed("--gtid", "6f1c9a52-0000-11ee-8c99-0242ac120002:10") == [9]
    assert listed("--from-time", "2023-11-14T22:13:20.000018") == [18, 19]
    _, err = said(capfd, "list", "--relay", "relay", "--seqno", "20", code=2)
    assert "the relay does not have the event" in err


def test_a_record_with_a_wrong_checksum_is_damage_or_with_no_checksum_a_warning(
    capfd: pytest.CaptureFixture[str], folder: Path
) -> None:
    path = folder / names(folder)[0]
    listed, _ = said(capfd, "list", "--relay", "relay")
    with path.open("rb") as file:
        head, _, second, *_ = frames(file)
    content = bytearray(path.read_bytes())
    content[second.end - 1] ^= 1
    path.write_bytes(content)
    out, err = said(capfd, "list", "--relay", "relay", code=5)
    assert f"a checksum is wrong at byte {second.begin}" in err
    assert "--no-checksum" in err
    assert "SEQ# = 1 " not in out
    out, err = said(capfd, "list", "--relay", "relay", "--no-checksum")
    assert out == listed
    assert [line for line in err.splitlines() if "the checksum of a record is wrong" in line] == err.splitlines()
    assert err.count(f"byte={second.begin}") == 1
    assert "seqno=1" in err

    content[head.end - 1] ^= 1
    path.write_bytes(content)
    out, err = said(capfd, "list", "--relay", "relay", "--no-checksum", "--seqno", "3")
    assert "SEQ# = 3 " in out
    assert "byte=0" in err
    said(capfd, "apply", "--relay", "relay", "--set", "target.url=sqlite:///t.db", code=5)


def test_no_checksum_stops_where_no_record_can_begin(capfd: pytest.CaptureFixture[str], folder: Path) -> None:
    path = folder / names(folder)[0]
    with path.open("rb") as file:
        _, _, second, *_ = frames(file)
    content = bytearray(path.read_bytes())
    content[second.begin] ^= 0x80
    path.write_bytes(content)
    _, err = said(capfd, "list", "--relay", "relay", "--no-checksum", code=5)
    assert f"no record begins at byte {second.begin}" in err


def test_the_index_has_a_line_for_each_file(capfd: pytest.CaptureFixture[str], folder: Path) -> None:
    out, _ = said(capfd, "index", "--relay", "relay")
    lines = out.splitlines()
    assert [line.split("(")[0] for line in lines] == [f"LogIndexEntry {name}" for name in names(folder)]
    assert lines[0].startswith("LogIndexEntry thl.data.0000000001(0:")
    assert ":19) epoch 1 from 2023-11-14 22:13:20" in lines[-1]


def test_purge_asks_first_and_needs_a_bound(capfd: pytest.CaptureFixture[str], folder: Path) -> None:
    target = ("--set", "target.url=sqlite:///t.db")
    said(capfd, "apply", "--relay", "relay", *target)
    _, err = said(capfd, "purge", "--relay", "relay", *target, code=2)
    assert "--from-seqno or --to-seqno is needed" in err
    _, err = said(capfd, "purge", "--to-seqno", "9", *target, code=2)
    assert "neither --relay nor relay.dir" in err
    out, _ = said(capfd, "purge", "--relay", "relay", "--from-seqno", "12", "--yes", *target)
    assert any(": events 12.." in line for line in out.splitlines())
    assert seqnos(folder) == list(range(12))


def test_the_configuration_names_the_folder_where_the_option_does_not(
    capfd: pytest.CaptureFixture[str], folder: Path
) -> None:
    named = ("--set", f"relay.dir={folder}", "--set", "target.url=sqlite:///t.db")
    listed, _ = said(capfd, "list", "--relay", "--headers", "--last", *named)
    assert "19" in listed
    indexed, _ = said(capfd, "index", *named, "--relay")
    assert indexed == said(capfd, "index", "--relay", str(folder))[0]
    assert "stopped after event 19" in said(capfd, "apply", "--relay", *named)[1]
    out, _ = said(capfd, "purge", "--from-seqno", "15", "--yes", *named)
    assert any(": events 15.." in line for line in out.splitlines())
    for words in (
        ("list", "--relay"),
        ("index", "--relay"),
        ("apply", "--relay"),
        ("purge", "--relay", "--to-seqno", "3"),
    ):
        assert "neither --relay nor relay.dir" in said(capfd, *words, code=2)[1]


def test_no_relay_is_one_message(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for words in (("list", "--relay"), ("index", "--relay"), ("apply", "--relay")):
        assert "no file thl.data.0000000001" in said(capfd, *words, "empty", code=2)[1]
        assert "No such file or directory" in said(capfd, *words, "nowhere", code=2)[1]
    assert list((tmp_path / "empty").iterdir()) == []


def test_an_empty_name_is_no_relay_and_a_cluster_has_none() -> None:
    assert load(None, {}, ["relay.dir="]).relay.dir is None
    with pytest.raises(Exception, match=r"relay\.dir"):
        load(None, {}, ["relay.dir=/x", "apply.master=spark://h:7077"])

"""`thl archive` on a real MySQL, and a producer that reads the archive and continues with the live stream."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from connector.errors import ConfigError, CorruptBinlog, HistoriesDiffer, Purged
from connector.kafka.log_reader import LogReader
from connector.log.transaction.position import AfterGtids
from connector.mysql.archive.archive import Archive, ArchiveWriter
from connector.mysql.archive.archived_log import covering, previous_gtids
from connector.mysql.binlog.log_files import log_files
from tests.integration.binlog.test_types import allowing
from tests.integration.mariadb.test_log import checkpoint_written
from tests.support.clock import PATIENCE
from tests.support.long import long
from tests.support.producing import Bench, finished, fragments, last_seqno, table_of, until
from tests.support.servers.environment import Broker, SqlServer

# The flag of the format description: the server sends it cleared, but leaves it in the file it is writing, and in those
# that it was writing when it was killed.
IN_USE_AT = 4 + 17


@pytest.fixture
def bench(mysql_server: SqlServer, kafka_broker: Broker, tmp_path: Path) -> Bench:
    result = Bench(mysql_server, kafka_broker, tmp_path)
    result.make_table()
    return result


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "archive"


def archive(bench: Bench, folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    with archiving(bench, folder, *options) as process:
        out, errors = process.communicate(timeout=PATIENCE)
        return subprocess.CompletedProcess(process.args, process.returncode, out, errors)


@contextmanager
def archiving(bench: Bench, folder: Path, *options: str) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-m", "connector", "archive", str(folder), *options],
        env={**os.environ, **bench.environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()


def servers_files(bench: Bench) -> dict[str, bytes]:
    """What the server has now, as it is on its disk."""
    data = Path(bench.sql("SELECT @@datadir").splitlines()[1])
    if not data.is_dir():
        pytest.skip("the server's files are not on this machine")
    names = [line.split("\t")[0] for line in bench.sql("SHOW BINARY LOGS").splitlines()[1:]]
    return {name: (data / name).read_bytes() for name in names}


def work(bench: Bench, stop: threading.Event) -> None:
    """Small transactions and large ones, and a new file every now and then."""
    number = 0
    while not stop.is_set() and number < 120:
        number += 1
        bench.sql(
            f"INSERT INTO {bench.service}.t (v) VALUES ('{number}'); "
            f"UPDATE {bench.service}.t SET v = concat(v, '+') WHERE id % 7 = {number % 7} AND length(v) < 100; "
            f"DELETE FROM {bench.service}.t WHERE id = {number}"
        )
        if number % 8 == 0:
            bench.sql("FLUSH BINARY LOGS")


@contextmanager
def working(bench: Bench) -> Iterator[None]:
    stop = threading.Event()
    thread = threading.Thread(target=work, args=(bench, stop))
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def equal(bench: Bench, folder: Path) -> None:
    """Whole files are the server's as it sends them; the one being written is its beginning."""
    theirs = servers_files(bench)
    *whole, last = theirs
    assert [file.name for file in Archive(folder).files()] == whole
    for name in whole:
        assert (folder / name).read_bytes() == as_sent(theirs[name])
    part = (folder / f"{last}.part").read_bytes()
    assert part == as_sent(theirs[last])[: len(part)]


def as_sent(file: bytes) -> bytes:
    sent = bytearray(file)
    sent[IN_USE_AT] &= ~1
    return bytes(sent)


def test_archived_files_equal_the_servers(bench: Bench, folder: Path) -> None:
    bench.insert_many(30_000)
    bench.sql("FLUSH BINARY LOGS")
    bench.sql(f"INSERT INTO {bench.service}.t (v) VALUES ('behind')")
    done = archive(bench, folder, "--to-now")
    assert (done.returncode, "archived up to" in done.stderr) == (0, True), done.stderr
    equal(bench, folder)
    bench.sql(f"INSERT INTO {bench.service}.t (v) VALUES ('more')")
    bench.sql("FLUSH BINARY LOGS")
    bench.sql(f"INSERT INTO {bench.service}.t (v) VALUES ('and more')")
    assert archive(bench, folder, "--to-now").returncode == 0
    equal(bench, folder)
    checked = archive(bench, folder, "--verify")
    assert (checked.returncode, checked.stderr.endswith(": no damage\n")) == (0, True)


def test_archived_mariadb_files_equal_the_servers(
    mariadb_server: SqlServer, kafka_broker: Broker, tmp_path: Path, folder: Path
) -> None:
    bench = Bench(mariadb_server, kafka_broker, tmp_path)
    bench.make_table()
    for _ in range(3):
        bench.sql(f"INSERT INTO {bench.service}.t (v) VALUES ('one'), ('two'); UPDATE {bench.service}.t SET v = 'x'")
        bench.sql("FLUSH BINARY LOGS")
    bench.sql(f"INSERT INTO {bench.service}.t (v) VALUES ('behind')")
    with allowing(mariadb_server) as connection, connection.cursor() as cursor:
        until(lambda: checkpoint_written(cursor))  # no other event comes by itself
    assert archive(bench, folder, "--to-now").returncode == 0
    equal(bench, folder)
    files = Archive(folder).files()
    for file in files[-3:]:
        assert covering(Archive(folder), AfterGtids(str(previous_gtids(file)))) == file
    executed = bench.sql("SELECT @@gtid_binlog_pos").splitlines()[1]
    assert covering(Archive(folder), AfterGtids(executed)) == files[-1]


def test_archiver_killed_under_load_resumes(bench: Bench, folder: Path) -> None:
    with working(bench):
        for _ in range(3):
            with archiving(bench, folder) as process:
                seen = [*folder.glob("*")]
                until(lambda seen=seen: [*folder.glob("*")] != seen)
                process.send_signal(signal.SIGKILL)
    assert archive(bench, folder, "--to-now").returncode == 0
    equal(bench, folder)
    with max(folder.glob("*.part")).open("ab") as file:
        file.write(b"\0" * 100)  # as a file system may leave a file's end
    assert archive(bench, folder, "--to-now").returncode == 0
    equal(bench, folder)


def test_archiver_ends_on_request(bench: Bench, folder: Path) -> None:
    with archiving(bench, folder) as process:
        until(lambda: bool([*folder.glob("*.part")]))
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=PATIENCE)
        assert (process.returncode, "archived up to" in errors) == (0, True), errors


def test_second_archiver_of_a_folder_is_refused(bench: Bench, folder: Path) -> None:
    with Archive(folder).locked():
        done = archive(bench, folder, "--to-now")
    assert (done.returncode, f"folder={folder}" in done.stderr) == (2, True)


def test_purged_files_before_the_archives_end_are_refused(bench: Bench, folder: Path) -> None:
    assert archive(bench, folder, "--to-now").returncode == 0
    bench.sql("FLUSH BINARY LOGS")
    bench.sql("FLUSH BINARY LOGS")
    newest = bench.sql("SHOW BINARY LOGS").splitlines()[-1].split("\t")[0]
    bench.sql(f"PURGE BINARY LOGS TO '{newest}'")
    done = archive(bench, folder, "--to-now")
    assert done.returncode == Purged.exit_code
    assert f"oldest={newest}:4" in done.stderr


def test_another_servers_archive_is_refused(bench: Bench, folder: Path) -> None:
    folder.mkdir()
    (folder / "source.json").write_text(json.dumps({"server_uuid": "another"}))
    done = archive(bench, folder, "--to-now")
    assert (done.returncode, "another server's binary log" in done.stderr) == (HistoriesDiffer.exit_code, True)


def test_damage_and_missing_files_are_found(bench: Bench, folder: Path) -> None:
    for _ in range(3):
        bench.sql(f"INSERT INTO {bench.service}.t (v) VALUES ('more')")
        bench.sql("FLUSH BINARY LOGS")
    assert archive(bench, folder, "--to-now").returncode == 0
    *_, before, middle, last = log_files([str(folder)])
    assert before.path
    assert middle.path
    assert last.path
    data = bytearray(last.path.read_bytes())
    data[-10] ^= 1
    last.path.write_bytes(data)
    with pytest.raises(CorruptBinlog) as raised:
        list(Archive(folder).verify())
    assert (raised.value.where["file"], raised.value.where["event"]) == (last, "ROTATE(4)")
    middle.path.unlink()
    with pytest.raises(ConfigError) as missing:
        list(Archive(folder).verify())
    assert missing.value.where["between"] == f"{before.name} {last.name}"


def test_full_disk_ends_with_the_folder_named(tmp_path: Path) -> None:
    writer = ArchiveWriter(Archive(tmp_path / "nowhere"))
    with pytest.raises(ConfigError) as refused:
        writer.accept([("binlog.000001", b"x")])
    assert refused.value.where == {"folder": tmp_path / "nowhere"}


def contents(bench: Bench) -> list[Any]:
    """Every event: what it is and what it changed."""
    return [
        (event[0]["gtid"], event[-1]["event_id"], event[0]["kind"], [part["changes"] for part in event])
        for event in finished(fragments(bench.config))
    ]


def inserted(bench: Bench) -> set[Any]:
    """The keys of every row that was ever inserted."""
    return {
        row["after"][0]
        for event in finished(fragments(bench.config))
        for part in event
        for change in part["changes"]
        for row in change.get("rows", ())
        if row["after"] is not None
    }


def caught_up(bench: Bench) -> None:
    """The log has what the source has now."""
    bench.sql(f"INSERT INTO {bench.service}.t (v) VALUES ('the last')")
    last = int(bench.sql(f"SELECT max(id) FROM {bench.service}.t").splitlines()[1])
    until(lambda: last in inserted(bench))


@pytest.mark.parametrize("place", ["gtids", *long("earliest", "file")])
def test_archive_then_stream_equals_the_live_stream(
    bench: Bench, folder: Path, kafka_broker: Broker, place: str
) -> None:
    """Two producers of the same schema: one saw all of it live, the other comes when the server has purged most."""
    bench.sql("FLUSH BINARY LOGS")
    file, offset, *_, executed = bench.sql("SHOW BINARY LOG STATUS").splitlines()[1].split("\t")
    bench.sql(f"PURGE BINARY LOGS TO '{file}'")
    start = {"gtids": executed, "earliest": "earliest", "file": f"{file}:{offset}"}[place]
    bench.settings["THL_SOURCE__START"] = start
    late = Bench(bench.mysql, kafka_broker, bench.folder, settings=dict(bench.settings))
    late.settings |= {
        "THL_SOURCE__FILTERS__DO": f'["{bench.service}"]',
        "THL_SOURCE__ARCHIVE": str(folder),
    }
    with bench.start() as live:
        live.online()
        with archiving(bench, folder), working(bench):
            until(lambda: len([*folder.glob("*[0-9]")]) >= 5)
            # Purged while the archive is being written and the load goes on.
            bench.sql(f"PURGE BINARY LOGS TO '{max(folder.glob('*[0-9]')).name}'")
            with late.start() as behind:
                behind.online()
                assert "from the archive" in behind.text
                until(lambda: "the archive was read" in behind.text or behind.process.poll() is not None)
                caught_up(bench)
                until(lambda: last_seqno(late) >= 0)
                assert behind.stop() == 0, behind.text
        with late.start() as behind:
            behind.online()
            caught_up(bench)
            until(lambda: len(contents(late)) >= len(contents(bench)))
            assert (behind.stop(), live.stop()) == (0, 0)
    assert contents(late) == contents(bench)


@pytest.mark.parametrize("server", ["mysql_server", *long("mariadb_server")])
def test_last_event_is_compared_with_the_archive(
    server: str, request: pytest.FixtureRequest, kafka_broker: Broker, tmp_path: Path, folder: Path
) -> None:
    """A producer that was away while the server purged its place."""
    bench = Bench(request.getfixturevalue(server), kafka_broker, tmp_path)
    bench.make_table()
    bench.settings["THL_SOURCE__ARCHIVE"] = str(folder)
    with bench.start() as first:
        first.online()
        until(lambda: last_seqno(bench) >= 3)
        assert first.stop() == 0
    bench.sql(f"INSERT INTO {bench.service}.t (v) VALUES ('while it was away')")
    bench.sql("FLUSH BINARY LOGS")
    assert archive(bench, folder, "--to-now").returncode == 0
    newest = bench.sql("SHOW BINARY LOGS").splitlines()[-1].split("\t")[0]
    bench.sql(f"PURGE BINARY LOGS TO '{newest}'")
    with bench.start() as second:
        second.online()
        caught_up(bench)
        assert second.stop() == 0, second.text
    assert table_of(finished(fragments(bench.config))) == bench.rows()


def test_purged_position_missing_in_the_archive_names_both(bench: Bench, folder: Path) -> None:
    bench.settings["THL_SOURCE__ARCHIVE"] = str(folder)
    with bench.start() as first:
        first.online()
        until(lambda: last_seqno(bench) >= 3)
        assert first.stop() == 0
    bench.sql(f"INSERT INTO {bench.service}.t (v) VALUES ('nobody has this')")
    bench.sql("FLUSH BINARY LOGS")
    newest = bench.sql("SHOW BINARY LOGS").splitlines()[-1].split("\t")[0]
    bench.sql(f"PURGE BINARY LOGS TO '{newest}'")
    assert archive(bench, folder, "--to-now").returncode == 0
    bench.sql("FLUSH BINARY LOGS")
    assert archive(bench, folder, "--to-now").returncode == 0
    with bench.start() as second:
        assert second.ended() == Purged.exit_code
        assert "the archive does not have it either" in second.text
        assert f"oldest_archived={newest}" in second.text
    with LogReader(bench.config) as reader:
        position = reader.position()
    assert position is not None
    assert position.last_finished >= 3


def test_files_alone_are_a_source_and_then_the_server(bench: Bench, folder: Path, kafka_broker: Broker) -> None:
    """A log from files; from more files; from the server itself, which has purged them: as if it had been live."""
    bench.sql("FLUSH BINARY LOGS")
    file, _, *_, executed = bench.sql("SHOW BINARY LOG STATUS").splitlines()[1].split("\t")
    bench.sql(f"PURGE BINARY LOGS TO '{file}'")
    bench.settings["THL_SOURCE__START"] = executed
    other = Bench(bench.mysql, kafka_broker, bench.folder, settings=dict(bench.settings))
    other.settings["THL_SOURCE__FILTERS__DO"] = f'["{bench.service}"]'
    for _ in range(2):
        for _ in range(2):
            bench.sql(f"INSERT INTO {bench.service}.t (v) VALUES ('in a file')")
            bench.sql("FLUSH BINARY LOGS")
        assert archive(bench, folder, "--to-now").returncode == 0
        with other.start("--from-files", str(folder)) as process:
            assert process.ended() == 0, process.text
    assert len(contents(other)) == 4
    newest = max(folder.glob("*[0-9]"))
    with other.start("--from-files", str(newest), "--from-files", str(folder / "none")) as process:
        assert process.ended() == ConfigError.exit_code
    with other.start("--from-files", str(newest)) as process:  # nothing new
        assert process.ended() == 0, process.text
    with bench.start() as live:
        live.online()
        with other.start() as process:
            process.online()
            caught_up(bench)
            until(lambda: len(contents(other)) >= len(contents(bench)))
            assert (process.stop(), live.stop()) == (0, 0)
    assert contents(other) == contents(bench)


def test_files_that_begin_after_the_logs_end_are_refused(bench: Bench, folder: Path) -> None:
    with bench.start() as live:
        live.online()
        until(lambda: last_seqno(bench) >= 3)
        assert live.stop() == 0
    bench.sql(f"INSERT INTO {bench.service}.t (v) VALUES ('not in the files')")
    bench.sql("FLUSH BINARY LOGS")
    newest = bench.sql("SHOW BINARY LOGS").splitlines()[-1].split("\t")[0]
    bench.sql("FLUSH BINARY LOGS")
    assert archive(bench, folder, "--to-now").returncode == 0
    with bench.start("--from-files", str(folder / newest)) as process:
        assert process.ended() == Purged.exit_code
        assert "add older files" in process.text

"""Many keys are read by several threads, as each would be alone."""

from __future__ import annotations

import shutil
import stat
from pathlib import Path

import pytest

from connector.errors import ConfigError, ConnectorError, DiskUnavailable, RecordsDamaged
from connector.records.database import SHARE, Database, remove

COUNT = 2000
KEYS = [b"r%06d" % number for number in range(COUNT)]


def filled(folder: Path) -> Database:
    database = Database(folder, cache_bytes=1 << 20)
    database.write((key, key * 40) for key in KEYS if not key.endswith(b"7"))
    database._db.flush()
    return database


@pytest.mark.parametrize("count", [0, 1, 2 * SHARE - 1, 2 * SHARE, COUNT])
def test_many_keys_have_the_values_that_each_has(tmp_path: Path, count: int) -> None:
    database = filled(tmp_path / "s")
    keys = KEYS[:count]
    found = database.get_many(keys)
    assert found == [database.get(key) for key in keys]
    assert found.count(None) == sum(key.endswith(b"7") for key in keys)
    database.close()


def test_damage_is_told_from_many_keys_and_leaves_nothing_open(tmp_path: Path) -> None:
    folder = tmp_path / "s"
    filled(folder).close()
    (file,) = folder.glob("*.sst")
    damaged = bytearray(file.read_bytes())
    damaged[len(damaged) // 3] ^= 0x10
    file.write_bytes(damaged)
    database = Database(folder, cache_bytes=1 << 20)
    with pytest.raises(RecordsDamaged, match="damaged"):
        database.get_many(KEYS)
    database.close()
    Database(folder, cache_bytes=1 << 20).close()


def test_a_range_of_keys_ends_before_its_end_in_both_directions(tmp_path: Path) -> None:
    database = filled(tmp_path / "s")
    for start, end in ((KEYS[3], KEYS[12]), (KEYS[7], KEYS[17]), (b"", KEYS[0]), (KEYS[COUNT - 2], b"s")):
        within = [(key, key * 40) for key in KEYS if start <= key < end and not key.endswith(b"7")]
        assert list(database.items(start, end)) == within
        assert list(database.items(start, end, backwards=True)) == within[::-1]
    database.close()


def content(folder: Path) -> list[tuple[bytes, bytes]] | None:
    """What a database has; None: it cannot be opened."""
    try:
        database = Database(folder, cache_bytes=1 << 20)
    except RecordsDamaged:
        return None
    found = list(database.items(b"", b"\xff"))
    database.close()
    return found


def test_a_discarded_database_is_not_opened_again_with_what_it_had(tmp_path: Path) -> None:
    for name in ("in-files", "in-its-log"):
        database = filled(tmp_path / name)
        if name == "in-its-log":
            database.write([(b"r", b"newest")])
        database.discard()
        assert not content(tmp_path / name), name
        remove(tmp_path / name)
        assert content(tmp_path / name) == [], name


def test_files_that_an_interrupted_removal_leaves_are_no_database(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = filled(tmp_path / "s")
    database.write([(b"r", b"newest")])  # not in a file of its own
    files = len(list((tmp_path / "s").iterdir()))
    assert files > 5
    killed = tmp_path / "killed"
    shutil.copytree(tmp_path / "s", killed)  # as after kill -9
    database.close()
    shutil.copytree(killed, tmp_path / "read")
    assert len(content(tmp_path / "read") or ()) > COUNT // 2  # of another copy: opening one moves its newest writes
    unlink = Path.unlink
    for gone in range(1, files):
        folder = tmp_path / f"s{gone}"
        shutil.copytree(killed, folder)
        left = gone

        def dies(path: Path, missing_ok: bool = False) -> None:
            nonlocal left
            if left == 0:
                raise KeyboardInterrupt
            left -= 1
            unlink(path, missing_ok)

        with monkeypatch.context() as patched:
            patched.setattr(Path, "unlink", dies)
            with pytest.raises(KeyboardInterrupt):
                remove(folder)
        assert not content(folder), gone


@pytest.mark.parametrize("name", ["app.log", "LOGO.png", "CURRENT-of.xls", "MANIFEST-of.txt", "a.sst", "lost+found"])
def test_a_folder_of_something_else_is_left_as_it_is(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "s"
    folder.mkdir()
    folder.chmod(0o755)
    other = folder / name
    if "+" in name:
        other.mkdir()
    else:
        other.write_text("mine")
    for touch in (lambda: Database(folder, cache_bytes=1 << 20), lambda: remove(folder)):
        with pytest.raises(ConfigError, match="something else"):
            touch()
    assert list(folder.iterdir()) == [other]
    assert stat.S_IMODE(folder.stat().st_mode) == 0o755


def test_a_folder_that_others_could_read_or_write_is_closed_or_refused(tmp_path: Path) -> None:
    readable = tmp_path / "readable"
    readable.mkdir()
    readable.chmod(0o755)
    Database(readable, cache_bytes=1 << 20).close()
    assert stat.S_IMODE(readable.stat().st_mode) == 0o700
    writable = tmp_path / "writable"
    writable.mkdir()
    writable.chmod(0o1777)  # as /tmp: others may put files there
    with pytest.raises(ConfigError, match="written by other users"):
        Database(writable, cache_bytes=1 << 20)
    assert list(writable.iterdir()) == []


def test_a_link_to_a_file_elsewhere_is_not_removed(tmp_path: Path) -> None:
    folder = tmp_path / "s"
    Database(folder, cache_bytes=1 << 20).close()
    (folder / "000099.sst").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "elsewhere").write_text("mine")
    with pytest.raises(ConfigError, match="something else"):
        remove(folder)
    assert (folder / "CURRENT").exists()


FULL = "IO error: No space left on device: While appending to file: {}/000012.sst: No space left on device"


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        (FULL, DiskUnavailable),
        (f"Corruption: background error: {FULL}", DiskUnavailable),  # of an earlier write
        (f"{FULL}: file not found", DiskUnavailable),
        ("IO error: While fsync: {}/000012.log: Input/output error", DiskUnavailable),
        ("Corruption: block checksum mismatch: stored = 1, computed = 2, type = 4 in {}/000012.sst", RecordsDamaged),
        ("IO error: No such file or directory: While open a file for random read: {}/000012.sst", RecordsDamaged),
        ("IO error: While lock file: {}/LOCK: Resource temporarily unavailable", ConfigError),
        ("IO error: lock hold by current process, acquire time 1 acquiring thread 2: {}/LOCK: No locks available",
         ConfigError),
    ],
)  # fmt: skip
def test_a_full_disk_is_no_damage_and_a_lock_neither(tmp_path: Path, said: str, kind: type[ConnectorError]) -> None:
    database = Database(tmp_path / "s", cache_bytes=1 << 20)
    with pytest.raises(ConnectorError) as caught, database._errors():
        raise Exception(said.format(tmp_path))  # noqa: TRY002 - as the library does
    database.close()
    assert type(caught.value) is kind
    assert kind is not DiskUnavailable or "disk" in str(caught.value)

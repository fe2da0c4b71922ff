"""Many keys are read by several threads, as each would be alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from connector.errors import RecordsDamaged
from connector.records.database import SHARE, Database

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

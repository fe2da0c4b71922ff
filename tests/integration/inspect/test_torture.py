"""Some values of each type, compared three ways; `python -m tests.torture` compares many."""

from __future__ import annotations

import pytest

from tests.support.servers.environment import SqlServer
from tests.torture.columns import columns
from tests.torture.three_ways import MARIADB_SETTINGS, SETTINGS, Setting, compare


@pytest.mark.parametrize("setting", SETTINGS, ids=str)
def test_every_mysql_value_is_the_same_three_ways(mysql_server: SqlServer, setting: Setting) -> None:
    count = compare(mysql_server, setting, 20, seed=7)
    assert not count.wrong[:5]
    assert count.values > 20 * len(columns())


@pytest.mark.parametrize("setting", [MARIADB_SETTINGS[0], MARIADB_SETTINGS[-1]], ids=str)
def test_every_mariadb_value_is_the_same_three_ways(mariadb_server: SqlServer, setting: Setting) -> None:
    try:
        count = compare(mariadb_server, setting, 12, seed=7)
    finally:
        mariadb_server.run_sql("SET GLOBAL log_bin_compress = OFF, GLOBAL log_bin_compress_min_len = 256")
    assert not count.wrong[:5]
    assert count.values > 12 * len(columns())

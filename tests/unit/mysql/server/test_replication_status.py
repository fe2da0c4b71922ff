"""The channels by which a server replicates, read from its status."""

from __future__ import annotations

from typing import Any, Final

import pytest

from connector.mysql.server.replication_status import ReplicationChannel, channels_of

# Rows of SHOW REPLICA STATUS (MySQL 9.7.4) and SHOW ALL SLAVES STATUS (MariaDB 11.4.5), without columns that do not
# matter here; MySQL 5.6 has the names of MariaDB, and no channels.
MYSQL: Final = {
    "Replica_IO_State": "Waiting for source to send event", "Source_Host": "db1", "Source_Port": 3306,
    "Replica_IO_Running": "Yes", "Replica_SQL_Running": "Yes", "Seconds_Behind_Source": 3, "SQL_Delay": 3600,
    "Channel_Name": "",
}  # fmt: skip
MARIADB: Final = {
    "Connection_name": "m", "Slave_SQL_State": "", "Master_Host": "db1", "Master_Port": 3306,
    "Slave_IO_Running": "Connecting", "Slave_SQL_Running": "Yes", "Seconds_Behind_Master": None,
}  # fmt: skip
MYSQL_56: Final = {name: value for name, value in MARIADB.items() if name != "Connection_name"}


@pytest.mark.parametrize(
    ("row", "channel", "named"),
    [
        (
            MYSQL,
            ReplicationChannel("", "db1:3306", 3.0, "Replica_IO_Running: Yes, Replica_SQL_Running: Yes"),
            "db1:3306",
        ),
        (
            {**MYSQL, "Channel_Name": "east", "Seconds_Behind_Source": 0},
            ReplicationChannel("east", "db1:3306", 0.0, "Replica_IO_Running: Yes, Replica_SQL_Running: Yes"),
            "db1:3306, channel east",
        ),
        (
            MARIADB,
            ReplicationChannel("m", "db1:3306", None, "Slave_IO_Running: Connecting, Slave_SQL_Running: Yes"),
            "db1:3306, channel m",
        ),
        (
            MYSQL_56,
            ReplicationChannel("", "db1:3306", None, "Slave_IO_Running: Connecting, Slave_SQL_Running: Yes"),
            "db1:3306",
        ),
    ],
)
def test_each_servers_status_is_read(row: dict[str, Any], channel: ReplicationChannel, named: str) -> None:
    (found,) = channels_of([row])
    assert found == channel
    assert str(found) == named


def test_channels_of_a_group_are_left_out() -> None:
    recovery = {**MYSQL, "Channel_Name": "group_replication_recovery", "Seconds_Behind_Source": None}
    assert [one.name for one in channels_of([recovery, MYSQL])] == [""]

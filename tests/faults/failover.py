"""The source of a fault run dies, and its replica takes its address."""

from __future__ import annotations

from connector.sandbox.mysql import MySqlServer
from connector.sandbox.mysqld import PASSWORD_FILE, write_private
from tests.faults.network import Network
from tests.faults.rig import Rig
from tests.support.clock import PATIENCE


def replica_of(source: MySqlServer) -> MySqlServer:
    """Return a server, not started yet, that can replicate from a source which runs and replace it."""
    folder = source.folder.with_name("replica")
    write_private(folder / PASSWORD_FILE, source.password)
    return MySqlServer(folder, settings={"server_id": "2"}, die_with_parent=True)


def follow(replica: MySqlServer, source: MySqlServer) -> None:
    """Let a server replicate by GTIDs, and connect again for as long as the source is gone."""
    replica.run_sql(
        f"CHANGE REPLICATION SOURCE TO SOURCE_HOST = '{source.host}', SOURCE_PORT = {source.port}, SOURCE_USER = "
        f"'{source.user}', SOURCE_PASSWORD = '{source.password}', SOURCE_AUTO_POSITION = 1, GET_SOURCE_PUBLIC_KEY = 1, "
        "SOURCE_CONNECT_RETRY = 1, SOURCE_RETRY_COUNT = 86400; START REPLICA"
    )


def fail_over(rig: Rig, network: Network, replica: MySqlServer) -> MySqlServer:
    """Kill the source and promote its replica, which has all transactions; the dead server returns as the replica.

    Returns:
        The new replica.
    """
    rig.pause()  # what the replica lacks would be lost to the source, and trapped in the log
    executed = rig.executed()
    waited = replica.run_sql(f"SELECT WAIT_FOR_EXECUTED_GTID_SET('{executed}', {PATIENCE:.0f})").splitlines()[1]
    assert waited == "0", "the replica does not follow its source"
    dead = rig.mysql
    dead.kill()
    replica.run_sql("STOP REPLICA; RESET REPLICA ALL")
    rig.mysql = replica
    network.move("source", replica.port)
    dead.start()
    follow(dead, replica)
    rig.resume()
    rig.count("MySQL: its replica takes over")
    rig.progress()
    return dead

"""The servers of the tests: one of each kind for each process of the run, started by the first test that needs it.

A test that asks for one is marked `servers` by that; `-m 'not servers'` leaves them all out. Tests share the
servers, so each makes databases and topics with names of its own. One that kills a server starts it again
before it ends. With `THL_TEST_STACK=compose` they are those of docker/compose.yaml.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from connector import redaction
from connector.errors import SandboxError
from tests.support.servers.environment import (
    Broker,
    DatabaseServer,
    SqlServer,
    kafka_for_tests,
    mariadb_for_tests,
    mysql_for_tests,
    postgres_for_tests,
)
from tests.support.servers.registry import RegistryServer, registry_jar
from tests.support.servers.spark_cluster import SparkCluster

# A machine that does something else meanwhile fails no test.
settings.register_profile("thl", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("thl")

_FIXTURES = {"mysql_server", "kafka_broker", "postgres_server", "mariadb_server", "registry_server", "spark_cluster"}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if _FIXTURES & set(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.servers)


@pytest.fixture(autouse=True)
def no_secrets() -> Iterator[None]:
    """Forget the secrets of a test's configurations: in another's errors they are ordinary words."""
    yield
    redaction.forget()


@pytest.fixture(autouse=True)
def no_closed_handlers() -> Iterator[None]:
    """Forget the log of a command that ran in this process: its stream is closed, and each later line would say so."""
    yield
    root = logging.getLogger()
    root.handlers[:] = [
        one for one in root.handlers if not (isinstance(one, logging.StreamHandler) and one.stream.closed)
    ]


@pytest.fixture(scope="session")
def servers_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("servers")


@pytest.fixture(scope="session")
def mysql_process(servers_folder: Path) -> Iterator[SqlServer]:
    """With sync_binlog=0: only processes are killed here, the machine stays up."""
    with mysql_for_tests(servers_folder / "mysql") as server:
        yield server


@pytest.fixture(scope="module")
def mysql_server(mysql_process: SqlServer) -> SqlServer:
    """The same server for all, with nothing of an earlier module in its schemas, binary log and GTIDs."""
    ours = "('mysql', 'sys', 'performance_schema', 'information_schema')"
    found = mysql_process.run_sql(
        f"SELECT schema_name FROM information_schema.schemata WHERE schema_name NOT IN {ours}"
    )
    for schema in found.splitlines()[1:]:  # after the column's name
        mysql_process.run_sql(f"DROP DATABASE `{schema}`")
    version = [int(number) for number in re.findall(r"\d+", mysql_process.run_sql("SELECT VERSION()"))]
    mysql_process.run_sql("RESET BINARY LOGS AND GTIDS" if version[:2] >= [8, 4] else "RESET MASTER")
    return mysql_process


@pytest.fixture(scope="session")
def mariadb_server(servers_folder: Path) -> Iterator[SqlServer]:
    with mariadb_for_tests(servers_folder / "mariadb") as server:
        yield server


@pytest.fixture(scope="session")
def postgres_server(servers_folder: Path) -> Iterator[DatabaseServer]:
    with postgres_for_tests(servers_folder / "postgres") as server:
        yield server


@pytest.fixture(scope="session")
def kafka_broker(servers_folder: Path) -> Iterator[Broker]:
    with kafka_for_tests(servers_folder / "kafka") as broker:
        yield broker


@pytest.fixture(scope="session")
def spark_cluster(servers_folder: Path) -> Iterator[SparkCluster]:
    """Two workers of one core. Executors find this package only where it is installed for their Python."""
    with SparkCluster(servers_folder / "spark-cluster", environment={"PYTHONPATH": ""}) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def registry_server(servers_folder: Path) -> Iterator[RegistryServer]:
    """The sandbox's registry, also with the compose stack."""
    try:
        registry_jar()
    except SandboxError as error:
        pytest.skip(f"no schema registry can be had: {error.message}")
    with RegistryServer(servers_folder / "registry", die_with_parent=True) as server:
        yield server

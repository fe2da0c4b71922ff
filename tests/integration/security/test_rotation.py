"""Secrets in files are replaced while processes run; each connects again with the present one."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from connector.clock import SystemClock
from connector.config.loading import load
from connector.errors import PreflightError
from connector.mysql.server.connection import connect
from connector.targets.open import open_signal_table, open_target, read_position
from tests.support.producing import Bench, until
from tests.support.servers.environment import Broker, DatabaseServer, SqlServer

pytestmark = pytest.mark.servers
OLD, NEW = "planted old #1", "planted new #2"


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    made = tmp_path / "secret"
    made.touch(mode=0o600)
    return made


@pytest.fixture
def user(mysql_server: SqlServer) -> Iterator[str]:
    """A user of MySQL who has the old password."""
    name = f"u{uuid.uuid4().hex[:8]}"
    mysql_server.run_sql(f"CREATE USER {name} IDENTIFIED BY '{OLD}'; GRANT ALL ON *.* TO {name}")
    yield name
    mysql_server.run_sql(f"DROP USER {name}")


def sessions(server: SqlServer, user: str) -> list[str]:
    found = server.run_sql(f"SELECT id FROM information_schema.processlist WHERE user = '{user}'")
    return found.splitlines()[1:]


def end_sessions(server: SqlServer, user: str) -> None:
    for number in sessions(server, user):
        server.run_sql(f"KILL {number}")


def test_producer_that_lost_its_source_connects_with_the_present_password(
    mysql_server: SqlServer, kafka_broker: Broker, secret: Path, user: str, tmp_path: Path
) -> None:
    secret.write_text(f"{OLD}\n")
    bench = Bench(mysql_server, kafka_broker, tmp_path)
    bench.settings = {"THL_SOURCE__USER": user, "THL_SOURCE__PASSWORD_FILE": str(secret), "THL_SOURCE__PASSWORD": ""}
    bench.make_table()
    with bench.start() as running:
        running.loaded()
        secret.write_text(f"{NEW}\n")
        mysql_server.run_sql(f"ALTER USER {user} IDENTIFIED BY '{NEW}'")
        end_sessions(mysql_server, user)
        until(lambda: "the source is back" in running.text or running.process.poll() is not None)
        assert running.stop() == 0, running.text
    assert NEW not in running.text


def test_applier_of_a_mysql_connects_with_the_present_password(
    mysql_server: SqlServer, secret: Path, user: str
) -> None:
    def url(password: str) -> str:
        return f"mysql://{user}:{quote(password)}@{mysql_server.host}:{mysql_server.port}"

    secret.write_text(url(OLD))
    target = load(None, {}, [f"target.url_file={secret}"]).target
    with closing(open_target(target, SystemClock())) as opened:
        secret.write_text(url(NEW))
        mysql_server.run_sql(f"ALTER USER {user} IDENTIFIED BY '{NEW}'")
        end_sessions(mysql_server, user)
        service = f"s{uuid.uuid4().hex[:8]}"
        assert opened.claim(service).service == service
    with pytest.raises(PreflightError) as refused:
        read_position(url(OLD), service)
    assert OLD not in str(refused.value)


def test_sessions_with_source_and_postgres_use_the_present_secret(
    mysql_server: SqlServer, postgres_server: DatabaseServer, secret: Path, user: str
) -> None:
    """What `thl serve`, `thl verify --every` and `thl archive` do each time, by the configuration as it was read."""
    at = conninfo_to_dict(postgres_server.dsn)
    role = f"r{uuid.uuid4().hex[:8]}"

    def url(password: str) -> str:
        return f"postgresql://{role}:{quote(password)}@{at['host']}:{at['port']}/{at['dbname']}"

    secret.write_text(OLD)
    target_file = secret.with_name("url")
    target_file.touch(mode=0o600)
    target_file.write_text(url(OLD))
    config = load(
        None,
        {},
        [
            f"source.port={mysql_server.port}",
            f"source.user={user}",
            f"source.password_file={secret}",
            f"target.url_file={target_file}",
        ],
    )
    with psycopg.connect(postgres_server.dsn, autocommit=True) as admin:
        admin.execute(f"CREATE ROLE {role} LOGIN SUPERUSER PASSWORD '{OLD}'".encode())
        try:
            connect(config.source).close()
            open_signal_table(config.target).close()

            secret.write_text(NEW)
            target_file.write_text(url(NEW))
            mysql_server.run_sql(f"ALTER USER {user} IDENTIFIED BY '{NEW}'")
            admin.execute(f"ALTER ROLE {role} PASSWORD '{NEW}'".encode())
            connect(config.source).close()
            open_signal_table(config.target).close()
        finally:
            admin.execute(f"DROP ROLE {role}".encode())

"""`thl check` against real servers: everything correct, and each prerequisite missing in turn."""

from __future__ import annotations

import json
import sqlite3
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest
from confluent_kafka.admin import AdminClient

from connector import cli
from connector.check.checks import check
from connector.check.result import Check, CheckState
from connector.config import Config, Filters, Kafka, Source, Target
from connector.config.filters import TableRule
from connector.config.records import RecordStore
from connector.fetching.java import java_home
from connector.kafka.topics import Topics
from tests.support.grants import granted
from tests.support.loading import a_database, a_user, run
from tests.support.servers.environment import Broker, DatabaseServer, SqlServer

LEAST = granted("mysql-source.sql", "log", "tables", "loads", schema="*")
ENVIRON = {"JAVA_HOME": str(java_home())}


def config_of(source: Source, broker: Broker, folder: Path, service: str = "checked") -> Config:
    kafka = Kafka(bootstrap=broker.bootstrap, replication=1, min_isr=1, allow_unsafe=True)
    return Config(service=service, source=source, kafka=kafka, target=Target(url=f"sqlite:///{folder}/t.db"))  # type: ignore[arg-type]


@pytest.fixture
def config(mysql_server: SqlServer, kafka_broker: Broker, tmp_path: Path) -> Iterator[Config]:
    with a_user(mysql_server, *LEAST) as source:
        yield config_of(source, kafka_broker, tmp_path)


def failures(found: list[Check]) -> dict[str, int]:
    return {one.name: one.exit_code for one in found if one.state is CheckState.FAILED}


def only(found: list[Check], name: str) -> Check:
    (one,) = [one for one in found if one.name == name and one.state is CheckState.FAILED]
    return one


def changed(config: Config, section: str, **fields: object) -> Config:
    return config.model_copy(update={section: getattr(config, section).model_copy(update=fields)})


def test_support_bundle_has_what_a_helper_needs_and_no_secret(
    config: Config, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, log, out = config.source, tmp_path / "apply.log", tmp_path / "support.tar.gz"
    password = source.password.get_secret_value()
    log.write_text(f"cannot log in with {password}, mysql://thl:other-secret@db/\n")
    (tmp_path / "thl.yaml").write_text(
        f"service: bundled\nsource: {{host: {source.host}, port: {source.port}, user: {source.user}, "
        f"password: '{password}', server_id: {source.server_id}}}\n"
        f"kafka: {{bootstrap: '{config.kafka.bootstrap}', properties: {{sasl.password: planted-secret}}}}\n"
        f"target: {{url: 'sqlite:///{tmp_path}/t.db'}}\n"
    )
    arguments = ["support-bundle", "--config", str(tmp_path / "thl.yaml"), "--log", str(log), "--out", str(out)]
    assert cli.run(arguments) == 0
    printed = capsys.readouterr().out
    assert out.stat().st_mode & 0o777 == 0o600
    with tarfile.open(out) as archive:
        found = {
            entry.name.partition("/")[2]: (archive.extractfile(entry) or BytesIO()).read().decode()
            for entry in archive.getmembers()
        }
    assert set(found) == {
        "versions.txt", "configuration.yaml", "check.txt", "status.json", "loads.txt", "log.json", "source-files.txt",
        "logs/0-apply.log",
    }  # fmt: skip
    assert "thl-connector" in found["versions.txt"]
    assert f"port: {source.port}" in found["configuration.yaml"]
    assert "MySQL" in found["check.txt"]
    status = json.loads(found["status.json"])
    assert status["producer"]["state"] == "NONE"
    assert "there is no log: start `thl produce`, or correct `service`" in status["problems"]
    assert "bundled" in found["log.json"]  # there is no log: the error says of which service
    for text in (*found.values(), printed):
        assert not any(secret in text for secret in (password, "planted-secret", "other-secret"))


def test_everything_there_is_ok_and_creates_nothing(config: Config, tmp_path: Path) -> None:
    found = check(config, ENVIRON)
    assert failures(found) == {}
    assert [one.name for one in found if one.state is CheckState.OK] == ["source", "grants", "kafka", "target", "java"]
    assert not list(tmp_path.iterdir())
    topics = AdminClient({"bootstrap.servers": config.kafka.bootstrap}).list_topics(timeout=10).topics
    assert config.topic not in topics


def test_partitions_of_a_log_are_told_where_others_are_configured(config: Config) -> None:
    other = config.model_copy(update={"service": f"{config.service}p"})
    Topics(changed(other, "kafka", partitions=2)).ensure()
    said = {}
    for partitions in (2, 3):
        found = check(changed(other, "kafka", partitions=partitions), ENVIRON)
        (kafka,) = [one for one in found if one.name == "kafka"]
        assert kafka.state is CheckState.OK
        said[partitions] = kafka.found
    assert said[2].endswith(" exists")
    assert said[3].endswith(" exists with 2 partition(s); kafka.partitions, 3, is for a new log")


def test_postgres_target_is_ok(config: Config, postgres_server: DatabaseServer) -> None:
    assert failures(check(changed(config, "target", url=Target(url=postgres_server.dsn).url), ENVIRON)) == {}


def test_unreachable_servers_fail_in_seconds_each_with_exit_code_4(config: Config) -> None:
    away = changed(config, "source", port=1)
    away = changed(away, "kafka", bootstrap="127.0.0.1:1")
    away = changed(away, "target", url=Target(url="postgresql://u:p@127.0.0.1:1/d").url)
    found = check(away, ENVIRON)
    assert failures(found) == {"source": 4, "kafka": 4, "target": 4}
    assert "source.host" in only(found, "source").remedy
    assert "kafka.bootstrap" in only(found, "kafka").remedy


def test_wrong_password_of_source_fails(config: Config) -> None:
    wrong = changed(config, "source", password=Source(password="wrong").password)
    found = check(wrong, ENVIRON)
    assert failures(found) == {"source": 3}
    assert "source.password" in only(found, "source").remedy


def test_missing_grants_fail_each_with_its_statement(
    config: Config, mysql_server: SqlServer, kafka_broker: Broker, tmp_path: Path
) -> None:
    with a_user(mysql_server) as source:
        bare = config_of(source, kafka_broker, tmp_path)
        problems = [one for one in check(bare, ENVIRON) if one.state is CheckState.FAILED]
        assert {one.name for one in problems} == {"grants"}
        assert len(problems) > 1
        for one in problems:
            mysql_server.run_sql(one.remedy)
        assert failures(check(bare, ENVIRON)) == {}


def test_grants_are_those_that_the_server_honours(
    mysql_server: SqlServer, kafka_broker: Broker, tmp_path: Path
) -> None:
    """A wildcard, a more specific grant beside it, and a role that is not active."""
    log, loads = granted("mysql-source.sql", "log", schema="*"), granted("mysql-source.sql", "loads", schema="*")
    with a_database(mysql_server, "honoured") as (_, named), a_user(mysql_server, *log, *loads) as source:
        config = config_of(source, kafka_broker, tmp_path)
        config = changed(config, "source", filters=Filters.model_validate({"do": [f"{named[:-1]}*.*"]}))
        missing = only(check(config, ENVIRON), "grants")
        scope = missing.remedy.partition(" ON ")[2].partition(" TO ")[0]
        assert scope.endswith("%`.*")
        role = f"r{named}"
        mysql_server.run_sql(f"CREATE ROLE {role}; GRANT SELECT ON {scope} TO {role}; GRANT {role} TO {source.user}")
        try:
            inactive = only(check(config, ENVIRON), "grants")
            mysql_server.run_sql(inactive.remedy.partition("not active: ")[2])
            assert failures(check(config, ENVIRON)) == {}
            exactly = named.replace("_", r"\_")
            mysql_server.run_sql(f"GRANT INSERT ON `{exactly}`.* TO {source.user}")
            assert set(failures(check(config, ENVIRON))) == {"grants"}
        finally:
            mysql_server.run_sql(f"DROP ROLE {role}")


def test_start_at_now_beside_a_record_store_needs_the_grants_of_a_load(
    mysql_server: SqlServer, kafka_broker: Broker, tmp_path: Path
) -> None:
    with a_user(mysql_server, *granted("mysql-source.sql", "log", schema="*")) as source:
        config = changed(config_of(source, kafka_broker, tmp_path, service="begunnow"), "source", start="now")
        assert failures(check(config, ENVIRON)) == {}
        beside = changed(config, "source", records=RecordStore(dir=tmp_path / "records"))
        missing = [one for one in check(beside, ENVIRON) if one.state is CheckState.FAILED]
        assert [one.name for one in missing] == ["grants", "grants"]
        for one, privilege in zip(missing, ("FLUSH_TABLES", "SELECT"), strict=True):
            assert privilege in one.remedy
            assert "the start at `now`" in one.found
            assert one.found.endswith("because of source.records.dir)")
            mysql_server.run_sql(one.remedy)
        assert failures(check(beside, ENVIRON)) == {}


def test_existing_log_needs_no_grants_of_initial_load(
    mysql_server: SqlServer, kafka_broker: Broker, tmp_path: Path
) -> None:
    with a_user(mysql_server, *granted("mysql-source.sql", "log", "tables", schema="*")) as source:
        config = config_of(source, kafka_broker, tmp_path, service="begun")
        assert set(failures(check(config, ENVIRON))) == {"grants"}
        Topics(config).ensure()
        assert failures(check(config, ENVIRON)) == {}


@contextmanager
def a_global(server: SqlServer, name: str, value: str, before: str) -> Iterator[None]:
    server.run_sql(f"SET GLOBAL {name} = {value}")
    try:
        yield
    finally:
        server.run_sql(f"SET GLOBAL {name} = {before}")


def test_wrong_setting_of_source_fails_with_its_statement(config: Config, mysql_server: SqlServer) -> None:
    with a_global(mysql_server, "binlog_format", "'MIXED'", "'ROW'"):
        found = check(config, ENVIRON)
    assert failures(found) == {"source": 3}
    assert "binlog_format = 'ROW'" in only(found, "source").remedy


def test_pattern_without_table_warns(config: Config, mysql_server: SqlServer) -> None:
    mysql_server.run_sql("CREATE DATABASE checked; CREATE TABLE checked.a (id INT PRIMARY KEY)")
    filters = Filters.model_validate(
        {"do": ["checked.*", "chekced.*"], "ignore": ["*.b"], "tables": [{"match": ["checked.A?"], "drop": ["x"]}]}
    )
    found = check(changed(config, "source", filters=filters), ENVIRON)
    assert failures(found) == {}
    told = " ".join(one.found for one in found if one.state is CheckState.WARNING and "pattern" in one.found)
    assert all(text in told for text in ("do: the pattern chekced.*", "ignore: the pattern *.b", "tables.0.match: the"))
    assert "checked.* " not in told


def test_too_few_brokers_fail(config: Config) -> None:
    found = check(changed(config, "kafka", replication=3), ENVIRON)
    assert failures(found) == {"kafka": 3}
    assert "kafka.replication" in only(found, "kafka").remedy


def test_unsafe_topics_fail(config: Config) -> None:
    found = check(changed(config, "kafka", allow_unsafe=False), ENVIRON)
    assert failures(found) == {"kafka": 3}
    assert all("kafka.allow_unsafe" in one.remedy for one in found if one.name == "kafka")


def test_unknown_user_of_target_fails(config: Config, postgres_server: DatabaseServer) -> None:
    url = postgres_server.dsn.replace("thl:thl@", "nobody:x@")
    assert failures(check(changed(config, "target", url=Target(url=url).url), ENVIRON)) == {"target": 3}


@pytest.mark.parametrize("used", [False, True], ids=["an empty database", "another user's applier was there"])
def test_target_user_without_create_fails_with_its_grant(
    config: Config, postgres_server: DatabaseServer, used: bool
) -> None:
    url = postgres_server.dsn
    database = f"checked{int(used)}"
    there = urlsplit(url)._replace(path=f"/{database}").geturl()
    with psycopg.connect(url, autocommit=True) as admin:
        admin.execute(f"DROP DATABASE IF EXISTS {database}")
        admin.execute("DROP ROLE IF EXISTS checker2")
        admin.execute("CREATE ROLE checker2 LOGIN PASSWORD 'right'")
        admin.execute(f"CREATE DATABASE {database}")
        try:
            if used:
                with psycopg.connect(there, autocommit=True) as owner:
                    owner.execute("CREATE SCHEMA thl")
                    owner.execute("CREATE TABLE thl.thl_position (service TEXT)")
            limited = changed(config, "target", url=Target(url=there.replace("thl:thl@", "checker2:right@")).url)
            found = check(limited, ENVIRON)
            assert failures(found) == {"target": 3}
            admin.execute(only(found, "target").remedy.encode())
            assert failures(check(limited, ENVIRON)) == {}
        finally:
            admin.execute(f"DROP DATABASE {database}")
            admin.execute("DROP ROLE checker2")


def test_mysql_target_that_is_read_only_or_lacks_the_histories_database_fails_with_its_remedy(
    config: Config, mysql_server: SqlServer, mariadb_server: SqlServer
) -> None:
    mysql_server.run_sql("CREATE DATABASE kept; CREATE TABLE kept.a (id INT PRIMARY KEY)")
    filters = Filters(do=("kept.*",))
    config = changed(config, "source", filters=filters)
    for server in (mysql_server, mariadb_server):
        rights = [f"ALL ON {name}.*" for name in ("thl", "kept")]
        with a_user(server, *rights) as user:
            url = f"mysql://{user.user}:{user.password.get_secret_value()}@{user.host}:{user.port}"
            config = changed(config, "target", url=Target(url=url).url, definitions="plain")
            with a_global(server, "read_only", "ON", "OFF"):
                told = only(check(config, ENVIRON), "target")
                assert ("read-only" in told.found, "SET GLOBAL read_only = OFF" in told.remedy) == (True, True)
            assert not failures(check(config, ENVIRON))
            told = only(check(changed(config, "target", history=("kept.*",)), ENVIRON), "target")
            assert "ON `kept__history`.* TO" in told.remedy


def test_target_file_that_cannot_be_used_fails(config: Config, tmp_path: Path) -> None:
    (tmp_path / "text.db").write_text("no database " * 100)
    for name in ("missing/t.db", "text.db"):
        found = check(changed(config, "target", url=Target(url=f"sqlite:///{tmp_path}/{name}").url), ENVIRON)
        assert set(failures(found)) == {"target"}, name
    with sqlite3.connect(tmp_path / "good.db") as database:
        database.execute("CREATE TABLE t (a)")
    assert not failures(check(changed(config, "target", url=Target(url=f"sqlite:///{tmp_path}/good.db").url), ENVIRON))


def test_command_prints_json_and_exits_with_first_failure(
    config: Config, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(java_home()))
    monkeypatch.chdir(tmp_path)
    source = config.source
    sets = {
        "source.host": source.host, "source.port": source.port, "source.user": source.user,
        "source.password": source.password.get_secret_value(), "kafka.bootstrap": config.kafka.bootstrap,
    }  # fmt: skip
    arguments = ["--set=kafka.replication=1", "--set=kafka.min_isr=1", "--set=kafka.allow_unsafe=true"]
    arguments += [f"--set={name}={value}" for name, value in sets.items()]
    assert cli.run(["check", "--format", "json", *arguments]) == 0
    assert {one["state"] for one in json.loads(capsys.readouterr().out)} <= {"ok", "warning"}
    assert cli.run(["check", *arguments, "--set", "target.url=sqlite:////no/folder/t.db"]) == 2
    said = capsys.readouterr().out
    assert "FAILED" in said
    assert "target.url" in said


def test_zero_dates_that_postgres_lacks_are_found_in_rows_defaults_and_sql_mode(
    config: Config, mysql_server: SqlServer, mariadb_server: SqlServer, postgres_server: DatabaseServer
) -> None:
    to_postgres = changed(config, "target", url=Target(url=postgres_server.dsn).url)
    for server in (mysql_server, mariadb_server):
        with a_database(server, "dates") as (source, name):
            run(
                source, name,
                "CREATE TABLE t (d DATE NOT NULL, k DATETIME PRIMARY KEY, x DATE NOT NULL DEFAULT '0000-00-00', "
                "late TIMESTAMP(3) NULL, i DATETIME(6), ok DATE, KEY (i))",
                "INSERT INTO t VALUES ('2026-01-01', '2026-01-01', '2026-01-01', NULL, NULL, NULL)",
                "INSERT INTO t VALUES ('0000-00-00', '0000-00-00', '2026-01-01', '0000-00-00', '0000-00-00', NULL)",
            )  # fmt: skip
            filters = Filters(do=(name,))
            asked = to_postgres.model_copy(update={"source": source.model_copy(update={"filters": filters})})
            failed, default, *accepted = dates_in(check(asked, ENVIRON))
            assert failed.exit_code == 6
            assert failed.found.endswith(f"has not: {name}.t.d, {name}.t.k, {name}.t.late, {name}.t.i")
            assert default.found.endswith(f"has not: {name}.t.x")
            # MySQL's own sql_mode has NO_ZERO_DATE, MariaDB's has not.
            assert [one.found.rpartition(". ")[2] for one in accepted] == (
                ["Date columns without a rule: 1 (none in the index, or the first 1000 rows, of 1)"]
                if server is mariadb_server
                else []
            )
            assert "zero_dates" in failed.remedy
            rule = TableRule(match=(f"{name}.t",), zero_dates=("*",))
            ruled = changed(asked, "source", filters=Filters(do=(name,), tables=(rule,)))
            (failed,) = dates_in(check(ruled, ENVIRON))
            assert failed.found.endswith(f"has not: {name}.t.k")
            assert dates_in(check(changed(ruled, "target", url=config.target.url), ENVIRON)) == []


def dates_in(checks: list[Check]) -> list[Check]:
    return [one for one in checks if "0000-00-00" in one.found]


def test_tables_that_cannot_be_loaded_are_named_before_an_initial_load_and_after_it(
    config: Config, mysql_server: SqlServer
) -> None:
    with a_database(mysql_server, "loadable") as (source, name):
        run(source, name, "CREATE TABLE isam (id INT PRIMARY KEY) ENGINE = MyISAM", "CREATE TABLE t (id INT)")
        filters = Filters(do=(name,), tables=(TableRule(match=(f"{name}.t",), actions=("insert",)),))
        checked = changed(config, "source", filters=filters).model_copy(update={"service": f"{config.service}l"})
        before = only(check(checked, ENVIRON), "source")
        assert (before.exit_code, f"tables={name}.isam" in before.found) == (3, True)
        assert before.remedy.startswith(f"ALTER TABLE `{name}`.`isam` ENGINE = InnoDB")
        Topics(checked).ensure()
        found = check(checked, ENVIRON)
        assert failures(found) == {}
        (warned,) = [one for one in found if one.state is CheckState.WARNING and "thl load" in one.found]
        assert f"tables={name}.isam" in warned.found

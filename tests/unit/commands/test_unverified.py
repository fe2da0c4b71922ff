"""Passwords sent to an unverified server over the network are warned of; loopback and sockets are not."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from connector import cli
from connector.commands.grammar.unverified import End, warn_of_unverified
from connector.config.apply import Target
from connector.config.model import Config
from connector.config.source import Source
from connector.errors import ConfigError
from connector.log.transaction.layout import TableName
from connector.status.heartbeat import heartbeat_time
from connector.targets.open import read_position
from connector.targets.postgres.connection import connect

JAAS = 'x.ScramLoginModule required username="u" password="p";'


@pytest.fixture(autouse=True)
def without_what_stands_around(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("PGSSLMODE", "PGSSLROOTCERT", "PGPASSWORD", "PGPASSFILE", "PGHOST"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))


def warnings(caplog: pytest.LogCaptureFixture, end: End, **sections: Any) -> str:
    caplog.clear()
    with caplog.at_level(logging.WARNING):
        warn_of_unverified(Config.model_validate(sections), end)
    return caplog.text


@pytest.mark.parametrize(
    ("source", "told"),
    [
        ({"host": "db"}, "without TLS: source.tls"),
        ({"host": "10.0.0.1", "tls": True, "tls_verify": "none"}, "source.tls_verify is none"),
        ({"host": "db", "tls": True}, ""),
        ({"host": "db", "tls": True, "tls_ca": "ca.pem", "tls_verify": "ca"}, ""),
        ({"host": "localhost"}, ""),
        ({"host": "127.0.0.53"}, ""),
        ({"host": "::1"}, ""),
        ({"host": "db", "password": ""}, ""),
    ],
)
def test_unverified_source_password_warns(caplog: pytest.LogCaptureFixture, source: dict[str, Any], told: str) -> None:
    said = warnings(caplog, "source", source={"password": "secret"} | source)
    assert (told in said) if told else not said


def test_unverified_replica_password_warns(caplog: pytest.LogCaptureFixture) -> None:
    publish = {"wait_for": ["mysql://u:p@replica", "mysql://127.0.0.1:1"]}
    assert "the password for u at replica:3306" in warnings(caplog, "replicas", publish=publish)
    assert not warnings(caplog, "replicas", publish=publish, source={"tls": True})


@pytest.mark.parametrize(
    ("kafka", "told"),
    [
        ({"security.protocol": "SASL_PLAINTEXT"}, "SASL_PLAINTEXT"),
        ({"security.protocol": "sasl_ssl"}, ""),
        ({"security.protocol": "SASL_SSL", "enable.ssl.certificate.verification": "false"}, "verification"),
        ({"security.protocol": "SASL_SSL", "ssl.endpoint.identification.algorithm": "none"}, "identification"),
    ],
)
def test_unverified_kafka_password_warns(caplog: pytest.LogCaptureFixture, kafka: dict[str, str], told: str) -> None:
    properties = {"sasl.password": "secret"} | kafka
    said = warnings(caplog, "kafka", kafka={"bootstrap": "k1:9092,127.0.0.1:1", "properties": properties})
    assert (told in said) if told else not said
    assert not warnings(caplog, "kafka", kafka={"bootstrap": "[::1]:9092", "properties": properties})


def test_unverified_password_of_sparks_kafka_client_warns(caplog: pytest.LogCaptureFixture) -> None:
    java = {"sasl.jaas.config": JAAS, "kafka.security.protocol": "SASL_PLAINTEXT"}
    assert "spark_properties" in warnings(caplog, "kafka", kafka={"bootstrap": "k:1", "spark_properties": java})
    java = {"sasl.jaas.config": JAAS, "security.protocol": "SASL_SSL", "ssl.endpoint.identification.algorithm": ""}
    assert "is empty" in warnings(caplog, "kafka", kafka={"bootstrap": "k:1", "spark_properties": java})


def test_every_kind_of_kafka_secret_warns(caplog: pytest.LogCaptureFixture) -> None:
    open_ = {"security.protocol": "SASL_PLAINTEXT"}
    for name, told in (("sasl.oauthbearer.client.secret", True), ("ssl.key.password", False)):
        said = warnings(caplog, "kafka", kafka={"bootstrap": "k:1", "properties": {name: "secret"} | open_})
        assert ("SASL_PLAINTEXT" in said) is told
        java = {f"kafka.{name}": "secret", "security.protocol": "SASL_PLAINTEXT"}
        assert bool(warnings(caplog, "kafka", kafka={"bootstrap": "k:1", "spark_properties": java})) is told


@pytest.mark.parametrize("where", ["variable", "home"])
def test_password_file_of_libpq_warns(
    where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    target = {"url": "postgresql://u@h/d"}
    assert not warnings(caplog, "target", target=target)
    (tmp_path / ".pgpass").touch()
    if where == "variable":
        monkeypatch.setenv("HOME", "/nonexistent")
        monkeypatch.setenv("PGPASSFILE", str(tmp_path / ".pgpass"))
    assert "sslmode is prefer" in warnings(caplog, "target", target=target)


# Each ends early: librdkafka refuses the property, and the host does not exist.
BROKERS = [
    "kafka.bootstrap=k.invalid:1",
    "kafka.properties={sasl.password: secret, security.protocol: SASL_PLAINTEXT, no.such: x}",
]
SOURCE = ["source.host=db.invalid", "source.password=secret"]
TARGET = ["target.url=postgresql://u:secret@t.invalid/d", "target.retries=0"]


@pytest.mark.parametrize(
    ("command", "sets", "told"),
    [
        *((command, BROKERS, "the brokers") for command in (["list"], ["tail"], ["info"], ["index"], ["trapped"])),
        (["trapped"], [*BROKERS, *SOURCE], "source.tls"),
        (["offline", "--producer", "--reason", "x"], BROKERS, "the brokers"),
        (["offline", "--reason", "x"], TARGET, "the target at t.invalid"),
        (["acls", "--create", "--producer-principal", "User:u"], BROKERS, "the brokers"),
        (["wait", "--to-seqno", "1", "--timeout", "0"], TARGET, "the target at t.invalid"),
        (["heartbeat"], SOURCE, "source.tls"),
        (["heartbeat", "--wait"], [*SOURCE, *TARGET], "the target at t.invalid"),
        (["status"], [*BROKERS, *SOURCE, *TARGET], "source.tls"),
        (["status"], [*BROKERS, *SOURCE, *TARGET], "the brokers"),
        (["status"], [*BROKERS, *SOURCE, *TARGET], "the target at t.invalid"),
    ],
)
def test_every_command_warns_of_unverified_connections(
    command: list[str], sets: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.run([*command, *(part for one in sets for part in ("--set", one))]) not in (0, 70)
    lines = [line for line in capsys.readouterr().err.splitlines() if "WARNING passwords the password for" in line]
    assert any(told in line for line in lines)


def test_unverified_registry_password_warns(caplog: pytest.LogCaptureFixture) -> None:
    auth = {"basic.auth.user.info": "u:p"}
    assert "at r crosses" in warnings(caplog, "registry", registry={"url": "http://r:8081/x", "properties": auth})
    assert not warnings(caplog, "registry", registry={"url": "https://r", "properties": auth})
    assert not warnings(caplog, "registry", registry={"url": "http://localhost:8081", "properties": auth})


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("postgresql://u:p@h/d", "sslmode is prefer"),
        ("postgresql://u:p@h/d?sslmode=require", "sslmode is require"),
        ("postgresql://u:p@h/d?sslmode=verify-full&sslrootcert=system", ""),
        ("postgresql://u:p@h/d?sslmode=require&sslrootcert=ca.pem", ""),
        ("postgresql://u:p@h/d?sslmode=disable&sslrootcert=ca.pem", "sslmode is disable"),
        ("postgresql://u:p@h/d?sslmode=prefer&sslrootcert=ca.pem", "sslmode is prefer"),
        ("postgresql://u:p@h/d?sslrootcert=ca.pem", "sslmode is prefer"),
        ("postgresql://u:p@h/d?sslrootcert=system", ""),
        ("postgresql://u:p@127.0.0.1:1/d", ""),
        ("postgresql://u:p@%2Fvar%2Frun/d", ""),
        ("postgresql://u:p@/d?host=/var/run", ""),
        ("postgresql://u@h/d", ""),
        ("postgresql://u@h/d?passfile=/x", "sslmode is prefer"),
        ("postgresql://u@h/d?passfile=/x&sslmode=verify-full", ""),
        ("postgresql://u@127.0.0.1/d?passfile=/x", ""),
        ("sqlite:///t.db", ""),
    ],
)
def test_unverified_target_password_warns(caplog: pytest.LogCaptureFixture, url: str, told: str) -> None:
    said = warnings(caplog, "target", target={"url": url})
    assert (told in said) if told else not said


def test_tls_files_without_tls_are_refused() -> None:
    for wrong in (
        {"tls_ca": "ca.pem"},
        {"tls": True, "tls_key": "k"},
        {"tls": True, "tls_ca": "x", "tls_verify": "none"},
    ):
        with pytest.raises(ValidationError, match="tls_"):
            Source.model_validate(wrong)


@pytest.mark.parametrize(
    "rest",
    ["pa@planted@h/d", "pa/planted@h/d", "pa#planted@h/d", "planted%zz@h/d", "planted@h:port/d", "planted@[::1/d"],
)
def test_a_url_with_a_bare_password_is_refused_without_it(rest: str) -> None:
    with pytest.raises(ValidationError, match="%40 for @") as refused:
        Target.model_validate({"url": f"postgresql://u:{rest}"})
    assert "planted" not in str(refused.value)


@pytest.mark.parametrize("url", ["postgresql://h:1,i:2/d", "postgresql://u:%40@[::1]:5432/d?x=y", "postgres:///d"])
def test_a_url_as_libpq_takes_it_is_accepted(url: str) -> None:
    assert Target.model_validate({"url": url}).url.get_secret_value() == url


def test_error_of_libpq_is_hidden_because_it_repeats_the_url() -> None:
    with pytest.raises(ConfigError) as refused:
        connect("postgresql://u:planted@h/d?planted=1", "thl")
    assert "planted" not in str(refused.value)


@pytest.mark.parametrize(
    "query", ["password=abcde&Zq7planted9X", "password=abcde&Zq7planted9X=1", "password=a=planted"]
)
def test_readers_of_a_target_hide_the_url_in_errors(query: str) -> None:
    url = Config.model_validate({"target": {"url": f"postgresql://u@h/d?{query}"}}).target.url.get_secret_value()
    table = TableName("s", "t")
    for look in (lambda: read_position(url, "s"), lambda: heartbeat_time(url, "s", table, "n")):
        with pytest.raises(ConfigError) as refused:
            look()
        assert "target.url" in refused.value.fields
        assert "planted" not in str(refused.value)
        assert refused.value.__cause__ is None

"""URLs of MySQL targets, and the options that such a target refuses."""

from __future__ import annotations

import re
import ssl

import pytest
from pydantic import SecretStr, ValidationError

from connector.config.apply import Target
from connector.config.target_url import MySqlAddress, mysql_address, target_kind, tls_attempts
from connector.errors import ConfigError
from connector.targets.mysql.server.connection import unverified


def test_url_is_read_with_its_parameters() -> None:
    found = mysql_address("mysql://u%40x:p%2Fw@db.example:3307/?ssl_mode=VERIFY_CA&ssl_ca=/etc/ca.pem")
    assert found == MySqlAddress("db.example", 3307, "u@x", "p/w", "verify_ca", "/etc/ca.pem")
    certified = mysql_address("mysql://u@db.example/?ssl_cert=/etc/client.pem&ssl_key=/etc/client.key")
    assert (certified.certificate, certified.key) == ("/etc/client.pem", "/etc/client.key")


def test_defaults_are_the_port_and_tls_that_leaves_this_machine() -> None:
    assert mysql_address("mariadb://u@db.example").port == 3306
    assert mysql_address("mysql://u:p@db.example").tls == "preferred"
    assert mysql_address("mysql://u:p@127.0.0.1").tls == "disabled"


@pytest.mark.parametrize(
    "url",
    [
        "mysql://db.example",
        "mysql://u:secret@",
        "mysql://u:secret@db/shop",
        "mysql://u:secret@db:port",
        "mysql://u:secret@db?ssl_mode=some",
        "mysql://u:secret@db?charset=latin1",
        "mysql://u:secret@db?ssl_key=/etc/client.key",
        "mysql://u:secret@127.0.0.1?ssl_cert=/etc/client.pem",
    ],
)
def test_malformed_url_is_refused_without_its_password(url: str) -> None:
    with pytest.raises(ConfigError) as refused:
        mysql_address(url)
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize("scheme", ["mysql", "mariadb"])
def test_both_schemes_name_the_same_kind(scheme: str) -> None:
    assert target_kind(f"{scheme}://u@db") == "mysql"


@pytest.mark.parametrize(
    ("option", "text"),
    [
        ({"writers": 2}, "target.writers > 1 is for PostgreSQL only; a MySQL target has one writer"),
        (
            {"indexes": "all"},
            "target.indexes is for PostgreSQL only; a MySQL target has the source's with target.definitions=source",
        ),
    ],
)
def test_options_of_postgresql_are_refused_with_what_the_target_has(option: dict[str, object], text: str) -> None:
    with pytest.raises(ValidationError, match=re.escape(text)):
        Target.model_validate({"url": SecretStr("mysql://u@db"), **option})


def test_preferred_tls_alone_may_be_tried_without_it() -> None:
    for mode in ("required", "verify_ca", "verify_identity"):
        (only,) = tls_attempts(mysql_address(f"mysql://u:p@db.example?ssl_mode={mode}"))
        assert only is not None
        assert only.check_hostname == (mode == "verify_identity")
        assert (only.verify_mode is ssl.CERT_REQUIRED) == mode.startswith("verify")
    first, second = tls_attempts(mysql_address("mysql://u:p@db.example"))
    assert first is not None
    assert first.verify_mode is ssl.CERT_NONE
    assert second is None
    assert tls_attempts(mysql_address("mysql://u:p@localhost")) == [None]


def test_password_to_an_unverified_server_is_told() -> None:
    assert "ssl_mode is preferred" in unverified("mysql://u:p@db.example")
    assert unverified("mysql://u:p@db.example?ssl_mode=verify_identity") == ""
    assert unverified("mysql://u:p@localhost") == ""


def test_statements_are_executed_by_a_mysql_with_the_sources_definitions() -> None:
    assert Target(url=SecretStr("mysql://u@db"), statements="execute").executes_statements
    assert not Target(url=SecretStr("mysql://u@db")).executes_statements


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"url": "mariadb://u@db"}, "for a MySQL target only"),
        ({"url": "postgresql://u@db/d"}, "for a MySQL target only"),
        ({"url": "sqlite:///f"}, "for a MySQL target only"),
        ({"url": "duckdb:///f"}, "for a MySQL target only"),
        ({"definitions": "plain"}, "needs target.definitions: source"),
        ({"metadata_columns": {"seqno": "s"}}, "knows no rows for target.metadata_columns and target.history"),
        ({"history": ["shop"]}, "knows no rows for target.metadata_columns and target.history"),
    ],
)
def test_options_that_statements_cannot_be_executed_with_are_refused(options: dict[str, object], text: str) -> None:
    with pytest.raises(ValidationError, match=text):
        Target.model_validate({"url": "mysql://u@db", "statements": "execute"} | options)

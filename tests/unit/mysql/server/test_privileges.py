"""The parsing of SHOW GRANTS."""

from __future__ import annotations

import pytest

from connector.mysql.server.privileges import Privileges, parse_grants

USER = "`u`@`%`"


def grants(*lines: str) -> Privileges:
    return parse_grants([f"{line} {'FROM' if line.startswith('REVOKE') else 'TO'} {USER}" for line in lines])


def test_global_privileges_are_parsed() -> None:
    some = grants("GRANT SELECT, REPLICATION SLAVE ON *.*", "GRANT FLUSH_TABLES ON *.*")
    assert some.has("REPLICATION SLAVE")
    assert some.has("RELOAD", "FLUSH_TABLES")
    assert not some.has("REPLICATION CLIENT")
    assert some.may_select("*")
    assert some.may_select("any", "thing")


def test_all_privileges_includes_each() -> None:
    assert grants("GRANT ALL PRIVILEGES ON *.*").has("REPLICATION SLAVE")
    assert grants("GRANT ALL PRIVILEGES ON `shop`.*").may_select("shop")


@pytest.mark.parametrize(
    ("place", "schema", "table", "allowed"),
    [
        ("`shop`.*", "shop", "*", True),
        ("`shop`.*", "shop2", "*", False),
        ("`shop`.*", "*", "*", False),
        ("`sh%`.*", "shop", "*", True),
        ("`s_op`.*", "shop", "*", True),
        (r"`s\_op`.*", "shop", "*", False),
        (r"`s\_op`.*", "s_op", "*", True),
        ("`shop`.`orders`", "shop", "orders", True),
        ("`shop`.`orders`", "shop", "*", False),
        ("`shop`.`orders`", "shop", "lines", False),
        ("`a``b`.`c.d`", "a`b", "c.d", True),
    ],
)
def test_select_covers_matching_tables(place: str, schema: str, table: str, allowed: bool) -> None:
    assert grants(f"GRANT SELECT ON {place}").may_select(schema, table) is allowed


@pytest.mark.parametrize(("schema", "allowed"), [("s_op", True), ("shop", False)])
def test_partial_revokes_make_names_of_schemas_literal(schema: str, allowed: bool) -> None:
    line = f"GRANT SELECT ON `s_op`.* TO {USER}"
    assert parse_grants([line], literal=True).may_select(schema) is allowed
    assert parse_grants([line]).may_select(schema)


def test_partial_revoke_removes_a_schema() -> None:
    some = grants("GRANT SELECT ON *.*", "REVOKE SELECT ON `secret`.*")
    assert not some.may_select("secret")
    assert not some.may_select("*")
    assert some.may_select("shop")


def test_grants_of_roles_and_routines_are_ignored() -> None:
    some = grants(
        "GRANT USAGE ON *.*",
        "GRANT `role`@`%`",
        "GRANT PROXY ON ``@``",
        "GRANT EXECUTE ON PROCEDURE `shop`.`p`",
        "GRANT SELECT (`a`, `b`) ON `shop`.`orders`",
    )
    assert not some.has("SELECT")
    assert not some.may_select("shop", "orders")

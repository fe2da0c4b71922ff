"""The parsing of SHOW GRANTS."""

from __future__ import annotations

import pytest

from connector.mysql.server.privileges import Privileges, granted_roles, parse_grants, unreadable

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


def test_of_the_grants_that_match_a_schema_the_most_specific_counts_alone() -> None:
    """As MySQL 9 and MariaDB 11.4 do."""
    some = grants("GRANT SELECT ON `shop%`.*", "GRANT INSERT ON `shop`.*", "GRANT DELETE ON `sh%`.*")
    assert some.may_select("shop1")
    assert not some.may_select("shop")
    assert not some.may_select("shoe")
    assert grants("GRANT INSERT ON `shop`.*", "GRANT SELECT ON `shop`.*").may_select("shop")


@pytest.mark.parametrize(
    ("places", "asked", "covered"),
    [
        (["`shop%`.*"], "shop*", True),
        (["`shop%`.*"], "shop?", True),
        ([r"`shop\_%`.*"], "shop_*", True),
        ([r"`shop\_%`.*"], "shop*", False),
        (["`shop_`.*"], "shop?", True),
        (["`shop_`.*"], "shop*", False),
        (["`%`.*"], "*", True),
        (["`shop`.*"], "sho?", False),
        (["`a%`.*", "`b%`.*"], "*", False),
        (["*.*"], "*", True),
    ],
)
def test_grants_on_a_pattern_cover_the_schemas_of_a_pattern(places: list[str], asked: str, covered: bool) -> None:
    assert grants(*(f"GRANT SELECT ON {place}" for place in places)).may_select(asked) is covered


@pytest.mark.parametrize(
    ("other", "covered"),
    [
        ("`shop_1`.*", False),
        ("`shop1`.*", False),
        ("`shop%x`.*", False),
        ("`sales`.*", True),
        ("`sh%`.*", True),  # the server takes it for no schema that the other one matches
    ],
)
def test_pattern_is_not_covered_where_a_more_specific_grant_may_count(other: str, covered: bool) -> None:
    assert grants("GRANT SELECT ON `shop%`.*", f"GRANT INSERT ON {other}").may_select("shop*") is covered
    assert grants("GRANT SELECT ON `shop%`.*", f"GRANT SELECT ON {other}").may_select("shop*")


def test_partial_revoke_uncovers_the_patterns_that_match_it() -> None:
    some = grants("GRANT SELECT ON *.*", "REVOKE SELECT ON `shop_2`.*")
    assert not some.may_select("shop*")
    assert some.may_select("sales*")


def test_what_is_unreadable_is_named_as_it_is_to_be_granted() -> None:
    patterns = ["shop_*.*", " a?", "*.log", "one.t", "one.t*", "b%c*"]
    bare = grants("GRANT USAGE ON *.*")
    assert list(unreadable(bare, patterns)) == [
        r"`shop\_%`.*", "`a_`.*", "*.*", "`one`.`t`", "`one`.*", r"`b\%c%`.*",
    ]  # fmt: skip
    for pattern, scope in zip(patterns, unreadable(bare, patterns), strict=True):
        assert not list(unreadable(grants(f"GRANT SELECT ON {scope}"), [pattern]))
    literal = parse_grants([], literal=True)
    assert list(unreadable(literal, ["shop_*"])) == ["*.*"]


def test_letters_of_another_case_are_the_same_where_the_server_says_so() -> None:
    lines = [f"GRANT SELECT ON `shop`.* TO {USER}", f"GRANT SELECT ON `one`.`t` TO {USER}"]
    folded = parse_grants(lines, folds=True)
    assert not list(unreadable(folded, ["Shop", "ONE.T"]))
    assert list(unreadable(parse_grants(lines), ["Shop", "ONE.T"])) == ["`Shop`.*", "`ONE`.`T`"]


def test_roles_are_read_from_the_lines_that_grant_them() -> None:
    lines = [
        "GRANT USAGE ON *.* TO `u`@`%`",
        "GRANT `a`@`%`,`b c`@`h` TO `u`@`%`",
        "GRANT `r` TO `u`@`%` WITH ADMIN OPTION",
    ]
    assert granted_roles(lines) == ["`a`@`%`", "`b c`@`h`", "`r`"]


def test_grant_whose_text_before_its_wildcard_is_shorter_than_that_asked_for_may_count() -> None:
    assert not grants("GRANT SELECT ON `shop%`.*", "GRANT INSERT ON `shop%x`.*").may_select("shop_1*")


@pytest.mark.parametrize("place", ["`shop`.*", "`shop`.`t`"])
@pytest.mark.parametrize("names", [("SELECT", "INSERT"), ("INSERT", "SELECT")])
def test_lines_for_one_place_add_up(place: str, names: tuple[str, str]) -> None:
    assert grants(*(f"GRANT {name} ON {place}" for name in names)).may_select("shop", "t")


def test_partial_revoke_of_another_privilege_leaves_select() -> None:
    assert grants("GRANT SELECT, INSERT ON *.*", "REVOKE INSERT ON `shop`.*").may_select("shop")


def test_partial_revoke_counts_for_letters_of_another_case() -> None:
    lines = [f"GRANT SELECT ON *.* TO {USER}", f"REVOKE SELECT ON `Secret`.* FROM {USER}"]
    assert not parse_grants(lines, folds=True).may_select("SECRET")
    assert parse_grants(lines).may_select("SECRET")


def test_names_of_schemas_are_read_to_their_end_and_a_star_is_a_name_between_backticks() -> None:
    found = parse_grants([f"GRANT SELECT ON `{name}`.* TO `u`@`%`" for name in ("a TO b", "a ON b", "*")])
    assert [found.may_select(name) for name in ("a TO b", "a ON b", "other")] == [True, True, False]


def test_partial_revoke_leaves_what_is_granted_on_a_table() -> None:
    some = grants("GRANT SELECT ON *.*", "REVOKE SELECT ON `shop`.*", "GRANT SELECT ON `shop`.`seen`")
    assert some.may_select("shop", "seen")
    assert not some.may_select("shop", "other")
    assert not some.may_select("shop")

"""What a user of a MySQL target has and lacks, from the lines of SHOW GRANTS."""

from __future__ import annotations

import pytest

from connector.targets.mysql.entrance import NEEDED, REFERENCES
from connector.targets.mysql.server.grants import Granted, granted_to
from tests.support.grants import granted

ALL = (*NEEDED, REFERENCES)
HERE = "TO `thl`@`%`"


def lacks(*lines: str) -> dict[str, list[str]]:
    return granted_to(lines).lacking(ALL)


@pytest.mark.parametrize("file", ["mysql-target.sql", "mariadb-target.sql"])
def test_the_documented_grants_suffice(file: str) -> None:
    assert lacks(*(f"GRANT {one} {HERE}" for one in granted(file, "tables"))) == {}


@pytest.mark.parametrize("scope", ["*.*", "`shop`.*"])
def test_all_privileges_suffice_everywhere_and_on_every_database(scope: str) -> None:
    lines = [f"GRANT ALL PRIVILEGES ON {scope} {HERE}", f"GRANT ALL PRIVILEGES ON `thl`.* {HERE}"]
    assert lacks(*lines) == {}


def test_a_user_without_databases_needs_them_everywhere() -> None:
    assert lacks(f"GRANT USAGE ON *.* {HERE}") == {"*": list(ALL)}
    assert lacks(f"GRANT {', '.join(NEEDED)} ON *.* {HERE}", f"GRANT SELECT ON `reports`.* {HERE}") == {
        "*": [REFERENCES]
    }
    assert lacks(f"GRANT {', '.join(ALL)} ON `thl`.* {HERE}") == {"*": list(ALL)}


def test_a_user_of_databases_needs_them_on_each_and_on_thl() -> None:
    on_shop = f"GRANT {', '.join(NEEDED)} ON `shop`.* {HERE}"
    assert lacks(f"GRANT CREATE, SELECT ON *.* {HERE}", on_shop) == {
        "`thl`": [name for name in ALL if name not in {"CREATE", "SELECT"}],
        "`shop`": [REFERENCES],
    }


def test_grants_on_tables_routines_and_roles_are_none_on_a_database() -> None:
    lines = [
        f"GRANT INSERT ON `shop`.`t` {HERE}",
        "GRANT `r`@`%` TO `thl`@`%`",
        f"GRANT EXECUTE ON PROCEDURE `s`.`p` {HERE}",
    ]
    assert granted_to(lines) == Granted()


@pytest.mark.parametrize(
    ("schema", "granted"),
    [("shop_1", True), ("shop_", True), ("shopping", False), ("a`b", True), ("some", False), ("thl", False)],
)
def test_privilege_on_a_database_is_that_of_the_patterns_that_match_it(schema: str, granted: bool) -> None:
    lines = [
        f"GRANT SELECT, TRIGGER ON `shop\\_%`.* {HERE}",
        f"GRANT ALL PRIVILEGES ON `a``b`.* {HERE} WITH GRANT OPTION",
        f"GRANT SELECT, TRIGGER ON `some`.`table` {HERE}",
    ]
    assert granted_to(lines).has("TRIGGER", schema) is granted


def test_privilege_on_everything_is_one_on_each_database() -> None:
    assert granted_to([f"GRANT SELECT, TRIGGER ON *.* {HERE}"]).has("TRIGGER", "shop")
    assert not granted_to([f"GRANT SELECT ON *.* {HERE}"]).has("TRIGGER", "shop")


def test_known_databases_are_asked_for_and_no_others() -> None:
    lines = [
        f"GRANT {', '.join(ALL)} ON `thl`.* {HERE}",
        f"GRANT {', '.join(ALL)} ON `shop`.* {HERE}",
        f"GRANT INSERT ON `reports`.* {HERE}",
    ]
    assert granted_to(lines).lacking(ALL, ["shop"]) == {}
    assert granted_to(lines).lacking(ALL, ["sales", "shop"]) == {"`sales`": list(ALL)}
    assert Granted().lacking(["SELECT"], ["shop"]) == {"`thl`": ["SELECT"], "`shop`": ["SELECT"]}


@pytest.mark.parametrize("scope", ["%", "th_"])
def test_a_pattern_gives_privileges_on_thl_and_on_known_databases(scope: str) -> None:
    line = f"GRANT {', '.join(ALL)} ON `{scope}`.* {HERE}"
    assert lacks(line) == {}
    assert granted_to([line]).lacking(ALL, ["tho"]) == {}


def test_of_the_grants_that_match_a_database_the_most_specific_counts_alone() -> None:
    lines = [f"GRANT ALL PRIVILEGES ON `%`.* {HERE}", f"GRANT SELECT ON `shop`.* {HERE}"]
    assert granted_to(lines).lacking(["SELECT", "TRIGGER"], ["shop", "sales"]) == {"`shop`": ["TRIGGER"]}
    assert not granted_to(lines).has("TRIGGER", "shop")
    assert granted_to(lines).has("TRIGGER", "shop2")


@pytest.mark.parametrize("names", [("SELECT", "TRIGGER"), ("TRIGGER", "SELECT")])
def test_lines_for_one_database_add_up(names: tuple[str, str]) -> None:
    lines = [f"GRANT {name} ON `shop`.* {HERE}" for name in names]
    assert all(granted_to(lines).has(name, "shop") for name in names)


def test_what_is_granted_everywhere_is_not_lacking_on_a_database() -> None:
    lines = [f"GRANT SELECT ON *.* {HERE}", f"GRANT INSERT ON `shop`.* {HERE}", f"GRANT INSERT ON `thl`.* {HERE}"]
    assert granted_to(lines).lacking(["SELECT", "INSERT"]) == {}


def test_a_lacking_database_is_quoted_for_grant() -> None:
    assert Granted().lacking(["SELECT"], ["a`b"]) == {"`thl`": ["SELECT"], "`a``b`": ["SELECT"]}


def test_letters_of_another_case_are_the_same_where_the_server_says_so() -> None:
    lines = [f"GRANT {', '.join(ALL)} ON `{one}`.* {HERE}" for one in ("Sh_p", "THL")]
    assert granted_to(lines, folds=True).lacking(ALL, ["SHOP"]) == {}
    assert granted_to(lines).lacking(["DROP"], ["Shop", "shop"]) == {"`thl`": ["DROP"], "`shop`": ["DROP"]}


def test_partial_revoke_takes_a_privilege_on_everything_from_one_database() -> None:
    lines = [f"GRANT {', '.join(ALL)} ON *.* {HERE}", "REVOKE INSERT, DROP ON `shop`.* FROM `thl`@`%`"]
    found = granted_to(lines, literal=True)
    assert found.lacking(ALL, ["shop", "sales"]) == {"`shop`": ["DROP", "INSERT"]}
    assert found.lacking(ALL) == {}  # the log need not have it
    assert found.kept_from(ALL) == {"`shop`": ["DROP", "INSERT"]}
    assert found.kept_from(["SELECT"]) == {}
    assert not granted_to(lines, folds=True).has("DROP", "SHOP")
    assert not granted_to([f"GRANT ALL PRIVILEGES ON *.* {HERE}", lines[1]]).has("DROP", "shop")


def test_partial_revoke_leaves_what_is_granted_on_the_database() -> None:
    lines = [
        f"GRANT INSERT, DROP ON *.* {HERE}",
        f"GRANT INSERT ON `shop`.* {HERE}",
        "REVOKE INSERT, DROP ON `shop`.* FROM `thl`@`%`",
    ]
    assert granted_to(lines).lacking(["INSERT", "DROP"]) == {"`shop`": ["DROP"]}
    assert granted_to(lines).kept_from(["INSERT", "DROP"]) == {"`shop`": ["DROP"]}


def test_partial_revoke_on_the_bookkeeping_is_found_without_known_databases() -> None:
    lines = [f"GRANT {', '.join(ALL)} ON *.* {HERE}", "REVOKE INSERT ON `thl`.* FROM `thl`@`%`"]
    assert lacks(*lines) == {"`thl`": ["INSERT"]}


@pytest.mark.parametrize(("pattern", "schema"), [("shop_1", "shop_1"), ("shop\\_1", "shop\\_1"), ("%", "%")])
def test_partial_revokes_make_each_character_of_a_pattern_stand_for_itself(pattern: str, schema: str) -> None:
    found = granted_to([f"GRANT INSERT ON `{pattern}`.* {HERE}"], literal=True)
    named = ["shop_1", "shopx1", "shop\\_1", "%"]
    assert [one for one in named if found.has("INSERT", one)] == [schema]

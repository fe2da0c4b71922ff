"""The definitions of a table on PostgreSQL: NOT NULL, defaults and comments as the source has them."""

from __future__ import annotations

import pytest

from connector.errors import TargetDiffers, Unsupported
from tests.contract.target_suite import Applier, stops
from tests.contract.test_target_postgres import PostgresPlace, database, place
from tests.support.net import layout, net

__all__ = ["database", "place"]  # fixtures

ITEM = ["id int not null", "n int not null", "d date"]
ITEMS = layout("shop.items", ITEM, ["id"])
CREATE = "CREATE TABLE items (id INT, n INT NOT NULL, d DATE NULL, PRIMARY KEY (id))"


@pytest.fixture
def items(place: PostgresPlace) -> Applier:
    applier = Applier(place.open())
    applier.sql("CREATE DATABASE shop", CREATE)
    applier.rows(net(ITEMS, inserts=[(1, 7, None)]))
    return applier


def not_null(place: PostgresPlace, table: str = "items") -> list[str]:
    """The NOT NULL columns, in order."""
    sql = (
        f"SELECT attname::text FROM pg_attribute WHERE attrelid = 'shop.{table}'::regclass AND attnum > 0 "
        "AND attnotnull AND NOT attisdropped ORDER BY attnum"
    )
    return [str(name) for (name,) in place.query(sql)]


@pytest.mark.parametrize(
    ("statements", "expected"),
    [
        ([], ["id", "n"]),
        (["ALTER TABLE items MODIFY n BIGINT"], ["id"]),
        (["ALTER TABLE items CHANGE n m BIGINT NOT NULL"], ["id", "m"]),
        (["ALTER TABLE items RENAME COLUMN n TO m"], ["id", "m"]),
        (["ALTER TABLE items MODIFY n INT", "ALTER TABLE items MODIFY n INT NOT NULL"], ["id", "n"]),
        (["ALTER TABLE items ADD s VARCHAR(9) NOT NULL, ADD t VARCHAR(9)"], ["id", "n", "s"]),
        (["ALTER TABLE items ADD s INT NOT NULL DEFAULT 5"], ["id", "n", "s"]),
        (["ALTER TABLE items DROP PRIMARY KEY"], ["id", "n"]),
        (["ALTER TABLE items DROP PRIMARY KEY, MODIFY id INT"], ["n"]),
        (["DROP INDEX `PRIMARY` ON items"], ["id", "n"]),
        (["ALTER TABLE items DROP PRIMARY KEY, ADD PRIMARY KEY (n)"], ["id", "n"]),
        (["ALTER TABLE items DROP PRIMARY KEY", "ALTER TABLE items MODIFY n INT, MODIFY id INT"], []),
        (["ALTER TABLE items DROP n, ADD n DATE NOT NULL DEFAULT '2024-01-01'"], ["id", "n"]),
        (["ALTER TABLE items ADD g INT AS (n + 1) VIRTUAL NOT NULL"], ["id", "n"]),
    ],
)
def test_columns_are_not_null_as_the_source_has_them(
    place: PostgresPlace, items: Applier, statements: list[str], expected: list[str]
) -> None:
    if "AS (" in "".join(statements):
        items.rows(net(ITEMS, deletes=[(1, 7, None)]))  # only the source knows computed values
    for statement in statements:
        items.sql(statement)
    assert not_null(place) == expected
    items.target.close()
    again = Applier(place.open())
    again.sql("CREATE TABLE more LIKE items")
    assert not_null(place, "more") == expected


def test_not_null_column_fills_existing_rows_first(place: PostgresPlace, items: Applier) -> None:
    items.sql(
        "ALTER TABLE items ADD s VARCHAR(9) NOT NULL, ADD e ENUM('x', 'y') NOT NULL, ADD k INT NOT NULL DEFAULT 5"
    )
    columns = [*ITEM, "s varchar(9) not null", "e enum('x','y') not null", "k int not null"]
    assert place.read(layout("shop.items", columns)) == [(1, 7, None, "", "x", 5)]
    assert defaults(place) == {"k": "5"}  # an implicit default is none of an insert


def test_column_with_nulls_that_becomes_not_null_stops(items: Applier) -> None:
    assert stops(items, Unsupported, "ALTER TABLE items MODIFY d DATE NOT NULL").where["seqno"]


@pytest.mark.parametrize("off", [True, False])
def test_timestamp_is_not_null_by_the_source_setting(place: PostgresPlace, items: Applier, off: bool) -> None:
    value = "0" if off else "1"
    items.sql("CREATE TABLE stamps (a TIMESTAMP, b TIMESTAMP NULL)", explicit_defaults_for_timestamp=value)
    assert not_null(place, "stamps") == (["a"] if off else [])


def test_nulls_that_the_row_layout_announces_are_applied(place: PostgresPlace, items: Applier) -> None:
    """As a rule with zero_dates publishes them, whose definitions said NOT NULL in earlier versions."""
    nulls = layout("shop.items", ["id int not null", "n int", "d date"], ["id"])
    items.target.stage([net(nulls, inserts=[(2, 8, None)])], last=False)
    items.target.discard()
    assert not_null(place) == ["id", "n"]
    items.rows(net(nulls, inserts=[(2, None, None)]))
    assert not_null(place) == ["id"]
    items.target.close()
    again = Applier(place.open())
    again.sql("ALTER TABLE items CHANGE n m BIGINT NOT NULL, ADD x INT NOT NULL DEFAULT 1")
    again.rows(net(layout("shop.items", ["id int not null", "m bigint", "d date", "x int not null"], ["id"]),
                   updates=[(1, None, None, 2)]))  # fmt: skip
    assert place.query("SELECT id, m, x FROM shop.items ORDER BY id") == [(1, None, 2), (2, None, 1)]
    again.sql("CREATE TABLE more LIKE items")
    assert not_null(place) == not_null(place, "more") == ["id", "x"]


def test_created_table_takes_nulls_of_rows_in_the_same_event(place: PostgresPlace, items: Applier) -> None:
    items.stage_sql("CREATE TABLE copy (id INT NOT NULL, d DATE NOT NULL) START TRANSACTION")
    items.target.stage([net(layout("shop.copy", ["id int not null", "d date"]), inserts=[(1, None)])], last=True)
    items.commit()
    assert place.query("SELECT id, d FROM shop.copy") == [(1, None)]


def test_null_in_a_not_null_column_is_refused_with_the_remedy(place: PostgresPlace, items: Applier) -> None:
    change = net(ITEMS, inserts=[(2, None, None)])
    items.target.stage([change], last=True)
    with pytest.raises(TargetDiffers) as stopped:
        items.commit()
    assert (stopped.value.where["table"], stopped.value.where["column"]) == ("shop.items", "n")
    remedy = 'ALTER TABLE "shop"."items" ALTER COLUMN "n" DROP NOT NULL'
    assert remedy in stopped.value.hint
    items.target.discard()
    place.run(remedy)
    again = Applier(place.open())
    again.rows(change)
    assert place.read(ITEMS) == [(1, 7, None), (2, None, None)]
    again.sql("ALTER TABLE items MODIFY n BIGINT NOT NULL, ADD x INT NOT NULL")
    again.sql("ALTER TABLE items MODIFY n BIGINT")


def test_table_of_an_earlier_version_without_not_null_is_altered(place: PostgresPlace, items: Applier) -> None:
    place.run("ALTER TABLE shop.items ALTER n DROP NOT NULL")
    items.sql("ALTER TABLE items MODIFY n BIGINT NOT NULL", "ALTER TABLE items MODIFY n BIGINT")
    items.sql("ALTER TABLE items MODIFY n BIGINT NOT NULL, DROP PRIMARY KEY, ADD PRIMARY KEY (n)")
    assert not_null(place) == ["id", "n"]


def defaults(place: PostgresPlace, table: str = "items") -> dict[str, str]:
    """The defaults, as PostgreSQL prints them."""
    sql = (
        "SELECT attname::text, pg_get_expr(adbin, adrelid) FROM pg_attrdef JOIN pg_attribute "
        f"ON attrelid = adrelid AND attnum = adnum WHERE adrelid = 'shop.{table}'::regclass ORDER BY attnum"
    )
    return {str(name): str(default) for name, default in place.query(sql)}


@pytest.mark.parametrize(
    ("statements", "expected"),
    [
        (["ALTER TABLE items ADD s VARCHAR(9) NOT NULL DEFAULT 'it''s', ADD t INT NOT NULL"], {"s": "'it''s'::text"}),
        (["ALTER TABLE items ADD s INT DEFAULT 5", "ALTER TABLE items MODIFY s BIGINT DEFAULT 5"],
         {"s": "'5'::bigint"}),
        (["ALTER TABLE items ADD s INT DEFAULT 5", "ALTER TABLE items MODIFY s BIGINT"], {}),
        (["ALTER TABLE items ADD s INT DEFAULT 5", "ALTER TABLE items CHANGE s r INT DEFAULT 6"], {"r": "6"}),
        (["ALTER TABLE items ADD s INT DEFAULT 5", "ALTER TABLE items RENAME COLUMN s TO n, RENAME COLUMN n TO s"],
         {"n": "5"}),
        (["ALTER TABLE items ALTER n SET DEFAULT 5"], {"n": "5"}),
        (["ALTER TABLE items ALTER n SET DEFAULT 5", "ALTER TABLE items ALTER n DROP DEFAULT"], {}),
        (["ALTER TABLE items ALTER n SET DEFAULT 5", "ALTER TABLE items ALTER n SET DEFAULT (RAND())"], {}),
        (["ALTER TABLE items ALTER n SET DEFAULT 5", "ALTER TABLE items ALTER n SET DEFAULT NULL"], {}),
        (["ALTER TABLE items ALTER n SET DEFAULT 5",
          "ALTER TABLE items ADD e ENUM('x', 'y') NOT NULL DEFAULT 'y', DROP d"],
         {"n": "5", "e": "'y'::text"}),
        (["ALTER TABLE items ADD e ENUM('x', 'y') DEFAULT 'y'",
          "ALTER TABLE items MODIFY e VARCHAR(9) CHARACTER SET utf8mb4 DEFAULT 'y'"], {"e": "'y'::text"}),
        (["ALTER TABLE items ADD s VARCHAR(9) CHARACTER SET utf8mb4 DEFAULT 'y'",
          "ALTER TABLE items DROP PRIMARY KEY, MODIFY s VARCHAR(9) CHARACTER SET utf8mb4 NOT NULL DEFAULT 'y', "
          "ADD PRIMARY KEY (s)"], {"s": "'y'::text"}),
        (["ALTER TABLE items MODIFY d DATE DEFAULT '0000-00-00'"], {}),
        (["ALTER TABLE items ADD s VARCHAR(9) DEFAULT 'a\\0b'"], {}),
        (["ALTER TABLE items ADD s INT DEFAULT (1 + 1)"], {}),
    ],
)  # fmt: skip
def test_defaults_are_those_of_the_source(
    place: PostgresPlace, items: Applier, statements: list[str], expected: dict[str, str]
) -> None:
    items.rows(net(ITEMS, deletes=[(1, 7, None)]))
    for statement in statements:
        items.sql(statement)
    assert defaults(place) == expected
    items.target.close()
    again = Applier(place.open())
    again.sql("CREATE TABLE more LIKE items")
    assert defaults(place, "more") == defaults(place)


def test_current_time_is_a_default_of_a_timestamp_only(place: PostgresPlace, items: Applier) -> None:
    items.sql(
        "CREATE TABLE times (a TIMESTAMP DEFAULT CURRENT_TIMESTAMP, b TIMESTAMP(3) NOT NULL DEFAULT NOW(3), "
        "c TIMESTAMP(6) DEFAULT CURRENT_TIMESTAMP(6), d DATETIME DEFAULT CURRENT_TIMESTAMP, "
        "e TIMESTAMP(6) DEFAULT NOW(), f TIMESTAMP(2) DEFAULT NOW(2), n INT AUTO_INCREMENT UNIQUE)"
    )
    assert list(defaults(place, "times")) == ["a", "b", "c"]
    with place.reader.transaction():
        place.run("INSERT INTO shop.times (n) VALUES (1)")
        # MySQL cuts the fraction off; a cast would round it.
        now = "date_trunc('second', a) = a AND a = date_trunc('second', c) AND b = date_trunc('milliseconds', c)"
        assert place.query(f"SELECT {now}, statement_timestamp() - c < '1 minute' FROM shop.times") == [(True, True)]


def test_added_column_with_the_current_time_fills_existing_rows_with_the_statements(
    place: PostgresPlace, items: Applier
) -> None:
    items.sql("ALTER TABLE items ADD at TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP", timestamp="1700000000")
    assert place.query("SELECT extract(epoch FROM at)::int FROM shop.items") == [(1700000000,)]
    assert "statement_timestamp" in defaults(place)["at"]


def test_default_fills_no_value_of_the_log(place: PostgresPlace, items: Applier) -> None:
    """Neither in a row that has NULL, nor in one of which the log has not every column."""
    items.sql("ALTER TABLE items MODIFY d DATE DEFAULT '2024-01-01', ADD s INT DEFAULT 5")
    table = layout("shop.items", [*ITEM, "s int"], ["id"])
    items.rows(net(table, inserts=[(2, 7, None, None)], updates=[(1, 8, None, None)]))
    items.sql("ALTER TABLE items ALTER d SET DEFAULT '2024-02-02', ALTER s SET DEFAULT 6")
    items.rows(net(table, added=[{"id": 3, "n": 1}], changed=[({"n": 9}, (2,))], moved=[({"id": 4}, (1,))]))
    assert place.read(table) == [(2, 9, None, None), (3, 1, "2024-02-02", 6), (4, 8, None, None)]


def test_default_of_a_user_on_a_table_of_an_earlier_version_stays(place: PostgresPlace, items: Applier) -> None:
    place.run("ALTER TABLE shop.items ALTER n SET DEFAULT 3")
    place.run("UPDATE thl.thl_tables SET definition = (definition::jsonb - 'declared' - 'defaults')::text")
    items.target.close()
    again = Applier(place.open())
    again.sql("ALTER TABLE items ADD s INT, DROP d", "ALTER TABLE items MODIFY n BIGINT NOT NULL")
    assert defaults(place) == {"n": "3"}


def comments(place: PostgresPlace, table: str = "items") -> dict[str, str]:
    """The comments by the column's name; the table's by the empty name."""
    sql = (
        "SELECT coalesce(attname::text, ''), description FROM pg_description d LEFT JOIN pg_attribute a "
        f"ON attrelid = objoid AND attnum = objsubid AND attnum > 0 WHERE objoid = 'shop.{table}'::regclass "
        "AND classoid = 'pg_class'::regclass ORDER BY objsubid"
    )
    return {str(name): str(text) for name, text in place.query(sql)}


NOTED = "CREATE TABLE noted (id INT PRIMARY KEY COMMENT 'the key', n INT COMMENT 'it''s\\n', x INT) COMMENT='a table'"


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("", {"": "a table", "id": "the key", "n": "it's\n"}),
        ("ALTER TABLE noted MODIFY n BIGINT", {"": "a table", "id": "the key"}),
        ("ALTER TABLE noted MODIFY n BIGINT COMMENT 'more', COMMENT 'other'",
         {"": "other", "id": "the key", "n": "more"}),
        ("ALTER TABLE noted COMMENT = ''", {"id": "the key", "n": "it's\n"}),
        ("ALTER TABLE noted RENAME COLUMN n TO x, RENAME COLUMN x TO n",
         {"": "a table", "id": "the key", "x": "it's\n"}),
        ("ALTER TABLE noted DROP n, ADD n INT, ADD z INT COMMENT '\\0\\\\'",
         {"": "a table", "id": "the key", "z": "\ufffd\\"}),
        ("RENAME TABLE noted TO other, other TO noted", {"": "a table", "id": "the key", "n": "it's\n"}),
    ],
)  # fmt: skip
def test_comments_are_those_of_the_source(
    place: PostgresPlace, items: Applier, statement: str, expected: dict[str, str]
) -> None:
    items.sql(NOTED)
    if statement:
        items.sql(statement)
    assert comments(place, "noted") == expected
    items.target.close()
    again = Applier(place.open())
    again.sql("CREATE TABLE more LIKE noted", "ALTER TABLE noted COMMENT 'new', MODIFY id INT COMMENT 'number'")
    assert comments(place, "more") == expected
    assert comments(place, "noted") == {**expected, "": "new", "id": "number"}


def test_comment_is_read_as_the_session_writes_it(place: PostgresPlace, items: Applier) -> None:
    items.sql("ALTER TABLE items COMMENT 'a\\n'", sql_mode=str(1 << 20))
    assert comments(place) == {"": "a\\n"}


def test_table_of_an_earlier_version_gets_the_comments_that_statements_say(
    place: PostgresPlace, items: Applier
) -> None:
    items.sql(NOTED)
    place.run("UPDATE thl.thl_tables SET definition = (definition::jsonb - 'comment' - 'comments')::text")
    place.run("COMMENT ON COLUMN shop.noted.x IS 'ours'; COMMENT ON TABLE shop.noted IS 'ours'")
    items.target.close()
    again = Applier(place.open())
    again.sql("ALTER TABLE noted ADD y INT COMMENT 'new', MODIFY n BIGINT COMMENT 'n'")
    assert comments(place, "noted") == {"": "ours", "id": "the key", "n": "n", "x": "ours", "y": "new"}

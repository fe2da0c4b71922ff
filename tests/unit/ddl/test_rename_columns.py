"""Definitions with the names under which columns are published."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connector.ddl.column_mentions import ColumnNames
from connector.ddl.mariadb import ServerDialect
from connector.ddl.rename_columns import RenameContext, rename_columns
from connector.ddl.schema_changes import schema_changes
from connector.ddl.schema_draft import Rules
from connector.ddl.syntax.ast import CreateTableStatement
from connector.ddl.syntax.parse import parse
from connector.ddl.syntax.tokens import Lexeme, readings
from connector.ddl.table_spec import table_spec
from connector.errors import Unsupported
from connector.log.transaction.batch import Statement
from connector.log.transaction.definition import Definitions, TableDefinition
from connector.log.transaction.layout import Column, TableLayout, TableName
from connector.log.transaction.statement_options import DIALECT, MARIADB_DIALECT

T = TableName("shop", "t")


@dataclass(frozen=True)
class Renamed:
    """`a` is published as `new`, `day` as `at``day`, `low` as `LOW`; `gone` is dropped, and `late` has its name."""

    names: Mapping[str, str] = field(
        default_factory=lambda: {"a": "new", "day": "at`day", "low": "LOW", "late": "gone"}
    )

    def drops(self, column: str) -> bool:
        return column.lower() == "gone"


RULES = Renamed()


def of(name: TableName) -> ColumnNames | None:
    return RULES if name.table.lower() in ("t", "u") else None


def table(*columns: str, name: TableName = T) -> TableLayout:
    return TableLayout(name, tuple(Column(column, "int") for column in columns))


def published(sql: str, after: TableLayout | None = None, schema: str = "shop", **options: str) -> str:
    known = {after.name: after} if after else {}
    return rename_columns(Statement(schema, sql, options), RenameContext(of, known.get, str.lower)).sql


@pytest.mark.parametrize(
    ("sql", "named"),
    [
        ("CREATE TABLE t (id INT, A INT)", "CREATE TABLE t (id INT, `new` INT)"),
        ("CREATE TABLE t (a INT PRIMARY KEY)", "CREATE TABLE t (`new` INT PRIMARY KEY)"),
        (
            "CREATE TABLE `t` (\n  `a` int COMMENT 'a, `a`',  # a\n  `a2` enum('a','b'), -- `a`\n  PRIMARY KEY (`a`),\n"
            "  UNIQUE KEY `a` (`a2`,`a`(3) DESC),\n  CONSTRAINT `a` CHECK ((`a` > 'a'))\n) ENGINE=a COMMENT='a'",
            "CREATE TABLE `t` (\n  `new` int COMMENT 'a, `a`',  # a\n  `a2` enum('a','b'), -- `a`\n  "
            "PRIMARY KEY (`new`),\n"
            "  UNIQUE KEY `a` (`a2`,`new`(3) DESC),\n  CONSTRAINT `a` CHECK ((`new` > 'a'))\n) ENGINE=a COMMENT='a'",
        ),
        (
            "CREATE TABLE t (b INT, a INT REFERENCES v (a) ON DELETE SET NULL, "
            "FOREIGN KEY a (a, b) REFERENCES v(a, b))",
            "CREATE TABLE t (b INT, `new` INT REFERENCES v (a) ON DELETE SET NULL, "
            "FOREIGN KEY a (`new`, b) REFERENCES v(a, b))",
        ),
        (
            "CREATE TABLE t (a INT, FOREIGN KEY (a) REFERENCES other.t (a), FOREIGN KEY (a) REFERENCES T (a))",
            "CREATE TABLE t (`new` INT, FOREIGN KEY (`new`) REFERENCES other.t (a), "
            "FOREIGN KEY (`new`) REFERENCES T (`new`))",
        ),
        (
            "CREATE TABLE t (a INT, x INT GENERATED ALWAYS AS (a(a) + 'a' - `a`) STORED CHECK (x > a), "
            "y INT DEFAULT (a), z JSON AS (a->'$.a'))",
            "CREATE TABLE t (`new` INT, x INT GENERATED ALWAYS AS (a(`new`) + 'a' - `new`) STORED CHECK (x > `new`), "
            "y INT DEFAULT (`new`), z JSON AS (`new`->'$.a'))",
        ),
        (
            "CREATE TABLE t (a INT, day DATE, CHECK (day > 5 AND DAY(a) = 5 AND 1 + INTERVAL 1 DAY > `day`), "
            "CHECK (EXTRACT(DAY FROM day) > 0), CHECK ((day) IS NULL))",
            "CREATE TABLE t (`new` INT, `at``day` DATE, CHECK (`at``day` > 5 AND DAY(`new`) = 5 AND 1 + INTERVAL 1 "
            "DAY > `at``day`), CHECK (EXTRACT(DAY FROM `at``day`) > 0), CHECK ((`at``day`) IS NULL))",
        ),
        (
            "CREATE TABLE t (a INT) PARTITION BY RANGE (a) SUBPARTITION BY KEY (a) (PARTITION a VALUES LESS THAN (5))",
            "CREATE TABLE t (`new` INT) PARTITION BY RANGE (`new`) SUBPARTITION BY KEY (`new`) "
            "(PARTITION a VALUES LESS THAN (5))",
        ),
        (
            "CREATE TABLE t (a INT)\n/*!50500 PARTITION BY LIST  COLUMNS(a)\n(PARTITION a VALUES IN (1)) */",
            "CREATE TABLE t (`new` INT)\n/*!50500 PARTITION BY LIST  COLUMNS(`new`)\n(PARTITION a VALUES IN (1)) */",
        ),
        (
            "CREATE TABLE t (a INT /*!80023 INVISIBLE */, b INT /*!80016 CHECK (a > b) */)",
            "CREATE TABLE t (`new` INT /*!80023 INVISIBLE */, b INT /*!80016 CHECK (`new` > b) */)",
        ),
        ("CREATE TABLE t (low INT, KEY (LOW))", "CREATE TABLE t (`LOW` INT, KEY (`LOW`))"),
        ("CREATE TABLE t (late INT)", "CREATE TABLE t (`gone` INT)"),
        ("CREATE TABLE t (x INT, new INT, KEY a (new))", "CREATE TABLE t (x INT, new INT, KEY a (new))"),
        ("CREATE TABLE t (x DATE, CHECK (CAST(x AS new) > 1))", "CREATE TABLE t (x DATE, CHECK (CAST(x AS new) > 1))"),
        (
            "ALTER TABLE t ADD a INT NOT NULL AFTER A, ADD COLUMN b INT DEFAULT (`a`) FIRST, ADD INDEX a (a), "
            "ADD (x INT AS (a), UNIQUE (a))",
            "ALTER TABLE t ADD `new` INT NOT NULL AFTER `new`, ADD COLUMN b INT DEFAULT (`new`) FIRST, "
            "ADD INDEX a (`new`), ADD (x INT AS (`new`), UNIQUE (`new`))",
        ),
        (
            "ALTER TABLE t DROP a, DROP COLUMN a CASCADE, DROP INDEX a, DROP CHECK a, DROP FOREIGN KEY a, "
            "DROP PRIMARY KEY, DROP CONSTRAINT a",
            "ALTER TABLE t DROP `new`, DROP COLUMN `new` CASCADE, DROP INDEX a, DROP CHECK a, DROP FOREIGN KEY a, "
            "DROP PRIMARY KEY, DROP CONSTRAINT a",
        ),
        (
            "ALTER TABLE t MODIFY a BIGINT AFTER b, CHANGE COLUMN a c INT AFTER a, CHANGE c a INT, CHANGE a A INT",
            "ALTER TABLE t MODIFY `new` BIGINT AFTER b, CHANGE COLUMN `new` c INT AFTER `new`, CHANGE c `new` INT, "
            "CHANGE `new` `new` INT",
        ),
        (
            "ALTER TABLE t RENAME COLUMN a TO new, RENAME COLUMN b TO a, RENAME INDEX a TO a, RENAME u",
            "ALTER TABLE t RENAME COLUMN `new` TO new, RENAME COLUMN b TO `new`, RENAME INDEX a TO a, RENAME u",
        ),
        (
            "ALTER TABLE t ALTER a SET DEFAULT 'a', ALTER COLUMN a SET DEFAULT (a), ALTER a DROP DEFAULT, ALTER INDEX "
            "a INVISIBLE, ALTER CHECK a NOT ENFORCED",
            "ALTER TABLE t ALTER `new` SET DEFAULT 'a', ALTER COLUMN `new` SET DEFAULT (`new`), ALTER `new` DROP "
            "DEFAULT, ALTER INDEX a INVISIBLE, ALTER CHECK a NOT ENFORCED",
        ),
        ("ALTER TABLE t ENGINE=a, ORDER BY b, a DESC", "ALTER TABLE t ENGINE=a, ORDER BY b, `new` DESC"),
        (
            "ALTER TABLE t DROP INDEX a, ADD CHECK (a > 0) NOT ENFORCED, FORCE PARTITION BY LINEAR HASH (a) "
            "PARTITIONS 4",
            "ALTER TABLE t DROP INDEX a, ADD CHECK (`new` > 0) NOT ENFORCED, FORCE PARTITION BY LINEAR HASH (`new`) "
            "PARTITIONS 4",
        ),
        (
            "ALTER TABLE t ENGINE=InnoDB PARTITION BY KEY ALGORITHM=2 (a)",
            "ALTER TABLE t ENGINE=InnoDB PARTITION BY KEY ALGORITHM=2 (`new`)",
        ),
        (
            "ALTER TABLE t ADD PARTITION (PARTITION a VALUES LESS THAN (5))",
            "ALTER TABLE t ADD PARTITION (PARTITION a VALUES LESS THAN (5))",
        ),
        ("ALTER TABLE t DROP PARTITION b, a", "ALTER TABLE t DROP PARTITION b, a"),
        ("CREATE UNIQUE INDEX a ON t (a(5), (a + b) DESC)", "CREATE UNIQUE INDEX a ON t (`new`(5), (`new` + b) DESC)"),
    ],
)
def test_columns_of_the_table_are_renamed(sql: str, named: str) -> None:
    assert published(sql) == named


@pytest.mark.parametrize(
    "sql",
    [
        "CREATE TABLE free (a INT)",
        "CREATE TABLE u LIKE t",
        "CREATE TABLE u LIKE a",
        "CREATE TABLE t (x MONEY)",  # names none of these columns
        "DROP TABLE t, a",
        "RENAME TABLE t TO u",
        "TRUNCATE t",
        "DROP INDEX a ON t",
        "CREATE VIEW t AS SELECT a FROM t",
        "CREATE TRIGGER a BEFORE INSERT ON t FOR EACH ROW SET NEW.a = 1",
        "CREATE TEMPORARY TABLE t (a INT)",
        "CREATE DATABASE a",
        "GRANT SELECT (a) ON t TO u",
        "ALTER TABLE t FROBNICATE x",
        "ALTER TABLE t COMMENT 'a' /* a */",
    ],
)
def test_statement_without_renamed_columns_is_unchanged(sql: str) -> None:
    assert published(sql) == sql


@pytest.mark.parametrize(
    "sql",
    [
        "CREATE TABLE t (a INT, new INT)",
        "CREATE TABLE t (`New` INT, b INT, A INT)",
        "CREATE TABLE t (a INT, CHECK (t.a > 0))",
        "CREATE TABLE t (a INT, CHECK (`a`(5) > 0))",
        "CREATE TABLE t (a INT, b TEXT AS (CONVERT(b USING a)))",
        "CREATE TABLE t (a INT, b TEXT AS (b COLLATE `a`))",
        "CREATE TABLE t (a INT, b TEXT AS (CAST(b AS a)))",
        "CREATE TABLE t (a INT, day INT, CHECK (GET_FORMAT(day, 1, a) > 0))",
        "CREATE TABLE t (a INT, day INT, CHECK (TRIM(DAY FROM a) > 0))",
        "CREATE TABLE t (a DATE, day INT, CHECK (a + INTERVAL a DAY > 0))",
        "CREATE TABLE t (late INT, b INT AS (gone + 1))",
        "CREATE TABLE t (a MONEY)",
        "ALTER TABLE t FROBNICATE a",
        "ALTER TABLE t DROP /*!90000 INDEX */ a",
        "ALTER TABLE t ADD a INT /*!90000 , ADD CHECK (t.a > 0) */",
        "ALTER TABLE t ADD (a INT, b INT",
    ],
)
def test_ambiguous_statement_is_refused(sql: str) -> None:
    with pytest.raises(Unsupported):
        published(sql)


@pytest.mark.parametrize(
    ("expression", "named"),
    [
        ("day > 1", "`at``day` > 1"),
        ("x > - day", "x > - `at``day`"),
        ("x NOT LIKE day OR day IS NULL", "x NOT LIKE `at``day` OR `at``day` IS NULL"),
        ("CASE day WHEN day THEN day ELSE day END", "CASE `at``day` WHEN `at``day` THEN `at``day` ELSE `at``day` END"),
        ("f(day)", "f(`at``day`)"),
        ("f(1, `day`, x)", "f(1, `at``day`, x)"),
        ("x + INTERVAL day day_hour", "x + INTERVAL `at``day` day_hour"),
        ("x + INTERVAL 1 day", "x + INTERVAL 1 day"),
        ("x + INTERVAL `x` day", "x + INTERVAL `x` day"),
        ("x + INTERVAL (x) day", "x + INTERVAL (x) day"),
        ("timestampdiff(day, `day`, x)", "timestampdiff(day, `at``day`, x)"),
        ("extract(day from `day`)", "extract(day from `at``day`)"),
        ("DATE '2000-01-01' > date", "DATE '2000-01-01' > `born`"),
        ("cast(`date` as date)", "cast(`born` as date)"),
        ("DAY (day) = date(`date`)", "DAY (`at``day`) = date(`born`)"),
    ],
)
def test_columns_named_like_units_and_types_are_renamed(expression: str, named: str) -> None:
    rules = Renamed({"day": "at`day", "date": "born"})
    statement = Statement("shop", f"ALTER TABLE t ADD CHECK ({expression})")
    assert (
        rename_columns(statement, RenameContext(lambda _: rules, lambda _: None, str)).sql
        == f"ALTER TABLE t ADD CHECK ({named})"
    )


@pytest.mark.parametrize(
    "expression",
    [
        *("convert(x, date)", "get_format(date, 'USA')", "trim(day from x)", "x + INTERVAL x day", "t.day > 1"),
        *("day.t > 1", "`day`(x) > 1", "x COLLATE day = 1", "convert(x using `day`)", "cast(x as day)", "x IS day"),
        *("NEXT VALUE FOR day", "@day > 1", "f(day, 1)", "f(1, day)"),
    ],
)
def test_word_that_may_be_a_column_is_refused(expression: str) -> None:
    rules = Renamed({"day": "at`day", "date": "born"})
    with pytest.raises(Unsupported):
        rename_columns(
            Statement("shop", f"ALTER TABLE t ADD CHECK ({expression})"),
            RenameContext(lambda _: rules, lambda _: None, str),
        )


def test_rename_to_a_used_column_name_is_refused() -> None:
    for after in (table("a", "b", "New"), table("late", "LATE2", "low", "LATE", "x")):
        with pytest.raises(Unsupported):
            published("ALTER TABLE t ADD a INT", after)
    assert published("ALTER TABLE t ADD late INT", table("gone", "late")) == "ALTER TABLE t ADD `gone` INT"
    assert published("ALTER TABLE t CHANGE a new INT", table("new")) == "ALTER TABLE t CHANGE `new` new INT"
    renamed = table("a", "new", name=TableName("shop", "u"))
    with pytest.raises(Unsupported):
        published("ALTER TABLE t ADD a INT, RENAME TO u", renamed)
    assert published("ALTER TABLE t ADD a INT") == "ALTER TABLE t ADD `new` INT"  # rows tell then


MARIADB = {DIALECT: MARIADB_DIALECT}


def test_if_exists_on_a_renamed_column_keeps_its_meaning_or_is_refused() -> None:
    """What is there under the one name, and what under the other, decides whether something is done."""
    drop = "ALTER TABLE t DROP COLUMN IF EXISTS {}"
    assert published(drop.format("a"), table("x"), **MARIADB) == drop.format("`new`")
    assert published(drop.format("new"), table("x"), **MARIADB) == drop.format("new")
    assert published(drop.format("low"), **MARIADB) == drop.format("`LOW`")  # no other can have its name
    assert published(drop.format("late"), **MARIADB) == drop.format("`gone`")  # that is not published
    for sql, after in (
        (drop.format("a"), table("new")),
        (drop.format("new"), table("a")),
        (drop.format("a"), None),
        (drop.format("a") + ", DROP new", table("x")),
        ("ALTER TABLE t ADD COLUMN IF NOT EXISTS (a INT)", table("x")),
        ("ALTER TABLE t MODIFY COLUMN IF EXISTS new INT", table("x", "a")),
        ("ALTER TABLE t RENAME COLUMN IF EXISTS a TO c", table("new")),
    ):
        with pytest.raises(Unsupported):
            published(sql, after, **MARIADB)
    assert (
        published("ALTER TABLE t ADD COLUMN IF NOT EXISTS a INT", table("a"), **MARIADB)
        == "ALTER TABLE t ADD COLUMN IF NOT EXISTS `new` INT"
    )


def test_mariadb_defaults_without_parentheses_are_renamed() -> None:
    sql = "CREATE OR REPLACE TABLE t (a TEXT, b TEXT DEFAULT concat(a, 'a'), c DATE DEFAULT NOW())"
    assert published(sql, **MARIADB) == sql.replace("(a ", "(`new` ").replace("(a,", "(`new`,")
    sql = "SET STATEMENT max_statement_time=5 FOR ALTER TABLE t WAIT 5 DROP a"
    assert published(sql, **MARIADB) == sql.replace("DROP a", "DROP `new`")
    sql = "CREATE INDEX IF NOT EXISTS a ON t WAIT 5 (a)"
    assert published(sql, **MARIADB) == sql.replace("(a)", "(`new`)")


def test_double_quoted_names_are_renamed_under_ansi_quotes() -> None:
    sql = "ALTER TABLE t ADD INDEX (\"a\"), COMMENT 'a'"
    assert published(sql, sql_mode="ANSI_QUOTES") == "ALTER TABLE t ADD INDEX (`new`), COMMENT 'a'"


NAMES = ("a", "b", "c", "Day", "key", "new", "x y")
TYPES = (
    *("INT", "VARCHAR(10) NOT NULL DEFAULT 'a,)('", "ENUM('a', 'b') COMMENT 'a'", "DATE INVISIBLE", "DECIMAL(10,2)"),
    *("INT CHECK (a > 0)", "INT AS ({0} + day({1}) + `{1}`) STORED", "INT DEFAULT ({0})", "INT REFERENCES a (a)"),
    *("JSON AS (JSON_OBJECT('a', {1}))", "INT UNSIGNED /* a */", "TIMESTAMP(3) ON UPDATE NOW(3)"),
)
CLAUSES = (
    *("ADD {0} {2}", "ADD COLUMN {0} {2} AFTER {1}", "MODIFY {0} {2} FIRST", "CHANGE {0} {1} {2}", "DROP {0}"),
    *("RENAME COLUMN {0} TO {1}", "ADD INDEX a ({0}, {1})", "ADD PRIMARY KEY ({1})", "ALTER {0} SET DEFAULT ({1})"),
    *("DROP INDEX a", "ADD ({0} {2}, UNIQUE ({1}))", "ADD CONSTRAINT a FOREIGN KEY ({0}) REFERENCES a (a, new)"),
    *("ADD CHECK (({0}) > {1} AND `a` < 'a')", "ENGINE=InnoDB", "RENAME INDEX a TO b", "ADD INDEX (({0} + 1))"),
)
SPACES = (" ", "\n\t", " /* a, `a` */ ", " -- a\n")


@dataclass(frozen=True)
class Mapped:
    """A one-to-one mapping of the names that statements are made of."""

    names: Mapping[str, str]

    def drops(self, column: str) -> bool:
        return False


def quoted(name: str) -> str:
    return f"`{name}`"


@st.composite
def columns(draw: st.DrawFn) -> str:
    one, other = draw(st.sampled_from(NAMES)), draw(st.sampled_from(NAMES))
    return draw(st.sampled_from(TYPES)).replace("`{1}`", quoted(other)).format(quoted(one), quoted(other))


@st.composite
def statements(draw: st.DrawFn) -> str:
    """CREATE TABLE or ALTER TABLE that the grammar takes; quoted wherever a column is named but in `day(…)`."""
    space = draw(st.sampled_from(SPACES))
    if draw(st.booleans()):
        made = draw(st.lists(st.sampled_from(NAMES), min_size=1, unique=True))
        items = [f"{quoted(name)} {draw(columns())}" for name in made]
        items += draw(st.lists(st.sampled_from([f"KEY a ({quoted(made[0])})", "CHECK (`a` > 0)"]), max_size=2))
        return f"CREATE TABLE{space}t ({f',{space}'.join(items)}) ENGINE=a".replace("(a > 0)", "(`a` > 0)")
    clauses = []
    for clause in draw(st.lists(st.sampled_from(CLAUSES), min_size=1, max_size=4)):
        one, other = draw(st.sampled_from(NAMES)), draw(st.sampled_from(NAMES))
        clauses.append(clause.format(quoted(one), quoted(other), draw(columns())))
    return f"ALTER TABLE t{space}{f',{space}'.join(clauses)}".replace("(a > 0)", "(`a` > 0)")


FOLDED = [name.lower() for name in NAMES]
mappings = st.permutations([f"{name}`2" for name in NAMES]).flatmap(
    lambda new: st.sets(st.sampled_from(FOLDED), min_size=1).map(
        lambda chosen: {old: to for old, to in zip(FOLDED, new, strict=True) if old in chosen}
    )
)


def renamed(sql: str, names: Mapping[str, str]) -> str:
    return rename_columns(Statement("shop", sql), RenameContext(lambda _: Mapped(names), lambda _: None, str)).sql


def said(sql: str) -> list[tuple[Lexeme, str]]:
    return [(token.kind, token.text.lower()) for token in readings(sql)[0]]


@given(statements(), mappings)
def test_renaming_back_restores_the_statement(sql: str, names: Mapping[str, str]) -> None:
    there = renamed(sql, names)
    assert said(renamed(there, {new.lower(): old for old, new in names.items()})) == said(sql)


@given(statements(), mappings)
def test_only_quoted_names_of_columns_change(sql: str, names: Mapping[str, str]) -> None:
    """A word, a string, a sign stays; of names, which are columns here, each that has another has got it."""
    before, after = readings(sql)[0], readings(renamed(sql, names))[0]
    assert len(before) == len(after)
    for old, new in zip(before, after, strict=True):
        expected = names.get(old.text.lower(), old.text) if old.kind is Lexeme.NAME else old.text
        assert (new.kind, new.text) == (old.kind, expected)


@given(statements(), mappings)
def test_created_table_has_exactly_the_new_names(sql: str, names: Mapping[str, str]) -> None:
    if not sql.startswith("CREATE"):
        return

    def made(text: str) -> list[Column]:
        command = parse(Statement("shop", text))[0].command
        assert isinstance(command, CreateTableStatement)
        return [spec.column for spec in table_spec(command.body, ServerDialect()).specs]

    assert [column.name for column in made(renamed(sql, names))] == [
        names.get(column.name.lower(), column.name) for column in made(sql)
    ]


ADDED = ("ADD {0} INT", "ADD {0} TEXT FIRST", "DROP {0}", "CHANGE {0} {1} INT", "MODIFY {0} BIGINT AFTER {1}")
KEYED = ("RENAME COLUMN {0} TO {1}", "ADD PRIMARY KEY ({0})", "DROP PRIMARY KEY")


@given(
    st.lists(st.sampled_from(NAMES), min_size=1, unique_by=str.lower),
    st.lists(
        st.builds(str.format, st.sampled_from(ADDED + KEYED), *[st.sampled_from([quoted(n) for n in NAMES])] * 2),
        min_size=1,
        max_size=4,
    ),
    mappings,
)
def test_altered_table_equals_the_one_with_the_new_names(
    there: list[str], clauses: list[str], names: Mapping[str, str]
) -> None:
    """The history of tables, which follows the source's names, and what follows the published ones stay in step."""

    def called(column: str) -> str:
        return names.get(column.lower(), column)

    def known(columns: list[str]) -> Definitions:
        return Definitions({T: TableDefinition(table(*columns), "utf8mb4")}, {"shop": "utf8mb4"})

    def after(statement: str, before: Definitions) -> TableDefinition:
        rules = Rules(str, lambda _: True)
        evolved = Statement("shop", statement)
        change = schema_changes(evolved, before, rules, schemas=(), server_charset="utf8mb4", position="x")
        return before.after(change).tables[T]

    sql = f"ALTER TABLE t {', '.join(clauses)}"
    left, right = after(sql, known(there)), after(renamed(sql, names), known([called(name) for name in there]))
    assert [called(column.name) for column in left.layout.columns] == [c.name for c in right.layout.columns]
    assert [(c.type, c.nullable) for c in left.layout.columns] == [(c.type, c.nullable) for c in right.layout.columns]
    assert (left.layout.key, bool(left.unknown)) == (right.layout.key, bool(right.unknown))

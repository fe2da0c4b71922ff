"""DDL events applied by hand, without a target; tests/contract/target_ways_out.py has the rest."""

from __future__ import annotations

import pytest

from connector.errors import TargetDiffers
from connector.log.compact.net_changes import ANY, Ddl
from connector.log.ids import Seqno
from connector.log.transaction.batch import Statement
from connector.log.transaction.layout import TableName
from connector.targets.ddl.by_hand import ByHand, RealTable, done_by_hand
from connector.targets.ddl.plan import plan
from connector.targets.table import Table
from connector.targets.target_schema import TargetSchema


def tables(*texts: str) -> TargetSchema:
    target_schema = TargetSchema()
    for text in texts:
        target_schema = plan(Statement("shop", text, {}), target_schema, 0).target_schema
    return target_schema


class Beside:
    """The dictionary of a target with these tables, under the source's types."""

    def __init__(self, target_schema: TargetSchema) -> None:
        self._tables = target_schema

    def real(self, name: TableName) -> RealTable | None:
        table = self._tables.find(name)
        return None if table is None else self.expected(table)

    def expected(self, table: Table) -> RealTable:
        key = frozenset(table.columns[at].name for at in table.layout.key)
        return RealTable({column.name: column.type for column in table.columns}, key)


def done(before: TargetSchema, real: TargetSchema, *texts: str) -> ByHand:
    statements = [Statement("shop", text, {}) for text in texts]
    return done_by_hand(Ddl(seqno=Seqno(7), statements=statements, commit_time=0), before, Beside(real))


A, B, C = (f"CREATE TABLE {name} (n INT PRIMARY KEY)" for name in "abc")
PARTS = ("DROP TABLE IF EXISTS `shop`.`a`", "RENAME TABLE b TO c")


def test_several_statements_are_compared_after_the_last() -> None:
    found = done(tables(A, B), tables(C), *PARTS)
    assert [str(table.name) for table in found.target_schema] == ["shop.c"]
    assert found.tables == (TableName("shop", "c"),)


@pytest.mark.parametrize(
    ("real", "table", "missing"),
    [((A, C), "shop.a", False), ((B,), "shop.b", False), ((), "shop.c", True)],
)
def test_one_of_several_statements_not_done_is_refused_with_its_table(
    real: tuple[str, ...], table: str, missing: bool
) -> None:
    with pytest.raises(TargetDiffers) as refused:
        done(tables(A, B), tables(*real), *PARTS)
    assert str(refused.value.where["table"]) == table
    assert bool(refused.value.hint) is missing  # a table that must exist is described
    assert (refused.value.where["seqno"], refused.value.where["sql"]) == (7, "; ".join(PARTS))


def test_unparsed_statement_of_several_is_passed_over() -> None:
    found = done(tables(A, B), tables(A, C), "ALTER NONSENSE", PARTS[1])
    assert found.tables == (TableName("shop", "c"), TableName("shop", ANY))

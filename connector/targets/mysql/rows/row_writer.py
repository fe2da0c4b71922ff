"""Applies net changes to a table of MySQL, and compares the number of rows of each statement with the log.

Foreign keys are not checked in the applier's session, so a delete has no further effects but those of triggers. Rows of
which the log has only some columns are changed in place; or, where unique values may swap, copied to a temporary table,
changed there and inserted again (`PartialRows`).

A savepoint before the first statement lets an error name the rows that are missing.
"""

from __future__ import annotations

from typing import Final

from connector.log.compact.net_changes import Images, NetChanges, Partial
from connector.targets.marks import Marks
from connector.targets.mysql.rows.computed_columns import check_computed
from connector.targets.mysql.rows.keyed_rows import KeyedRows
from connector.targets.mysql.rows.keyless_rows import delete_equal
from connector.targets.mysql.rows.older_rows import OlderRows
from connector.targets.mysql.rows.partial_rows import PartialRows
from connector.targets.mysql.rows.partial_updates import change_in_place
from connector.targets.mysql.rows.table_statements import SAVEPOINT, TableStatements
from connector.targets.mysql.server.catalog_checks import takes_upserts, unique_indexes
from connector.targets.mysql.server.connection import ServerSession
from connector.targets.mysql.server.table_facts import TableFacts
from connector.targets.table import Table

FEW: Final = 20  # updates for which it does not pay to ask for the table's indexes


class RowWriter:
    """Applies the changes of one table.

    Args:
        session: in the open transaction.
        table: the table.
        net: the changes; inserts have all columns.
        marked: the marks, if the table also has rows that are older than its load. What holds a value of a new row in a
            unique index is deleted unless it is marked.
        facts: what the table does by itself.
    """

    def __init__(
        self, session: ServerSession, table: Table, net: NetChanges, marked: Marks | None, facts: TableFacts
    ) -> None:
        self._statements = TableStatements(session, table, net.layout, facts, again=net.again)
        self._rows = KeyedRows(self._statements)
        self._net = net
        self._marked = marked
        self._older = None if marked is None else OlderRows(self._statements, marked)

    def write(self) -> None:
        """Apply deletes, then updates, then inserts.

        Raises:
            TargetDiffers: a row to delete or update is missing, or a row to insert exists.
            ValueNotRepresentable: a column cannot store a value, or computes another one.
            PreflightError: a row is larger than the server's max_allowed_packet.
        """
        net = self._net
        self._statements.session.query(f"SAVEPOINT {SAVEPOINT}")
        moved, changed = self._copies(net.partial)
        if moved is not None:
            moved.move_out(must_exist=True)
        if changed is not None:
            changed.move_out(must_exist=not net.again)
        self._delete()
        upserts = (net.replaces or len(net.updates) > FEW) and self._takes_upserts()
        if not upserts:
            self._rows.delete(net.updates, "updated", must_exist=True)
            if net.replaces:
                self._rows.delete(net.inserts, "updated", must_exist=False)
        if moved is not None and net.again:
            moved.delete_new_keys()
        if self._older is not None:
            self._older.delete_holders((net.updates, net.inserts), [one for one in (moved, changed) if one is not None])
        if changed is None and net.partial is not None:
            change_in_place(self._statements, net.partial.changed)
        self._insert(upserts=upserts)
        if moved is not None:
            moved.insert_back()
            moved.mark()
        if changed is not None:
            changed.insert_back()  # not marked: an older row of which the log has some columns stays older
        check_computed(self._statements, net)

    def _takes_upserts(self) -> bool:
        statements = self._statements
        return takes_upserts(
            statements.session, statements.table.name, [statements.columns[index] for index in statements.key]
        )

    def _copies(self, partial: Partial | None) -> tuple[PartialRows | None, PartialRows | None]:
        """The rows that move, and those that change and cannot be changed in place."""
        if partial is None:
            return None, None
        moved = changed = None
        if len(partial.moved):
            moved = PartialRows(self._statements, "thl_moved", partial.moved, self._marked)
        if moved is not None or (
            len(partial.changed) and unique_indexes(self._statements.session, self._statements.table.name)
        ):
            changed = PartialRows(self._statements, "thl_changed", partial.changed, self._marked)
        return moved, changed

    def _delete(self) -> None:
        deletes: Images = self._net.deletes
        if self._statements.key:
            self._rows.delete(deletes, "deleted", must_exist=not self._net.again)
        elif len(deletes):
            delete_equal(self._statements, deletes)

    def _insert(self, *, upserts: bool) -> None:
        net = self._net
        if upserts:
            self._rows.replace(net.updates, must_exist=True)
        else:
            self._rows.insert(net.updates)
        if upserts and net.replaces:
            self._rows.replace(net.inserts, must_exist=False)
        else:
            self._rows.insert(net.inserts)
        if self._older is not None:
            self._older.mark(net.updates)
            self._older.mark(net.inserts)

"""The seam between decoding and the configured filters: what of the log is captured."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Protocol

from connector.log.transaction.batch import Statement
from connector.log.transaction.layout import TableLayout, TableName
from connector.log.transaction.position import Finished
from connector.mysql.values.row_transform import RowTransform


class CaptureFilter(Protocol):
    """Decides which tables, rows and definitions are captured. `connector.mysql.transforms.filters.Filter` is one."""

    def captures(self, schema: str, table: str) -> bool:
        """True if changes of the table are captured."""

    def captures_schema(self, schema: str) -> bool:
        """True if a table of the schema can be captured."""

    def actions(self, schema: str, table: str) -> Collection[str]:
        """The captured actions of a captured table: of insert, update, delete, ddl."""

    def row_transform(self, layout: TableLayout) -> RowTransform | None:
        """The rule of a table, compiled; None: its rows are published unchanged.

        Raises:
            Unsupported: the rule does not fit the table.
        """

    def published_statement(
        self, statement: Statement, known: Callable[[TableName], TableLayout | None]
    ) -> Statement | None:
        """Applies rules to a captured definition.

        Args:
            statement: a statement that `definitions` returned.
            known: gives a table's layout after the definition, or None if it is unknown.

        Returns:
            None if rules leave nothing of it.

        Raises:
            Unsupported: it is not understood, or cannot be written with the rules.
        """

    def definitions(self, statement: Statement, noted: Collection[str]) -> tuple[Statement, ...]:
        """The captured parts of a definition.

        Args:
            statement: the definition.
            noted: the schemas that the source noted for it.

        Raises:
            Unsupported: the parts are not known.
        """

    def keeps_invalid_text(self, schema: str, table: str, column: str) -> bool:
        """True if text of the column that is not valid in its character set is published as bytes."""

    @property
    def keeps_differences(self) -> bool:
        """True if differences from a JSON document that the before image lacks are kept, as bytes; else refused."""

    @property
    def keeps_statements(self) -> bool:
        """True if changes logged as statements are published as statements."""

    @property
    def needs_rows(self) -> str:
        """The setting for which changes have to be logged as rows; "": none."""

    @property
    def replays(self) -> bool:
        """True if what is read is to be executed again: rows become BINLOG statements, texts keep their bytes."""

    @property
    def shows(self) -> bool:
        """True if what is read is only shown, so that a change may lack what its effect depends on."""

    @property
    def virtual_tables(self) -> Collection[tuple[str, str]] | None:
        """Tables of a MariaDB with a VIRTUAL column, whose images must be whole; those of later definitions not.

        None: not known, so all images of a MariaDB must be whole.
        """

    @property
    def unique_tables(self) -> Collection[tuple[str, str]]:
        """Tables of a MariaDB with a unique index besides the primary key; those of later definitions not."""

    @property
    def rows_query_bytes(self) -> int:
        """Bytes to keep of a statement's text beside its rows; 0: none."""

    @property
    def largest_event(self) -> int:
        """The most bytes of an expanded compressed event."""

    @property
    def unlogged_options(self) -> Mapping[str, str]:
        """Options of definitions that the server does not log, with its values."""

    @property
    def system_time_zone(self) -> str:
        """The server's time zone, which changes logged as statements name where theirs is SYSTEM; "": not known."""

    @property
    def ignored_servers(self) -> frozenset[int]:
        """Server ids whose transactions are not captured."""

    @property
    def always_read(self) -> Finished | None:
        """A transaction of any server ID that is always read, for comparison with the log; None: none."""

"""The fields of every type of event, by name, in the order of the format.

Values are those of JSON. A type that is not known here has its bytes in hexadecimal.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from connector.errors import ConnectorError
from connector.inspect.binlog_events import control_fields, row_fields, statement_fields, transaction_fields
from connector.inspect.binlog_events.row_fields import RowFields
from connector.inspect.binlog_events.walk import LogEvent
from connector.mysql.binlog.events.capture_filter import CaptureFilter

FieldsOf = Callable[[LogEvent], dict[str, Any]]
STATELESS: Final[dict[int, FieldsOf]] = {
    **control_fields.BY_TYPE,
    **transaction_fields.BY_TYPE,
    **statement_fields.BY_TYPE,
}


class EventFields:
    """Decodes the fields of events in the order of the log: rows need the tables before them.

    Args:
        filters: limits and rules for values; every table is read.
    """

    def __init__(self, filters: CaptureFilter) -> None:
        self._rows = RowFields(filters)

    def of(self, event: LogEvent) -> dict[str, Any]:
        """The fields of an event.

        Raises:
            ConnectorError: with file, position and type.
        """
        try:
            if event.code in control_fields.FORMATS:
                self._rows.forget(mariadb=event.mariadb)
            if event.code in row_fields.TYPES:
                return self._rows.of(event)
            return STATELESS.get(event.code, unknown)(event)
        except ConnectorError as error:
            error.where = event.where | error.where
            error.hint = error.file_hint
            raise


def unknown(event: LogEvent) -> dict[str, Any]:
    """The bytes of an event of another type."""
    return {"bytes": event.body.hex()}

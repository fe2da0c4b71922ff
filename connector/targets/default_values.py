"""Completes inserts of which the log has not every column: absent columns get their defaults.

With binlog_row_image=MINIMAL (for BLOB and TEXT also with NOBLOB) MySQL leaves a column out of an insert's image if the
statement gave it no value. Computed values (a time, an expression) are always in the image. The rows in the log carry
no defaults; the applied DDL does, so they are kept with the table. An insert that needs an unknown default stops.
"""

from __future__ import annotations

from array import array
from dataclasses import replace

from connector.errors import Unsupported
from connector.log.compact.net_changes import Images, NetChanges, Partial
from connector.log.format import avro
from connector.targets.absent_columns import NoDefault, with_defaults
from connector.targets.table import Table


def with_whole_inserts(net: NetChanges, table: Table) -> NetChanges:
    """Net changes in which every insert has all columns.

    Args:
        net: the changes in the log.
        table: the table on the target.

    Raises:
        Unsupported: a column is absent and its default is not known.
    """
    if net.partial is None or not len(net.partial.added):
        return net
    added, columns = net.partial.added, net.layout.columns
    known = table.defaults_of()
    defaults = [avro.union(known[column.name]) if column.name in known else None for column in columns]
    try:
        data, ends = with_defaults(added.data, added.ends, len(columns), defaults)
    except NoDefault as error:
        raise Unsupported(
            f"an insert into {net.layout.name} has no value for column {columns[error.column].name}, "
            "and its default is not known",
            hint="SET GLOBAL binlog_row_image = FULL, or give the column a value in the INSERT",
            table=net.layout.name,
            column=columns[error.column].name,
        ) from error
    whole = Images(bytes(net.inserts.data) + data, net.inserts.ends[:])
    whole.ends.extend(array("Q", (len(net.inserts.data) + end for end in ends)))
    rest = Partial(net.partial.changed, net.partial.moved, Images(b"", array("Q")))
    return replace(net, inserts=whole, partial=rest if len(rest) else None)

"""Net rows whose inserts do not tell every column, made whole: absent columns have their defaults.

MySQL leaves out of an insert's image what no statement gave a value (binlog_row_image=MINIMAL, of BLOB and TEXT NOBLOB
too); what it computes, a time or an expression, is always there. The log does not tell defaults, but the DDL that we
applied does: they are kept with the table. One that cannot be known for certain stops.
"""

from __future__ import annotations

from array import array
from dataclasses import replace

from connector.errors import Unsupported
from connector.log.compact.net_changes import Images, NetChanges, Partial
from connector.log.format import avro
from connector.targets.absent_columns import NoDefault, with_defaults
from connector.targets.table import Table


def completed(net: NetChanges, table: Table) -> NetChanges:
    """The same with every insert whole.

    Args:
        net: what the log says.
        table: the target's.

    Raises:
        Unsupported: a column is absent whose default is not known.
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
            f"an insert into {net.layout.name} does not tell column {columns[error.column].name}, "
            "and its default is not known",
            hint="SET GLOBAL binlog_row_image = FULL, or give the column a value in the INSERT",
            table=net.layout.name,
        ) from error
    whole = Images(bytes(net.inserts.data) + data, net.inserts.ends[:])
    whole.ends.extend(array("Q", (len(net.inserts.data) + end for end in ends)))
    rest = Partial(net.partial.changed, net.partial.moved, Images(b"", array("Q")))
    return replace(net, inserts=whole, partial=rest if len(rest) else None)

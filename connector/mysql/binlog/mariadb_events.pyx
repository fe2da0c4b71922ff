"""MariaDB's own events.

Formats are those of MariaDB's `sql/log_event.h`; what they hold is read in `mariadb.py`.
"""

from libc.stdint cimport uint8_t

from connector.mysql.binlog.decoder cimport Decoder, rest
from connector.mysql.binlog.event cimport (
    IGNORABLE,
    MARIADB_ANNOTATE_ROWS,
    MARIADB_ENCRYPTION,
    MARIADB_GTID,
    MARIADB_QUERY_COMPRESSED,
    MARIADB_ROWS_COMPRESSED,
    MARIADB_ROWS_COMPRESSED_V1,
    Event,
)
from connector.mysql.memory cimport Cursor

from connector.mysql.binlog.events import event_types
from connector.mysql.binlog.events import mariadb

cdef dict NOTHING = {}


cdef int of_mariadb(Decoder decoder, Event* event, Cursor* body) except -1:
    """The same in another form is decoded as what it stands for."""
    cdef uint8_t type = event.type
    cdef int action
    cdef bint second
    cdef bytes plain
    cdef Cursor cursor
    if type == MARIADB_GTID:
        decoder._between()
        gtid = mariadb.gtid_event(rest(body), event.server_id)
        decoder.begun = b""
        decoder.tables.skipping = decoder.known is not None and gtid.gtid in decoder.known
        decoder.group.announce(decoder._started(), gtid.gtid, 0, 0, 0, NOTHING)
        if gtid.alone:
            return 0
        decoder.group.begin(decoder._started(), event.server_id, 0)
        decoder.group.xid = gtid.prepares or None
        return 0
    if type == MARIADB_ANNOTATE_ROWS and decoder.query_bytes:
        return decoder._rows_query(body)
    if type < MARIADB_QUERY_COMPRESSED:
        if type != MARIADB_ENCRYPTION or not decoder.streamed:
            event_types.refuse(type, bool(event.flags & IGNORABLE), rest(body), decoder.service)
        return 0
    if type == MARIADB_QUERY_COMPRESSED:
        plain = mariadb.plain_query(rest(body), decoder.largest)
        cursor.data = plain
        cursor.end = cursor.data + len(plain)
        return decoder._query(event, &cursor)
    second = type >= MARIADB_ROWS_COMPRESSED
    action = type - (MARIADB_ROWS_COMPRESSED if second else MARIADB_ROWS_COMPRESSED_V1)
    plain = mariadb.plain_rows(rest(body), second, action == 1, decoder.largest)
    cursor.data = plain
    cursor.end = cursor.data + len(plain)
    return decoder._rows(event, action, second, False, &cursor)

"""Events that only MariaDB writes. `events/mariadb.py` reads their bodies.

Formats are those of MariaDB's `sql/log_event.h`.
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
from connector.mysql.binlog.statement_events cimport query_event
from connector.mysql.memory cimport Cursor

from connector.mysql.binlog.events import event_types
from connector.mysql.binlog.events import mariadb

cdef dict NOTHING = {}


cdef int of_mariadb(Decoder decoder, Event* event, Cursor* body) except -1:
    """Decodes an event of MariaDB; a compressed one as the event that it was made of."""
    cdef uint8_t type = event.type
    cdef int action
    cdef bint second
    cdef bytes plain
    cdef Cursor cursor
    if type == MARIADB_GTID:
        decoder._check_between_transactions()
        gtid = mariadb.gtid_event(rest(body), event.server_id)
        decoder.begin_event = b""
        decoder.tables.skipping = decoder.known is not None and gtid.gtid in decoder.known
        decoder.buffer.announce(decoder._event_start(), gtid.gtid, 0, 0, 0, NOTHING)
        if gtid.alone:
            return 0
        decoder.buffer.begin(decoder._event_start(), event.server_id, 0)
        decoder.buffer.xid = gtid.prepares or None
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
        return query_event(decoder, event, &cursor)
    second = type >= MARIADB_ROWS_COMPRESSED
    action = type - (MARIADB_ROWS_COMPRESSED if second else MARIADB_ROWS_COMPRESSED_V1)
    plain = mariadb.plain_rows(rest(body), second, action == 1, decoder.largest)
    cursor.data = plain
    cursor.end = cursor.data + len(plain)
    return decoder._rows(event, action, second, False, &cursor)

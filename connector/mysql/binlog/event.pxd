# The header of every event, and the types that compiled code decodes (all types: events/event_types.py).

from libc.stdint cimport uint8_t, uint32_t

from connector.mysql.memory cimport Cursor, little4, take

cdef enum Type:
    START_V3 = 1
    QUERY = 2
    STOP = 3
    ROTATE = 4
    FORMAT_DESCRIPTION = 15
    XID = 16
    EXECUTE_LOAD_QUERY = 18
    TABLE_MAP = 19
    WRITE_ROWS_V1 = 23
    DELETE_ROWS_V1 = 25
    HEARTBEAT = 27
    ROWS_QUERY = 29
    WRITE_ROWS = 30
    DELETE_ROWS = 32
    GTID = 33
    ANONYMOUS_GTID = 34
    XA_PREPARE = 38
    PARTIAL_UPDATE_ROWS = 39
    TRANSACTION_PAYLOAD = 40
    HEARTBEAT_V2 = 41
    GTID_TAGGED = 42
    MARIADB = 160  # the first type that only MariaDB has
    MARIADB_ANNOTATE_ROWS = 160
    MARIADB_GTID = 162
    MARIADB_ENCRYPTION = 164
    MARIADB_QUERY_COMPRESSED = 165
    MARIADB_ROWS_COMPRESSED_V1 = 166
    MARIADB_ROWS_COMPRESSED = 169
    MARIADB_LAST = 171

cdef enum Flag:
    IN_USE = 0x01  # the file is being written, or was when its server died
    ARTIFICIAL = 0x20  # exists only in the stream, not in the file
    RELAY_LOG = 0x40  # in a relay log: the position is the source's
    IGNORABLE = 0x80  # a reader that does not know the type may skip it

cdef enum:
    HEADER = 19

cdef struct Event:
    uint32_t timestamp
    uint8_t type
    uint32_t server_id
    uint32_t size
    uint32_t log_pos
    uint32_t flags


cdef inline int read_header(Cursor* event, Event* header) except -1:
    """Reads a header of version 4: 4 bytes time, 1 type, 4 server id, 4 size, 4 position of its end, 2 flags."""
    cdef const uint8_t* p = take(event, HEADER)
    header.timestamp = little4(p)
    header.type = p[4]
    header.server_id = little4(p + 5)
    header.size = little4(p + 9)
    header.log_pos = little4(p + 13)
    header.flags = p[17] | (<uint32_t>p[18] << 8)
    return 0

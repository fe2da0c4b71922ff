# cython: cdivision=True
"""Statements in the log: QUERY events, the events that precede a statement, and LOAD DATA.

BEGIN is decoded here; every other statement in Python (`connector.mysql.binlog.events.query`).
"""

from libc.stdint cimport uint8_t, uint32_t
from libc.string cimport memcmp

from connector.mysql.binlog.decoder cimport Decoder, rest
from connector.mysql.binlog.event cimport EXECUTE_LOAD_QUERY, Event
from connector.mysql.binlog.xa_events cimport decided
from connector.mysql.memory cimport Cursor, damaged, left, little, little4, take

from connector.ddl.mariadb import brings_unique, brings_virtual, check_renames, passes_on
from connector.errors import Unsupported
from connector.log.ids import Outcome
from connector.log.transaction.statement_options import DIALECT, MARIADB_DIALECT, SYSTEM_ZONE
from connector.mysql.binlog.events.query import may_capture, query as read_query, with_shown_bytes
from connector.mysql.binlog.events.statements import way_out

cdef object COMMIT = Outcome.COMMIT
cdef object ROLLBACK = Outcome.ROLLBACK


cdef int query_event(Decoder decoder, Event* event, Cursor* body) except -1:
    """QUERY: begins or ends a transaction, changes tables, or is a change logged as a statement."""
    cdef Cursor ahead = body[0]
    cdef const uint8_t* p = take(&ahead, 13)
    cdef uint32_t thread_id = little4(p)
    take(&ahead, <Py_ssize_t>little(p + 11, 2) + p[8] + 1)
    if decoder.query_bytes:
        decoder.begin_event = rest(body)
    if left(&ahead) == 5 and memcmp(ahead.data, b"BEGIN", 5) == 0:
        if decoder.buffer.open:
            damaged(b"a transaction begins inside another transaction")
        decoder.cache_start = decoder.offset
        return decoder.buffer.begin(decoder._event_start(), event.server_id, thread_id)
    query = read_query(
        rest(body), event.timestamp, event.flags, decoder.statements.charset,
        mariadb=decoder.mariadb, keeps_bytes=decoder.replays,
    )
    if decoder.old_format and decoder.statements.one_shot(query):
        if decoder.buffer.start is None:
            decoder.buffer.start = decoder._event_start()
        return 0
    if query.control == "commit" or query.control == "rollback":
        return decoder._finish(event.timestamp, COMMIT if query.control == "commit" else ROLLBACK)
    if query.xid:
        return decided(decoder, event, thread_id, query)
    if decoder.unlogged_options and not query.control:
        query.statement.options.update({**decoder.unlogged_options, **query.statement.options})
    if decoder.mariadb and not query.control:
        query.statement.options[DIALECT] = MARIADB_DIALECT
        if decoder.partial and decoder.virtual_tables:
            check_renames(query.statement, decoder.partial, decoder.virtual_tables)
        if (
            brings_virtual(query.statement)
            or (decoder.virtual_tables and passes_on(query.statement, decoder.virtual_tables))
        ) and may_capture(query, decoder.filters):
            decoder.virtual_definition = query.statement.sql[:200]
        if (
            brings_unique(query.statement)
            or (decoder.unique_tables and passes_on(query.statement, decoder.unique_tables))
        ) and may_capture(query, decoder.filters):
            decoder.unique_defined = True
    if not query.control:
        query.statement.options.update(decoder.resolver.creation_options(query.statement))
    if not query.control and decoder.resolver.follow(query, decoder.buffer.gtid, decoder._event_end()):
        decoder.tables.renamed()
        decoder.redefined = True
    return _statement(decoder, event, thread_id, query, None)


cdef int part_event(Decoder decoder, uint8_t type, Cursor* body) except -1:
    """An event that belongs to the next statement; it can be the first event of its transaction."""
    decoder.statements.part(type, rest(body))
    if decoder.pending and decoder.buffer.start is None:
        decoder.buffer.start = decoder._event_start()
    return 0


cdef int load_event(Decoder decoder, Event* event, Cursor* body) except -1:
    """LOAD DATA. EXECUTE_LOAD_QUERY is a QUERY and the id of the file that it reads; old logs have other events."""
    cdef Cursor ahead = body[0]
    if event.type != EXECUTE_LOAD_QUERY:
        query, blocks, thread_id = decoder.statements.old_loading(event.type, rest(body), event.timestamp)
        return _statement(decoder, event, thread_id, query, blocks)
    query, blocks = decoder.statements.loading(
        rest(body), event.timestamp, event.flags, keeps_bytes=decoder.replays
    )
    return _statement(decoder, event, little4(take(&ahead, 4)), query, blocks)


cdef int _statement(Decoder decoder, Event* event, uint32_t thread_id, object query, object blocks) except -1:
    """Adds a statement to the open transaction; outside of one the statement is a transaction by itself."""
    cdef bint alone = not decoder.buffer.open
    cdef bint definition = not query.control
    cdef object statement
    cdef object parts
    if query.control == "change":
        _mark_change(decoder, query.statement.options)
    if alone:
        decoder.buffer.begin(decoder._event_start(), event.server_id, thread_id)
    if decoder.buffer.ignored:
        decoder.statements.leave_out()
        return decoder._finish(event.timestamp, COMMIT) if alone else 0
    statement = decoder.statements.of(query)
    parts = () if statement is None else (statement,)
    if definition and statement is not None:
        parts = decoder.filters.definitions(statement, query.schemas)
        parts = [decoder.filters.published_statement(part, decoder.resolver.known) for part in parts]
    if definition and decoder.buffer.changed() and not decoder.statements.keeps:
        raise Unsupported(
            "a definition follows changes of its own transaction", hint=way_out(decoder.filters),
            sql=query.statement.sql[:200],
        )
    if statement is not None and blocks is not None:
        decoder.blocks = blocks
        decoder.load_statement = statement, alone, event.timestamp
        return 0
    for part in parts:
        if part is not None:
            _add(decoder, part, definition)
    return decoder._finish(event.timestamp, COMMIT) if alone else 0


cdef int _mark_change(Decoder decoder, dict options) except -1:
    """Adds what a target must know of a change, and the log does not have."""
    if decoder.mariadb:
        options[DIALECT] = MARIADB_DIALECT
    if options.get("time_zone") == "SYSTEM" and decoder.filters.system_time_zone:
        options[SYSTEM_ZONE] = decoder.filters.system_time_zone
    return 0


cdef int next_block(Decoder decoder) except -1:
    """Adds the next block of a file for LOAD DATA, after the last block the statement that reads it."""
    block = next(decoder.blocks, None)
    if block is not None:
        return _add(decoder, block, False)
    statement, alone, timestamp = decoder.load_statement
    decoder.blocks = decoder.load_statement = None
    _add(decoder, statement, False)
    return decoder._finish(timestamp, COMMIT) if alone else 0


cdef int _add(Decoder decoder, object statement, bint definition) except -1:
    """Adds a statement to the transaction; hands out a full batch."""
    decoder.buffer.add_statement(with_shown_bytes(statement, keeps_bytes=decoder.replays), definition)
    if decoder.buffer.size >= decoder.batch_bytes:
        decoder.produced += decoder.buffer.size
        decoder._flush()
    return 0

"""Statements and events that begin and end XA transactions."""

from libc.stdint cimport uint32_t

from connector.mysql.binlog.decoder cimport Decoder, rest
from connector.mysql.binlog.event cimport Event
from connector.mysql.memory cimport Cursor, damaged

from connector.mysql.binlog.events.xa import xa_prepare
from connector.errors import CorruptBinlog
from connector.log.ids import Outcome

cdef object COMMIT = Outcome.COMMIT
cdef object ROLLBACK = Outcome.ROLLBACK


cdef int decided(Decoder decoder, Event* event, uint32_t thread_id, object query) except -1:
    """Handles an XA statement. XA_PREPARE ends what XA START begins; XA COMMIT and XA ROLLBACK are transactions by
    themselves."""
    if query.control == "xa end":
        return _same_xid(decoder, query.xid)
    if decoder.buffer.open:
        damaged(b"a transaction begins inside another transaction")
    decoder.buffer.begin(decoder._event_start(), event.server_id, thread_id)
    decoder.buffer.xid = query.xid
    if query.control == "xa start":
        return 0
    outcome = COMMIT if query.control == "xa commit" else ROLLBACK
    decoder.items.append(decoder.buffer.decided(decoder._event_end(), event.timestamp, outcome))
    decoder.reported = decoder.offset
    return 0


cdef int prepared(Decoder decoder, Event* event, Cursor* body) except -1:
    """XA_PREPARE: ends what XA START began; with one phase it also commits."""
    xid, one_phase = xa_prepare(rest(body))
    _same_xid(decoder, xid)
    if decoder.buffer.ignored:
        decoder._count_ignored()
    decoder.produced += decoder.buffer.size
    decoder.items.append(decoder.buffer.prepared(decoder._event_end(), event.timestamp, one_phase))
    decoder.reported = decoder.offset
    return 0


cdef int _same_xid(Decoder decoder, str xid) except -1:
    if decoder.buffer.xid is None or decoder.buffer.xid != xid:
        raise CorruptBinlog("an XA transaction ends that has not begun", xid=xid, begun=decoder.buffer.xid)
    return 0

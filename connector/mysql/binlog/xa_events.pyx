"""What begins and ends XA transactions."""

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
    """XA START begins what XA_PREPARE ends; XA COMMIT and XA ROLLBACK are transactions of their own."""
    if query.control == "xa end":
        return _same_xid(decoder, query.xid)
    if decoder.group.open:
        damaged(b"a transaction begins before the last one has ended")
    decoder.group.begin(decoder._started(), event.server_id, thread_id)
    decoder.group.xid = query.xid
    if query.control == "xa start":
        return 0
    outcome = COMMIT if query.control == "xa commit" else ROLLBACK
    decoder.found.append(decoder.group.decided(decoder._here(), event.timestamp, outcome))
    decoder.reported = decoder.offset
    return 0


cdef int prepared(Decoder decoder, Event* event, Cursor* body) except -1:
    """XA_PREPARE ends what XA START began; in one phase it commits it."""
    xid, one_phase = xa_prepare(rest(body))
    _same_xid(decoder, xid)
    if decoder.group.ignored:
        decoder._count_ignored()
    decoder.produced += decoder.group.size
    decoder.found.append(decoder.group.prepared(decoder._here(), event.timestamp, one_phase))
    decoder.reported = decoder.offset
    return 0


cdef int _same_xid(Decoder decoder, str xid) except -1:
    if decoder.group.xid is None or decoder.group.xid != xid:
        raise CorruptBinlog("an XA transaction ends that has not begun", xid=xid, begun=decoder.group.xid)
    return 0

# cython: cdivision=True
"""Events of the log itself (format descriptions, Rotates, the dump's heartbeats), and the decoder's position in the log.

A replica's relay log counts positions of the source's file, once it has named that file; until then positions are those
of the relay log itself.
"""

from libc.stdint cimport int64_t, uint8_t, uint32_t

from connector.log.format.crc32 cimport crc32
from connector.mysql.binlog.decoder cimport Decoder, rest
from connector.mysql.binlog.event cimport ARTIFICIAL, HEARTBEAT_V2, IN_USE, RELAY_LOG, ROTATE, STOP, Event
from connector.mysql.memory cimport Cursor, damaged, left, little4, little8, take

from connector.errors import CorruptBinlog
from connector.log.transaction.batch import PositionAdvance
from connector.mysql.binlog.events import mariadb
from connector.mysql.binlog.events.format_description import format_description
from connector.mysql.binlog.events.stream_messages import dump_heartbeat


cdef int step(Decoder decoder, Event* event) except -1:
    """Moves to the event's end, which must follow the end of the last event; the log stores it modulo 2^32.

    MariaDB stores no positions inside of a transaction (since 11.4). Its stream skips what the replica has without an
    event that says so.
    """
    if _unnamed(decoder):
        decoder.start = decoder.offset
        decoder.offset += event.size
        return 0
    if written_by_replica(decoder, event):
        return 0
    if event.flags & ARTIFICIAL or (event.log_pos == 0 and not decoder.mariadb):
        return 0
    if decoder.mariadb and decoder.streamed and event.log_pos and not decoder.buffer.announced and not decoder.buffer.open:
        decoder.offset = mariadb.start_of(event.log_pos, event.size, decoder.offset)
    decoder.start = decoder.offset
    decoder.offset += event.size
    if event.log_pos == 0:
        return 0
    if <uint32_t>decoder.offset != event.log_pos and not _counted_in_cache(decoder, event):
        if decoder.relay:
            return _step_in_relay_log(decoder, event)
        raise CorruptBinlog(
            "the binary log jumps: an event does not begin where the last one ended",
            ends=event.log_pos, size=event.size,
        )
    return 0


cdef bint written_by_replica(Decoder decoder, const Event* event) noexcept:
    """True if the event belongs to the relay log itself, where positions are the source's.

    Replicas before 5.1 do not mark the events that end their files.
    """
    if event.flags & RELAY_LOG:
        return True
    return decoder.relay and event.server_id == decoder.replica_id and (event.type == STOP or event.type == ROTATE)


cdef bint _counted_in_cache(Decoder decoder, const Event* event) noexcept:
    """True if the event's position counts from the start of the transaction's cache (servers before 5.0.34). The cache
    begins after BEGIN."""
    return decoder.early_server and decoder.buffer.open and <uint32_t>(decoder.offset - decoder.cache_start) == event.log_pos


cdef int _step_in_relay_log(Decoder decoder, Event* event) except -1:
    """Moves, in a relay log, to the position in the source's file, which is ahead if the replica left events out."""
    cdef int64_t end = (decoder.start & ~<int64_t>0xFFFFFFFF) + event.log_pos
    if end < decoder.start:
        end += <int64_t>1 << 32
    decoder.offset = end
    decoder.start = end - event.size
    return 0


cdef bint _unnamed(Decoder decoder) noexcept:
    """True in a relay log that has not named the source's file yet: positions are those of the relay log."""
    return decoder.relay and not decoder.source_named


cdef int format_event(Decoder decoder, Event* event, const uint8_t* all, Cursor* body) except -1:
    """FORMAT_DESCRIPTION: how the events of the file are written. Its checksum is computed with IN_USE cleared."""
    cdef bytes whole = all[: body.end - all]
    if event.flags & IN_USE:
        whole = whole[:17] + bytes([whole[17] & ~IN_USE]) + whole[18:]
    described = format_description(whole)
    decoder.format = whole
    decoder.checksum = described.checksum
    decoder.dialect = described.dialect
    decoder.early_server = described.early
    if not decoder.formatted:
        decoder.in_use = event.flags & IN_USE != 0
        decoder.relay = event.flags & RELAY_LOG
        decoder.replica_id = event.server_id
    elif event.log_pos == 0 and not decoder.streamed:
        decoder.relay = True  # only a relay log repeats the format description of another file
    decoder.formatted = True
    decoder.mariadb = mariadb.is_mariadb(whole)
    if decoder.file:
        decoder.created[decoder.file] = event.timestamp
    if decoder.buffer.announced or decoder.buffer.open:
        if not (event.flags & ARTIFICIAL or event.log_pos == 0):
            damaged(b"a transaction is cut off by a new format description")
    else:
        decoder.tables.forget(decoder.mariadb)
    return 0 if event.log_pos == 0 and not _unnamed(decoder) else step(decoder, event)


cdef int artificial_rotate(Decoder decoder, Event* event, const uint8_t* all, Cursor* body) except -1:
    """Artificial ROTATE: the file that follows. It can precede the format description, which tells of checksums.

    A file that names another file is a relay log; before 5.1 nothing else marks one.
    """
    if left(body) >= 12 and crc32(all, body.end - all - 4, 0) == little4(body.end - 4):
        body.end -= 4
    offset = <int64_t>little8(take(body, 8))
    file = rest(body)
    if not decoder.streamed and file != decoder.file.encode(errors="replace"):
        decoder.relay = True
    return go_to(decoder, offset, file)


cdef int rotate(Decoder decoder, Event* event, Cursor* body) except -1:
    """ROTATE: the next file."""
    if written_by_replica(decoder, event):
        return 0  # names the next relay log
    decoder._check_between_transactions()
    go_to(decoder, <int64_t>little8(take(body, 8)), rest(body))
    return advance_position(decoder)


cdef int go_to(Decoder decoder, int64_t offset, bytes file) except -1:
    """Continues in a file at an offset."""
    decoder.source_named = True
    decoder.file = file.decode(errors="replace")
    decoder.start = decoder.offset = offset
    decoder.end_position = None
    return 0


cdef int advance_position(Decoder decoder) except -1:
    """Hands out that the source advanced without a captured change, once per position."""
    if decoder.reported != decoder.offset:
        decoder.reported = decoder.offset
        decoder.items.append(PositionAdvance(decoder._event_end(), None))
    return 0


cdef int dump_heartbeat_event(Decoder decoder, Event* event, Cursor* body) except -1:
    """The dump's heartbeat: the source's position, also past transactions that it skipped because the replica has
    them."""
    cdef int64_t offset
    file, sent = dump_heartbeat(
        rest(body), event.type == HEARTBEAT_V2, event.log_pos, decoder.offset, mariadb=decoder.mariadb
    )
    offset = sent
    if decoder.buffer.announced or decoder.buffer.open:
        return 0
    if file != decoder.file or offset < decoder.offset:
        damaged(b"a heartbeat of the dump is before the position already read")
    decoder.start = decoder.offset
    decoder.offset = offset
    return advance_position(decoder)

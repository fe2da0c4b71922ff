# cython: cdivision=True
"""Events of old layouts: logs before version 4, and fixed parts of another size.

`events/dialect.py` rewrites them to today's layout.
"""

from libc.stdint cimport int64_t, uint8_t, uint32_t

from connector.mysql.binlog.decoder cimport Decoder, rest
from connector.mysql.binlog.event cimport ARTIFICIAL, HEADER, ROTATE, Event, read_header
from connector.mysql.binlog.frames cimport EventFrames
from connector.mysql.binlog.control_events cimport go_to, written_by_replica
from connector.mysql.memory cimport Cursor, damaged, little4, little8, take

from connector.mysql.binlog.events.dialect import old_dialect


cdef int translate(Decoder decoder, const uint8_t* all, Cursor* body) except -1:
    """Rewrites an event to today's layout."""
    decoder.translated = decoder.dialect.canonical(all[: body.end - all])
    body.data = <const uint8_t*>decoder.translated + HEADER
    body.end = <const uint8_t*>decoder.translated + len(decoder.translated)
    return 0


cdef int old_start(Decoder decoder, const uint8_t* all, Cursor* body) except -1:
    """START_V3: begins a log before version 4."""
    decoder.dialect = old_dialect(all[: body.end - all])
    decoder.formatted = decoder.old_format = True
    decoder.statements.charset = "latin1"
    decoder.replica_id = little4(all + 5)
    if isinstance(decoder.frames, EventFrames):
        (<EventFrames>decoder.frames).header = decoder.dialect.header
    decoder.offset += body.end - all
    return 0


cdef int old_event(Decoder decoder, Cursor* body) except -1:
    """Decodes an event of such a log. The position is counted; the stored one is unreliable.

    A relay log has its source's ROTATE events, without flag but with time 0 where the source only names its file.
    Between transactions the events after it store where they begin in that file.
    """
    cdef const uint8_t* all = body.data
    cdef Py_ssize_t size = body.end - all
    cdef int64_t offset
    cdef Event event
    if size < decoder.dialect.header:
        damaged(b"an event's length is impossible")
    decoder.start = decoder.offset
    translate(decoder, all, body)
    body.data -= HEADER
    read_header(body, &event)
    decoder.type = event.type
    if event.type == ROTATE and (event.flags & ARTIFICIAL or event.timestamp == 0):
        offset = <int64_t>little8(take(body, 8))
        file = rest(body)
        if file != decoder.file.encode(errors="replace"):
            decoder.relay = True
        return go_to(decoder, offset, file)
    if not written_by_replica(decoder, &event):
        if decoder.relay and not decoder.buffer.open and <uint32_t>decoder.offset < event.log_pos:
            # What the replica itself had written is not in its relay log.
            decoder.start = (decoder.offset & ~<int64_t>0xFFFFFFFF) + event.log_pos
        decoder.offset = decoder.start + size
    return decoder._handle(&event, body)

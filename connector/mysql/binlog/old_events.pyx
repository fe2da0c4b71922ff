# cython: cdivision=True
"""Events that are not written as today: those of logs before version 4, those whose fixed part is another.

They become today's, in Python (`dialect.py`), and are decoded as these.
"""

from libc.stdint cimport int64_t, uint8_t

from connector.mysql.binlog.decoder cimport Decoder, rest
from connector.mysql.binlog.event cimport ARTIFICIAL, HEADER, ROTATE, Event, read_header
from connector.mysql.binlog.frames cimport EventFrames
from connector.mysql.memory cimport Cursor, damaged, little8, take

from connector.mysql.binlog.events.dialect import old_dialect


cdef int translate(Decoder decoder, const uint8_t* all, Cursor* body) except -1:
    """An event whose fixed part is not today's."""
    decoder.translated = decoder.dialect.canonical(all[: body.end - all])
    body.data = <const uint8_t*>decoder.translated + HEADER
    body.end = <const uint8_t*>decoder.translated + len(decoder.translated)
    return 0


cdef int old_start(Decoder decoder, const uint8_t* all, Cursor* body) except -1:
    """A log before version 4 begins."""
    decoder.dialect = old_dialect(all[: body.end - all])
    decoder.formatted = decoder.old = True
    decoder.statements.charset = "latin1"
    if isinstance(decoder.frames, EventFrames):
        (<EventFrames>decoder.frames).header = decoder.dialect.header
    decoder.offset += body.end - all
    return 0


cdef int old_event(Decoder decoder, Cursor* body) except -1:
    """Its place is counted; what it says of it cannot be relied on."""
    cdef const uint8_t* all = body.data
    cdef Event event
    if body.end - all < decoder.dialect.header:
        damaged(b"an event's length is impossible")
    decoder.start = decoder.offset
    decoder.offset += body.end - all
    translate(decoder, all, body)
    body.data -= HEADER
    read_header(body, &event)
    decoder.type = event.type
    if event.type == ROTATE and event.flags & ARTIFICIAL:
        return decoder._to(<int64_t>little8(take(body, 8)), rest(body))
    return decoder._dispatch(&event, body)

# cython: cdivision=True
"""Events of old layouts: logs before version 4, and fixed parts of another size.

`events/dialect.py` rewrites them to today's layout.
"""

from libc.stdint cimport int64_t, uint8_t

from connector.mysql.binlog.decoder cimport Decoder, rest
from connector.mysql.binlog.event cimport ARTIFICIAL, HEADER, ROTATE, Event, read_header
from connector.mysql.binlog.frames cimport EventFrames
from connector.mysql.binlog.log_events cimport go_to
from connector.mysql.memory cimport Cursor, damaged, little8, take

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
    if isinstance(decoder.frames, EventFrames):
        (<EventFrames>decoder.frames).header = decoder.dialect.header
    decoder.offset += body.end - all
    return 0


cdef int old_event(Decoder decoder, Cursor* body) except -1:
    """Decodes an event of such a log. The position is counted; the stored one is unreliable."""
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
        return go_to(decoder, <int64_t>little8(take(body, 8)), rest(body))
    return decoder._dispatch(&event, body)

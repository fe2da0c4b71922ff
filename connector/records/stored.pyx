"""The bytes of a version, and of the versions that an event replaced.

    version    a header (`stored.pxd`), the content
    replaced   for each key: the key's length, the key, the length of the version before plus one (0: none), that version

Lengths are Avro's longs. The versions that an event replaced are cut into parts of about `PART` bytes.
"""

from cpython.bytes cimport PyBytes_FromStringAndSize
from libc.stdint cimport int64_t, uint8_t, uint32_t

from connector.log.format.avro_reader cimport Reader, read_long, skip
from connector.log.format.varint cimport LONGEST, write_varint

PART = 1 << 20


def make_version(int64_t seqno, uint32_t definition, bytes content not None):
    """Make a version.

    Args:
        seqno: the event.
        definition: the number of the row's definition.
        content: the values, or what else is versioned.
    """
    cdef uint8_t[HEADER] header
    write_header(header, seqno, definition)
    return PyBytes_FromStringAndSize(<char*>header, HEADER) + content


def seqno_of(bytes version not None):
    """Return the event that wrote a version. ValueError: it is none."""
    return read_seqno(_header(version))


def definition_of(bytes version not None):
    """Return the number of a version's definition. ValueError: it is none."""
    return read_definition(_header(version))


def content_of(bytes version not None):
    """Return the content of a version."""
    return version[HEADER:]


cdef const uint8_t* _header(bytes version) except NULL:
    if len(version) < HEADER:
        raise ValueError("a version without a header")
    return <const uint8_t*><char*>version


def replaced(dict changed not None, dict known not None, set dirty not None):
    """Make the changed rows of an event the newest ones.

    Args:
        changed: key → the version that the event gives it; None: it deletes the row.
        known: key → the newest version before; gets the new ones.
        dirty: gets the keys.

    Returns:
        The versions that are replaced, in parts; the bytes by which `known` grows.
    """
    cdef list parts = []
    cdef bytearray out = bytearray()
    cdef Py_ssize_t grown = 0
    cdef Py_ssize_t part = PART
    cdef unsigned char[LONGEST] number
    cdef bytes key
    for key, version in changed.items():
        before = known.get(key)
        out += PyBytes_FromStringAndSize(<char*>number, write_varint(number, len(key)))
        out += key
        if before is None:
            out.append(0)
        else:
            out += PyBytes_FromStringAndSize(<char*>number, write_varint(number, len(<bytes>before) + 1))
            out += <bytes>before
        known[key] = version
        grown += len(key) + (0 if version is None else len(<bytes>version))
        if len(out) >= part:
            parts.append(bytes(out))
            out.clear()
    if out:
        parts.append(bytes(out))
    dirty.update(changed)
    return parts, grown


def before(bytes part not None):
    """Read a part of what an event replaced.

    Returns:
        Keys, each with the version before; None: there was none.

    Raises:
        ValueError: the bytes are not such a part.
    """
    cdef Reader r = Reader.__new__(Reader)
    cdef Py_ssize_t start
    cdef long long size
    cdef list found = []
    r.data = part
    r.at = 0
    r.end = len(part)
    while r.at < r.end:
        size = read_long(r)
        start = r.at
        skip(r, size)
        key = part[start : r.at]
        size = read_long(r)
        if size == 0:
            found.append((key, None))
            continue
        start = r.at
        skip(r, size - 1)
        found.append((key, part[start : r.at]))
    return found

"""Divides row images by a hash of their keys, directly on their Avro bytes."""

from array import array

from cpython.bytes cimport PyBytes_FromStringAndSize
from libc.stdint cimport uint32_t

from connector.log.format.avro_values cimport Cursor, Value, read_value
from connector.log.format.crc32 cimport crc32

HASH_VERSION = 1  # of `divided`: a commit that was begun with another one cannot be finished

cdef enum:
    MOST = 64  # columns of a key; MySQL allows 16, MariaDB 32


def divided(
    const unsigned char[::1] data,
    const unsigned long long[::1] ends,
    const unsigned char[::1] key,
    Py_ssize_t count,
    uint32_t seed,
):
    """Divide images by the CRC-32 of their key: of the bytes of its values, in the key's order.

    Args:
        data, ends: of `connector.log.compact.net_changes.Images`.
        key: for each value of an image its place in the key, from 1 on; 0 if it is not in the key.
        count: number of shares.
        seed: of the hash.

    Returns:
        For each share the data and ends of its images, in their order.

    Raises:
        ValueError: the bytes are not a value per place of `key` and image.
    """
    cdef Py_ssize_t image, column, place, parts = 0, start = 0
    cdef Py_ssize_t[MOST] begins
    cdef Py_ssize_t[MOST] sizes
    cdef uint32_t hash
    cdef Cursor cursor
    cdef Value value
    for column in range(key.shape[0]):
        parts += key[column] > 0
        if key[column] > MOST:
            raise ValueError("a key has too many columns")
    if count < 1 or not parts:
        raise ValueError("images are divided by their key")
    shares = [(bytearray(), array("Q")) for _ in range(count)]
    cursor.data = &data[0] if data.shape[0] else NULL
    for image in range(ends.shape[0]):
        if ends[image] > <unsigned long long>data.shape[0] or <Py_ssize_t>ends[image] < start:
            raise ValueError("an image ends outside of the data")
        cursor.at = start
        cursor.end = <Py_ssize_t>ends[image]
        for column in range(key.shape[0]):
            place = key[column] - 1
            if place >= 0:
                begins[place] = cursor.at
            read_value(&cursor, &value)
            if place >= 0:
                sizes[place] = cursor.at - begins[place]
        if cursor.at != cursor.end:
            raise ValueError("an image has more values than columns")
        hash = seed
        for place in range(parts):
            hash = crc32(cursor.data + begins[place], sizes[place], hash)
        content, found = shares[hash % <uint32_t>count]
        content += PyBytes_FromStringAndSize(<const char*>cursor.data + start, cursor.end - start)
        found.append(len(content))
        start = cursor.end
    return shares

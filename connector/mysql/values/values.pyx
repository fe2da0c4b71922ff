# cython: cdivision=True
"""Converts numbers, times and labels of a row image to Avro, one function per type.

The formats are those of MySQL's `mysys/my_time.cc` (`my_*_from_binary`), `strings/decimal.cc` (`bin2decimal`) and
the manual's "Data Type Storage Requirements". Integers are little-endian; values that sort by their bytes are big-endian.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

from connector.log.format.varint cimport write_varint
from connector.mysql.memory cimport (
    BYTES_TAG,
    STRING_TAG,
    Cursor,
    Out,
    big,
    damaged,
    little,
    little8,
    put_block,
    digits_of,
    put_digits,
    put_long,
    room,
    take,
)

cdef enum:
    DECIMAL_TEXT = 128  # 65 digits, up to 30 of them scale; sign, point, zero

# Bytes of the 0..9 decimal digits beside groups of nine digits in four bytes.
cdef int* LEFTOVER = [0, 1, 1, 2, 2, 3, 3, 4, 4, 4]


cdef int put_integer(Cursor* row, Out* out, int size, bint unsigned_) except -1 nogil:
    """Integers of 1, 2, 3, 4 or 8 bytes; from 2^63 on as a string of digits, because Avro's long is signed."""
    cdef uint64_t bits = little(take(row, size), size)
    cdef uint8_t[20] text
    cdef int width
    if unsigned_:
        if bits <= <uint64_t>0x7FFFFFFFFFFFFFFF:
            return put_long(out, <int64_t>bits)
        width = digits_of(bits, 1)
        put_digits(text, bits, width)
        return put_block(out, STRING_TAG, text, width)
    cdef int shift = 64 - 8 * size
    return put_long(out, <int64_t>(bits << shift) >> shift)


cdef int put_either(Cursor* row, Out* out, int size) except -1 nogil:
    """An integer of unknown signedness: if the two readings differ, both, as mysqlbinlog prints them."""
    cdef Cursor again = row[0]
    if not little(take(&again, size), size) >> (8 * size - 1) & 1:
        return put_integer(row, out, size, False)
    with gil:
        raw = take(row, size)[:size]
        text = b"%d (%d)" % (int.from_bytes(raw, "little", signed=True), int.from_bytes(raw, "little"))
        put_block(out, STRING_TAG, <const uint8_t*>(<bytes>text), len(text))
    return 0


cdef int decimal_size(int precision, int scale) noexcept nogil:
    cdef int whole = precision - scale
    return whole // 9 * 4 + LEFTOVER[whole % 9] + scale // 9 * 4 + LEFTOVER[scale % 9]


cdef inline int64_t group(const uint8_t* p, int size, uint8_t flip, int digits) except -1 nogil:
    """One group of at most nine digits; `flip` is 0xFF in negative numbers, whose bits are inverted."""
    cdef uint64_t value = 0
    cdef uint64_t limit = 1
    cdef int i
    for i in range(size):
        value = (value << 8) | (p[i] ^ flip)
    for i in range(digits):
        limit *= 10
    if value >= limit:
        damaged(b"a group of a decimal has too many digits")
    return <int64_t>value


cdef int decimal_text(const uint8_t* image, int precision, int scale, uint8_t* text) except -1 nogil:
    """Writes a granted decimal image as MySQL prints it to `text` (DECIMAL_TEXT bytes); returns the length.

    The first bit is 1 for numbers from zero on; negative numbers are inverted, so that the bytes sort.
    """
    cdef int whole = precision - scale
    cdef uint8_t flip = 0 if image[0] & 0x80 else 0xFF
    cdef uint8_t[128] copy
    cdef uint8_t[128] digits
    cdef int size = decimal_size(precision, scale)
    cdef int at = 0
    cdef int n = 0
    cdef int i
    cdef uint8_t* p = digits
    for i in range(size):
        copy[i] = image[i]
    copy[0] ^= 0x80
    if whole % 9:
        at = LEFTOVER[whole % 9]
        p = put_digits(p, group(copy, at, flip, whole % 9), whole % 9)
    for i in range(whole // 9 + scale // 9):
        p = put_digits(p, group(copy + at, 4, flip, 9), 9)
        at += 4
    if scale % 9:
        p = put_digits(p, group(copy + at, size - at, flip, scale % 9), scale % 9)
    if flip:
        text[n] = 45
        n += 1
    i = 0
    while i < whole - 1 and digits[i] == 48:
        i += 1
    if whole == 0:
        text[n] = 48
        n += 1
    while i < precision:
        if i == whole:
            text[n] = 46
            n += 1
        text[n] = digits[i]
        n += 1
        i += 1
    return n


cdef int put_decimal(Cursor* row, Out* out, int precision, int scale) except -1 nogil:
    cdef uint8_t[DECIMAL_TEXT] text
    cdef const uint8_t* image = take(row, decimal_size(precision, scale))
    cdef int size = decimal_text(image, precision, scale, text)
    return put_block(out, STRING_TAG, text, size)


cdef uint8_t* date_text(uint8_t* p, uint64_t year, uint64_t month, uint64_t day) noexcept nogil:
    p = put_digits(p, year, 4)
    p[0] = 45
    p = put_digits(p + 1, month, 2)
    p[0] = 45
    return put_digits(p + 1, day, 2)


cdef uint8_t* clock_text(uint8_t* p, uint64_t hour, uint64_t minute, uint64_t second) noexcept nogil:
    p = put_digits(p, hour, 3 if hour > 99 else 2)
    p[0] = 58
    p = put_digits(p + 1, minute, 2)
    p[0] = 58
    return put_digits(p + 1, second, 2)


cdef uint8_t* fraction_text(uint8_t* p, uint64_t micros, int digits) noexcept nogil:
    cdef int i
    if digits == 0:
        return p
    for i in range(6 - digits):
        micros //= 10
    p[0] = 46
    return put_digits(p + 1, micros, digits)


cdef int64_t fraction(Cursor* row, int digits) except -1 nogil:
    """Reads a fraction of a second, two digits a byte, big-endian; returns microseconds."""
    cdef int size = (digits + 1) // 2
    cdef int64_t value = <int64_t>big(take(row, size), size)
    cdef int i
    for i in range(3 - size):
        value *= 100
    if value > 999999:
        damaged(b"a fraction of a second is not below one second")
    return value


cdef inline int check(bint sound) except -1 nogil:
    if not sound:
        damaged(b"a date or time has a part out of its range")
    return 0


cdef int put_date(Cursor* row, Out* out) except -1 nogil:
    """3 bytes: day in 5 bits, month in 4, year."""
    cdef uint64_t bits = little(take(row, 3), 3)
    cdef uint8_t[16] text
    check((bits >> 9) <= 9999 and ((bits >> 5) & 15) <= 12)
    cdef uint8_t* end = date_text(text, bits >> 9, (bits >> 5) & 15, bits & 31)
    return put_block(out, STRING_TAG, text, end - text)


cdef int put_datetime2(Cursor* row, Out* out, int digits) except -1 nogil:
    """5 bytes: 1 bit sign (set), 17 bits year * 13 + month, 5 day, 5 hour, 6 minute, 6 second; then the fraction."""
    cdef uint64_t bits = big(take(row, 5), 5)
    cdef uint8_t[32] text
    check(bits >> 39 == 1)
    bits &= <uint64_t>0x7FFFFFFFFF
    cdef uint64_t months = bits >> 22
    check(months < 130000 and ((bits >> 12) & 31) < 24 and ((bits >> 6) & 63) < 60 and (bits & 63) < 60)
    cdef uint8_t* p = date_text(text, months // 13, months % 13, (bits >> 17) & 31)
    p[0] = 32
    p = clock_text(p + 1, (bits >> 12) & 31, (bits >> 6) & 63, bits & 63)
    p = fraction_text(p, fraction(row, digits), digits)
    return put_block(out, STRING_TAG, text, p - text)


cdef uint8_t* seconds_text(uint8_t* p, uint64_t seconds, bint zero) noexcept nogil:
    """Writes seconds since 1970 UTC, or the zero timestamp. Days become a date by 400-year cycles that begin in March."""
    cdef uint64_t days, cycle_day, year_of, day_of, month_of
    if zero:
        p = date_text(p, 0, 0, 0)
    else:
        days = seconds // 86400 + 719468
        cycle_day = days % 146097
        year_of = (cycle_day - cycle_day // 1460 + cycle_day // 36524 - cycle_day // 146096) // 365
        day_of = cycle_day - (365 * year_of + year_of // 4 - year_of // 100)
        month_of = (5 * day_of + 2) // 153
        year_of += days // 146097 * 400 + (1 if month_of >= 10 else 0)
        p = date_text(
            p, year_of, month_of + 3 if month_of < 10 else month_of - 9, day_of - (153 * month_of + 2) // 5 + 1
        )
    p[0] = 32
    return clock_text(p + 1, seconds // 3600 % 24, seconds // 60 % 60, seconds % 60)


cdef int put_timestamp2(Cursor* row, Out* out, int digits) except -1 nogil:
    """4 bytes of seconds, big-endian; then the fraction. All 0 is the zero timestamp; MariaDB also has fractions of
    second 0."""
    cdef uint64_t seconds = big(take(row, 4), 4)
    cdef int64_t micros = fraction(row, digits)
    cdef uint8_t[32] text
    cdef uint8_t* p = seconds_text(text, seconds, seconds == 0 and micros == 0)
    p = fraction_text(p, micros, digits)
    return put_block(out, STRING_TAG, text, p - text)


cdef int put_time2(Cursor* row, Out* out, int digits) except -1 nogil:
    """3 bytes and the fraction, one number with zero in its middle: 10 bits hour, 6 minute, 6 second."""
    cdef int tail = (digits + 1) // 2
    cdef int64_t value = <int64_t>big(take(row, 3 + tail), 3 + tail) - (<int64_t>0x800000 << (8 * tail))
    cdef int64_t one = <int64_t>1 << (8 * tail)
    cdef uint8_t[32] text
    cdef uint8_t* p = text
    cdef int i
    if value < 0:
        p[0] = 45
        p += 1
        value = -value
    cdef int64_t micros = value % one
    cdef int64_t clock = value // one
    for i in range(3 - tail if tail else 0):
        micros *= 100
    check(micros <= 999999 and (clock >> 12) <= 838 and ((clock >> 6) & 63) < 60 and (clock & 63) < 60)
    p = clock_text(p, clock >> 12, (clock >> 6) & 63, clock & 63)
    p = fraction_text(p, micros, digits)
    return put_block(out, STRING_TAG, text, p - text)


cdef int put_old_datetime(Cursor* row, Out* out) except -1 nogil:
    """Before 5.6.4: 8 bytes, the decimal number YYYYMMDDhhmmss."""
    cdef uint64_t value = little8(take(row, 8))
    cdef uint8_t[32] text
    cdef uint64_t date = value // 1000000
    check(date <= 99991231)
    cdef uint8_t* p = date_text(text, date // 10000, date // 100 % 100, date % 100)
    p[0] = 32
    p = clock_text(p + 1, value // 10000 % 100, value // 100 % 100, value % 100)
    return put_block(out, STRING_TAG, text, p - text)


cdef int put_old_timestamp(Cursor* row, Out* out) except -1 nogil:
    """Before 5.6.4: 4 bytes of seconds, little-endian."""
    cdef uint8_t[32] text
    cdef uint64_t seconds = little(take(row, 4), 4)
    cdef uint8_t* p = seconds_text(text, seconds, seconds == 0)
    return put_block(out, STRING_TAG, text, p - text)


cdef int put_old_time(Cursor* row, Out* out) except -1 nogil:
    """Before 5.6.4: 3 bytes, the signed decimal number hhmmss."""
    cdef int32_t value = <int32_t>(<uint64_t>little(take(row, 3), 3) << 8) >> 8
    cdef uint8_t[32] text
    cdef uint8_t* p = text
    if value < 0:
        p[0] = 45
        p += 1
        value = -value
    check(value <= 8385959)
    p = clock_text(p, value // 10000, value // 100 % 100, value % 100)
    return put_block(out, STRING_TAG, text, p - text)


cdef int put_padded(Out* out, const uint8_t* data, Py_ssize_t size, Py_ssize_t full) except -1 nogil:
    """BINARY(n): the log strips the zero bytes at its end."""
    if size > full:
        damaged(b"a BINARY value is longer than its column")
    cdef uint8_t* p = room(out, full + 11)
    p[0] = BYTES_TAG
    cdef int n = 1 + write_varint(p + 1, full)
    memcpy(p + n, data, size)
    memset(p + n + size, 0, full - size)
    out.size += n + full
    return 0


cdef inline uint32_t label_start(const uint32_t* ends, uint64_t index) noexcept nogil:
    return ends[index - 1] if index else 0


cdef int put_enum(
    Out* out, uint64_t index, const uint8_t* labels, const uint32_t* ends, uint32_t count
) except -1 nogil:
    """ENUM: the label's number from 1 on; 0 is the empty string of an invalid value."""
    if index > count:
        damaged(b"an ENUM value has no label")
    if index == 0:
        return put_block(out, STRING_TAG, b"", 0)
    cdef uint32_t start = label_start(ends, index - 1)
    return put_block(out, STRING_TAG, labels + start, ends[index - 1] - start)


cdef int put_set(
    Out* out, uint64_t members, const uint8_t* labels, const uint32_t* ends, uint32_t count
) except -1 nogil:
    """SET: a bit per label; the labels are joined by commas in the order of the definition."""
    cdef Py_ssize_t length = 0
    cdef uint32_t i, start
    cdef bint first = True
    if count < 64 and members >> count:
        damaged(b"a SET value has no label")
    for i in range(count):
        if members >> i & 1:
            length += ends[i] - label_start(ends, i) + (0 if first else 1)
            first = False
    cdef uint8_t* p = room(out, length + 11)
    cdef uint8_t* begin = p
    p[0] = STRING_TAG
    p += 1 + write_varint(p + 1, length)
    first = True
    for i in range(count):
        if members >> i & 1:
            if not first:
                p[0] = 44
                p += 1
            first = False
            start = label_start(ends, i)
            memcpy(p, labels + start, ends[i] - start)
            p += ends[i] - start
    out.size += p - begin
    return 0

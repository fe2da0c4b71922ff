"""MySQL's text of dates and times as PostgreSQL's date_recv, timestamp_recv and interval_recv take them.

Each refuses what the type cannot hold exactly: a date with a zero in it, a day that no calendar has.
"""

from libc.stdint cimport int64_t, uint64_t

from connector.log.format.avro_values cimport Value
from connector.targets.postgres.copy_buffer cimport Buffer, put_field, put_number


cdef inline Py_ssize_t digits_at(const unsigned char* text, Py_ssize_t size, Py_ssize_t at, Py_ssize_t count) except -1:
    """The number that `count` digits say."""
    cdef Py_ssize_t number = 0, index
    if at + count > size:
        raise ValueError("form", "is shorter than its form")
    for index in range(at, at + count):
        if not c"0" <= text[index] <= c"9":
            raise ValueError("form", "has a letter where a digit stands")
        number = number * 10 + (text[index] - c"0")
    return number


cdef inline int expect(const unsigned char* text, Py_ssize_t size, Py_ssize_t at, unsigned char sign) except -1:
    if at >= size or text[at] != sign:
        raise ValueError("form", "has another form")
    return 0


cdef inline int64_t days_since_2000(Value* value) except? -1:
    """Of YYYY-MM-DD at the text's begin, in the Gregorian calendar of all times."""
    cdef Py_ssize_t year = digits_at(value.text, value.size, 0, 4)
    cdef Py_ssize_t month = digits_at(value.text, value.size, 5, 2)
    cdef Py_ssize_t day = digits_at(value.text, value.size, 8, 2)
    cdef Py_ssize_t length
    expect(value.text, value.size, 4, c"-")
    expect(value.text, value.size, 7, c"-")
    if year < 1 or month < 1 or day < 1:
        raise ValueError("zero_date", "is a date with a zero in it, which PostgreSQL has not")
    length = 31 - (month - 1) % 7 % 2
    if month == 2:
        length = 29 if year % 4 == 0 and (year % 100 != 0 or year % 400 == 0) else 28
    if month > 12 or day > length:
        raise ValueError("calendar", "is no day of the calendar")
    # Years begin in March here, so that February's length is the year's end.
    if month < 3:
        year -= 1
        month += 12
    return 365 * year + year // 4 - year // 100 + year // 400 + (153 * (month - 3) + 2) // 5 + day - 730426


cdef inline int64_t microseconds(Value* value, Py_ssize_t at) except? -1:
    """Of :MM:SS[.ffffff] from `at` to the text's end."""
    cdef Py_ssize_t minute, second, places
    cdef int64_t fraction = 0
    expect(value.text, value.size, at, c":")
    minute = digits_at(value.text, value.size, at + 1, 2)
    expect(value.text, value.size, at + 3, c":")
    second = digits_at(value.text, value.size, at + 4, 2)
    if minute > 59 or second > 59:
        raise ValueError("clock", "is no time of the clock")
    at += 6
    if at < value.size:
        expect(value.text, value.size, at, c".")
        places = value.size - at - 1
        if not 1 <= places <= 6:
            raise ValueError("form", "has another form")
        fraction = digits_at(value.text, value.size, at + 1, places)
        while places < 6:
            fraction *= 10
            places += 1
    return (minute * 60 + second) * <int64_t>1000000 + fraction


cdef inline int put_date(Buffer* out, Value* value) except -1:
    if value.size != 10:
        raise ValueError("kind", "is no date")
    put_field(out, 4)
    return put_number(out, <uint64_t>days_since_2000(value), 4)


cdef inline int put_timestamp(Buffer* out, Value* value) except -1:
    cdef int64_t days = days_since_2000(value)
    cdef Py_ssize_t hour = digits_at(value.text, value.size, 11, 2)
    expect(value.text, value.size, 10, c" ")
    if hour > 23:
        raise ValueError("clock", "is no time of the clock")
    put_field(out, 8)
    return put_number(
        out, <uint64_t>((days * 24 + hour) * <int64_t>3600000000 + microseconds(value, 13)), 8
    )


cdef inline int put_interval(Buffer* out, Value* value) except -1:
    """Microseconds, days, months; hours are never made days of."""
    cdef bint negative = value.size > 0 and value.text[0] == c"-"
    cdef Py_ssize_t start = negative, colon = start
    cdef int64_t micros
    while colon < value.size and value.text[colon] != c":":
        colon += 1
    if not 2 <= colon - start <= 3:
        raise ValueError("kind", "is no time")
    micros = digits_at(value.text, value.size, start, colon - start) * <int64_t>3600000000
    micros += microseconds(value, colon)
    put_field(out, 16)
    put_number(out, <uint64_t>(-micros if negative else micros), 8)
    return put_number(out, 0, 8)

# Numbers, times and labels of row images, and of values inside JSON.

from libc.stdint cimport uint8_t, uint32_t, uint64_t

from connector.mysql.memory cimport Cursor, Out

cdef int put_integer(Cursor* row, Out* out, int size, bint unsigned_) except -1 nogil
cdef int put_either(Cursor* row, Out* out, int size) except -1 nogil
cdef int put_decimal(Cursor* row, Out* out, int precision, int scale) except -1 nogil
cdef int decimal_size(int precision, int scale) noexcept nogil
cdef int decimal_text(const uint8_t* image, int precision, int scale, uint8_t* text) except -1 nogil
cdef int put_date(Cursor* row, Out* out) except -1 nogil
cdef int put_datetime2(Cursor* row, Out* out, int digits) except -1 nogil
cdef int put_timestamp2(Cursor* row, Out* out, int digits) except -1 nogil
cdef int put_time2(Cursor* row, Out* out, int digits) except -1 nogil
cdef int put_old_datetime(Cursor* row, Out* out) except -1 nogil
cdef int put_old_timestamp(Cursor* row, Out* out) except -1 nogil
cdef int put_old_time(Cursor* row, Out* out) except -1 nogil
cdef int put_padded(Out* out, const uint8_t* data, Py_ssize_t size, Py_ssize_t full) except -1 nogil
cdef int put_enum(
    Out* out, uint64_t index, const uint8_t* labels, const uint32_t* ends, uint32_t count
) except -1 nogil
cdef int put_set(
    Out* out, uint64_t members, const uint8_t* labels, const uint32_t* ends, uint32_t count
) except -1 nogil

cdef uint8_t* date_text(uint8_t* p, uint64_t year, uint64_t month, uint64_t day) noexcept nogil
cdef uint8_t* clock_text(uint8_t* p, uint64_t hour, uint64_t minute, uint64_t second) noexcept nogil
cdef uint8_t* fraction_text(uint8_t* p, uint64_t micros, int digits) noexcept nogil

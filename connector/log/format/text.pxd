"""Text that grows; numbers, strings and bytes as JSON (RFC 8259, RFC 4648) and Tungsten's layout write them."""

from cpython.bytes cimport PyBytes_FromStringAndSize
from libc.stdint cimport uint64_t
from libc.stdlib cimport free, realloc
from libc.string cimport memcpy, memset

cdef extern from "Python.h":
    char* PyOS_double_to_string(double value, char format, int precision, int flags, int* type) except NULL
    double PyOS_string_to_double(const char* text, char** end, object overflow) except? -1.0
    void PyMem_Free(void* memory)
    int Py_DTSF_ADD_DOT_0

cdef enum:
    KEEP = 8 << 20  # a buffer that has grown larger is given back


cdef struct Text:
    unsigned char* data
    Py_ssize_t size
    Py_ssize_t room


cdef inline int reserve(Text* out, Py_ssize_t more) except -1:
    """Make room for `more` bytes behind `size`."""
    cdef Py_ssize_t wanted
    cdef void* grown
    if more > out.room - out.size:
        wanted = max(2 * out.room, out.size + more)
        grown = realloc(out.data, wanted)
        if grown == NULL:
            raise MemoryError(f"no memory for {wanted} bytes of text")
        out.data = <unsigned char*>grown
        out.room = wanted
    return 0


cdef inline bytes bytes_of(Text* out):
    """Return what was written. A buffer that has grown large is freed; the caller sets the size before writing again."""
    cdef bytes found = PyBytes_FromStringAndSize(<const char*>out.data, out.size)
    if out.room > KEEP:
        free(out.data)
        memset(out, 0, sizeof(Text))
    return found


cdef inline int put(Text* out, const unsigned char* data, Py_ssize_t size) except -1:
    reserve(out, size)
    memcpy(out.data + out.size, data, size)
    out.size += size
    return 0


cdef inline int put_integer(Text* out, long long number) except -1:
    cdef unsigned char[20] digits
    cdef uint64_t rest = <uint64_t>number
    cdef Py_ssize_t at = 20
    if number < 0:
        rest = <uint64_t>0 - rest
    while True:
        at -= 1
        digits[at] = <unsigned char>(c"0" + rest % 10)
        rest //= 10
        if rest == 0:
            break
    if number < 0:
        put(out, b"-", 1)
    return put(out, &digits[at], 20 - at)


cdef inline int put_whole(Text* out, const unsigned char* text, Py_ssize_t size) except -1:
    """An unsigned integer that is already text, because it is above 2**63."""
    cdef Py_ssize_t at
    if size < 1 or size > 20:
        raise ValueError("an integer has an impossible number of digits")
    for at in range(size):
        if not c"0" <= text[at] <= c"9":
            raise ValueError("an integer is not made of digits")
    return put(out, text, size)


cdef inline int put_double(Text* out, double number) except -1:
    """The shortest text that reads back as the same double; always with a point or an exponent."""
    return _put_number(out, PyOS_double_to_string(number, c"r", 0, Py_DTSF_ADD_DOT_0, NULL))


cdef inline int put_single(Text* out, double number) except -1:
    """The same for a number that was a float: six digits hold most, nine hold every one."""
    cdef float single = <float>number
    cdef int precision = 6 if number > 1.18e-38 or number < -1.18e-38 else 1
    cdef char* shown = PyOS_double_to_string(number, c"g", precision, Py_DTSF_ADD_DOT_0, NULL)
    try:
        while precision < 9 and single - single == 0 and <float>PyOS_string_to_double(shown, NULL, None) != single:
            precision += 1
            PyMem_Free(shown)
            shown = NULL
            shown = PyOS_double_to_string(number, c"g", precision, Py_DTSF_ADD_DOT_0, NULL)
    except BaseException:
        PyMem_Free(shown)
        raise
    return _put_number(out, shown)


cdef inline int _put_number(Text* out, char* shown) except -1:
    """Take over what PyOS_double_to_string made."""
    cdef Py_ssize_t size = 0
    try:
        while shown[size] != 0:
            size += 1
        return put(out, <const unsigned char*>shown, size)
    finally:
        PyMem_Free(shown)


cdef inline int put_string(Text* out, const unsigned char* text, Py_ssize_t size) except -1:
    """In quotes; quotes, backslashes and control characters escaped, everything else as the UTF-8 that it is."""
    cdef Py_ssize_t at, done = 0
    cdef unsigned char char
    cdef unsigned char[6] escape
    cdef const unsigned char* hexadecimal = b"0123456789abcdef"
    reserve(out, size + 2)
    put(out, b'"', 1)
    for at in range(size):
        char = text[at]
        if char >= 32 and char != c'"' and char != c"\\":
            continue
        put(out, text + done, at - done)
        done = at + 1
        escape[0] = c"\\"
        if char >= 32:
            escape[1] = char
            put(out, escape, 2)
        elif char == c"\n":
            escape[1] = c"n"
            put(out, escape, 2)
        elif char == c"\t":
            escape[1] = c"t"
            put(out, escape, 2)
        elif char == c"\r":
            escape[1] = c"r"
            put(out, escape, 2)
        else:
            escape[1] = c"u"
            escape[2] = escape[3] = c"0"
            escape[4] = hexadecimal[char >> 4]
            escape[5] = hexadecimal[char & 15]
            put(out, escape, 6)
    put(out, text + done, size - done)
    return put(out, b'"', 1)


cdef inline int put_base64(Text* out, const unsigned char* data, Py_ssize_t size) except -1:
    """Without quotes; padded."""
    cdef const unsigned char* alphabet = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
    cdef Py_ssize_t at = 0
    cdef unsigned int three
    cdef unsigned char* p
    reserve(out, (size + 2) // 3 * 4)
    p = out.data + out.size
    while size - at >= 3:
        three = data[at] << 16 | data[at + 1] << 8 | data[at + 2]
        p[0] = alphabet[three >> 18]
        p[1] = alphabet[three >> 12 & 63]
        p[2] = alphabet[three >> 6 & 63]
        p[3] = alphabet[three & 63]
        p += 4
        at += 3
    if at < size:
        three = data[at] << 16 | (data[at + 1] << 8 if size - at == 2 else 0)
        p[0] = alphabet[three >> 18]
        p[1] = alphabet[three >> 12 & 63]
        p[2] = alphabet[three >> 6 & 63] if size - at == 2 else c"="
        p[3] = c"="
        p += 4
    out.size = p - out.data
    return 0


cdef inline int put_bytes(Text* out, const unsigned char* data, Py_ssize_t size) except -1:
    """Bytes as a value of JSON, which has none: an object that says how to read them."""
    put(out, b'{"base64":"', 11)
    put_base64(out, data, size)
    return put(out, b'"}', 2)


cdef inline int put_hexadecimal(Text* out, const unsigned char* data, Py_ssize_t size) except -1:
    cdef const unsigned char* digits = b"0123456789abcdef"
    cdef Py_ssize_t at
    reserve(out, 2 * size)
    for at in range(size):
        out.data[out.size] = digits[data[at] >> 4]
        out.data[out.size + 1] = digits[data[at] & 15]
        out.size += 2
    return 0

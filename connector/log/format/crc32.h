/* CRC-32 as zlib counts it (polynomial 0xEDB88320, reflected), without a call into Python for each small piece.

   Long pieces by carry-less multiplication where the processor has it: four 128-bit remainders are folded over 64
   bytes at a time, then into one, then reduced (Gopal et al., "Fast CRC Computation for Generic Polynomials Using
   PCLMULQDQ Instruction", Intel 2009, whose constants for this polynomial these are). Everything else by tables, eight
   bytes at a time. */

#ifndef THL_CRC32_H
#define THL_CRC32_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>
#define THL_FOLDS 1
#endif

static uint32_t thl_crc_table[8][256];

static void thl_crc32_prepare(void) {
    for (uint32_t byte = 0; byte < 256; byte++) {
        uint32_t rest = byte;
        for (int bit = 0; bit < 8; bit++) rest = (rest >> 1) ^ (0xEDB88320u & (0u - (rest & 1)));
        thl_crc_table[0][byte] = rest;
    }
    for (int further = 1; further < 8; further++)
        for (int byte = 0; byte < 256; byte++) {
            uint32_t before = thl_crc_table[further - 1][byte];
            thl_crc_table[further][byte] = (before >> 8) ^ thl_crc_table[0][before & 0xFF];
        }
}

/* `rest` is the inverted CRC here and in the next function. */
static uint32_t thl_crc32_by_tables(const uint8_t *data, size_t size, uint32_t rest) {
    for (; size >= 8; data += 8, size -= 8) {
        uint32_t low = rest ^ (data[0] | (uint32_t)data[1] << 8 | (uint32_t)data[2] << 16 | (uint32_t)data[3] << 24);
        rest = thl_crc_table[7][low & 0xFF] ^ thl_crc_table[6][low >> 8 & 0xFF] ^ thl_crc_table[5][low >> 16 & 0xFF] ^
               thl_crc_table[4][low >> 24] ^ thl_crc_table[3][data[4]] ^ thl_crc_table[2][data[5]] ^
               thl_crc_table[1][data[6]] ^ thl_crc_table[0][data[7]];
    }
    for (; size; data++, size--) rest = (rest >> 8) ^ thl_crc_table[0][(rest ^ *data) & 0xFF];
    return rest;
}

#ifdef THL_FOLDS
#define THL_LOAD(p) _mm_loadu_si128((const __m128i *)(p))

__attribute__((target("pclmul,sse4.1"))) static __m128i thl_folded(__m128i rest, __m128i by, __m128i next) {
    __m128i low = _mm_clmulepi64_si128(rest, by, 0x00), high = _mm_clmulepi64_si128(rest, by, 0x11);
    return _mm_xor_si128(_mm_xor_si128(low, high), next);
}

/* `size` is a multiple of 16, at least 64. */
__attribute__((target("pclmul,sse4.1"))) static uint32_t thl_crc32_by_folding(const uint8_t *data, size_t size,
                                                                              uint32_t rest) {
    const __m128i by_64 = _mm_set_epi64x(0x1C6E41596, 0x154442BD4), by_16 = _mm_set_epi64x(0x0CCAA009E, 0x1751997D0);
    const __m128i by_8 = _mm_set_epi64x(0, 0x163CD6124), barrett = _mm_set_epi64x(0x1F7011641, 0x1DB710641);
    const __m128i word = _mm_set_epi32(0, -1, 0, -1);
    __m128i a = _mm_xor_si128(THL_LOAD(data), _mm_cvtsi32_si128((int)rest)), b = THL_LOAD(data + 16);
    __m128i c = THL_LOAD(data + 32), d = THL_LOAD(data + 48);
    for (data += 64, size -= 64; size >= 64; data += 64, size -= 64) {
        a = thl_folded(a, by_64, THL_LOAD(data));
        b = thl_folded(b, by_64, THL_LOAD(data + 16));
        c = thl_folded(c, by_64, THL_LOAD(data + 32));
        d = thl_folded(d, by_64, THL_LOAD(data + 48));
    }
    a = thl_folded(thl_folded(thl_folded(a, by_16, b), by_16, c), by_16, d);
    for (; size; data += 16, size -= 16) a = thl_folded(a, by_16, THL_LOAD(data));
    /* 128 bits to 64, to 32 */
    a = _mm_xor_si128(_mm_srli_si128(a, 8), _mm_clmulepi64_si128(a, by_16, 0x10));
    a = _mm_xor_si128(_mm_srli_si128(a, 4), _mm_clmulepi64_si128(_mm_and_si128(a, word), by_8, 0x00));
    b = _mm_clmulepi64_si128(_mm_and_si128(a, word), barrett, 0x10);
    b = _mm_clmulepi64_si128(_mm_and_si128(b, word), barrett, 0x00);
    return (uint32_t)_mm_extract_epi32(_mm_xor_si128(a, b), 1);
}
#endif

static uint32_t thl_crc32(const uint8_t *data, size_t size, uint32_t before) {
    uint32_t rest = ~before;
#ifdef THL_FOLDS
    if (size >= 64 && __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("sse4.1")) {
        size_t whole = size & ~(size_t)15;
        rest = thl_crc32_by_folding(data, whole, rest);
        data += whole;
        size -= whole;
    }
#endif
    return ~thl_crc32_by_tables(data, size, rest);
}

#endif

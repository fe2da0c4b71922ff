"""Collations by their ids: their names, and the character sets that they belong to.

MySQL's are those of a 9.7 server (`information_schema.COLLATIONS`) and the ids that only older servers have. Ids never
change; of the names those of `utf8mb3` did, which servers before 8.0.30 call `utf8`. MariaDB's are those of an 11.4
server (`information_schema.COLLATION_CHARACTER_SET_APPLICABILITY`): below 576 its ids are MySQL's.
"""

from __future__ import annotations

from functools import cache
from typing import Final

from connector.errors import Unsupported

# For each character set the ids, and what follows its name in the name of the collation (`=` where nothing does).
_ENDINGS: Final = """
armscii8 32 _general_ci 64 _bin
ascii 11 _general_ci 65 _bin
big5 1 _chinese_ci 84 _bin
binary 63 =
cp1250 26 _general_ci 34 _czech_cs 44 _croatian_ci 66 _bin 99 _polish_ci
cp1251 14 _bulgarian_ci 23 _ukrainian_ci 50 _bin 51 _general_ci 52 _general_cs
cp1256 57 _general_ci 67 _bin
cp1257 29 _lithuanian_ci 58 _bin 59 _general_ci
cp850 4 _general_ci 80 _bin
cp852 40 _general_ci 81 _bin
cp866 36 _general_ci 68 _bin
cp932 95 _japanese_ci 96 _bin
dec8 3 _swedish_ci 69 _bin
eucjpms 97 _japanese_ci 98 _bin
euckr 19 _korean_ci 85 _bin
gb18030 248 _chinese_ci 249 _bin 250 _unicode_520_ci
gb2312 24 _chinese_ci 86 _bin
gbk 28 _chinese_ci 87 _bin
geostd8 92 _general_ci 93 _bin
greek 25 _general_ci 70 _bin
hebrew 16 _general_ci 71 _bin
hp8 6 _english_ci 72 _bin
keybcs2 37 _general_ci 73 _bin
koi8r 7 _general_ci 74 _bin
koi8u 22 _general_ci 75 _bin
latin1 5 _german1_ci 8 _swedish_ci 15 _danish_ci 31 _german2_ci 47 _bin 48 _general_ci 49 _general_cs 94 _spanish_ci
latin2 2 _czech_cs 9 _general_ci 21 _hungarian_ci 27 _croatian_ci 77 _bin
latin5 30 _turkish_ci 78 _bin
latin7 20 _estonian_cs 41 _general_ci 42 _general_cs 79 _bin
macce 38 _general_ci 43 _bin
macroman 39 _general_ci 53 _bin
sjis 13 _japanese_ci 88 _bin
swe7 10 _swedish_ci 82 _bin
tis620 18 _thai_ci 89 _bin
ucs2 35 _general_ci 90 _bin 128 _unicode_ci 129 _icelandic_ci 130 _latvian_ci 131 _romanian_ci 132 _slovenian_ci
ucs2 133 _polish_ci 134 _estonian_ci 135 _spanish_ci 136 _swedish_ci 137 _turkish_ci 138 _czech_ci 139 _danish_ci
ucs2 140 _lithuanian_ci 141 _slovak_ci 142 _spanish2_ci 143 _roman_ci 144 _persian_ci 145 _esperanto_ci
ucs2 146 _hungarian_ci 147 _sinhala_ci 148 _german2_ci 149 _croatian_ci 150 _unicode_520_ci 151 _vietnamese_ci
ucs2 159 _general_mysql500_ci
ujis 12 _japanese_ci 91 _bin
utf16 54 _general_ci 55 _bin 101 _unicode_ci 102 _icelandic_ci 103 _latvian_ci 104 _romanian_ci 105 _slovenian_ci
utf16 106 _polish_ci 107 _estonian_ci 108 _spanish_ci 109 _swedish_ci 110 _turkish_ci 111 _czech_ci 112 _danish_ci
utf16 113 _lithuanian_ci 114 _slovak_ci 115 _spanish2_ci 116 _roman_ci 117 _persian_ci 118 _esperanto_ci
utf16 119 _hungarian_ci 120 _sinhala_ci 121 _german2_ci 122 _croatian_ci 123 _unicode_520_ci 124 _vietnamese_ci
utf16le 56 _general_ci 62 _bin
utf32 60 _general_ci 61 _bin 160 _unicode_ci 161 _icelandic_ci 162 _latvian_ci 163 _romanian_ci 164 _slovenian_ci
utf32 165 _polish_ci 166 _estonian_ci 167 _spanish_ci 168 _swedish_ci 169 _turkish_ci 170 _czech_ci 171 _danish_ci
utf32 172 _lithuanian_ci 173 _slovak_ci 174 _spanish2_ci 175 _roman_ci 176 _persian_ci 177 _esperanto_ci
utf32 178 _hungarian_ci 179 _sinhala_ci 180 _german2_ci 181 _croatian_ci 182 _unicode_520_ci 183 _vietnamese_ci
utf8mb3 33 _general_ci 76 _tolower_ci 83 _bin 192 _unicode_ci 193 _icelandic_ci 194 _latvian_ci 195 _romanian_ci
utf8mb3 196 _slovenian_ci 197 _polish_ci 198 _estonian_ci 199 _spanish_ci 200 _swedish_ci 201 _turkish_ci
utf8mb3 202 _czech_ci 203 _danish_ci 204 _lithuanian_ci 205 _slovak_ci 206 _spanish2_ci 207 _roman_ci 208 _persian_ci
utf8mb3 209 _esperanto_ci 210 _hungarian_ci 211 _sinhala_ci 212 _german2_ci 213 _croatian_ci 214 _unicode_520_ci
utf8mb3 215 _vietnamese_ci 223 _general_mysql500_ci
utf8mb4 45 _general_ci 46 _bin 224 _unicode_ci 225 _icelandic_ci 226 _latvian_ci 227 _romanian_ci 228 _slovenian_ci
utf8mb4 229 _polish_ci 230 _estonian_ci 231 _spanish_ci 232 _swedish_ci 233 _turkish_ci 234 _czech_ci 235 _danish_ci
utf8mb4 236 _lithuanian_ci 237 _slovak_ci 238 _spanish2_ci 239 _roman_ci 240 _persian_ci 241 _esperanto_ci
utf8mb4 242 _hungarian_ci 243 _sinhala_ci 244 _german2_ci 245 _croatian_ci 246 _unicode_520_ci 247 _vietnamese_ci
utf8mb4 255 _0900_ai_ci 256 _de_pb_0900_ai_ci 257 _is_0900_ai_ci 258 _lv_0900_ai_ci 259 _ro_0900_ai_ci
utf8mb4 260 _sl_0900_ai_ci 261 _pl_0900_ai_ci 262 _et_0900_ai_ci 263 _es_0900_ai_ci 264 _sv_0900_ai_ci
utf8mb4 265 _tr_0900_ai_ci 266 _cs_0900_ai_ci 267 _da_0900_ai_ci 268 _lt_0900_ai_ci 269 _sk_0900_ai_ci
utf8mb4 270 _es_trad_0900_ai_ci 271 _la_0900_ai_ci 273 _eo_0900_ai_ci 274 _hu_0900_ai_ci 275 _hr_0900_ai_ci
utf8mb4 277 _vi_0900_ai_ci 278 _0900_as_cs 279 _de_pb_0900_as_cs 280 _is_0900_as_cs 281 _lv_0900_as_cs
utf8mb4 282 _ro_0900_as_cs 283 _sl_0900_as_cs 284 _pl_0900_as_cs 285 _et_0900_as_cs 286 _es_0900_as_cs
utf8mb4 287 _sv_0900_as_cs 288 _tr_0900_as_cs 289 _cs_0900_as_cs 290 _da_0900_as_cs 291 _lt_0900_as_cs
utf8mb4 292 _sk_0900_as_cs 293 _es_trad_0900_as_cs 294 _la_0900_as_cs 296 _eo_0900_as_cs 297 _hu_0900_as_cs
utf8mb4 298 _hr_0900_as_cs 300 _vi_0900_as_cs 303 _ja_0900_as_cs 304 _ja_0900_as_cs_ks 305 _0900_as_ci
utf8mb4 306 _ru_0900_ai_ci 307 _ru_0900_as_cs 308 _zh_0900_as_cs 309 _0900_bin 310 _nb_0900_ai_ci 311 _nb_0900_as_cs
utf8mb4 312 _nn_0900_ai_ci 313 _nn_0900_as_cs 314 _sr_latn_0900_ai_ci 315 _sr_latn_0900_as_cs 316 _bs_0900_ai_ci
utf8mb4 317 _bs_0900_as_cs 318 _bg_0900_ai_ci 319 _bg_0900_as_cs 320 _gl_0900_ai_ci 321 _gl_0900_as_cs
utf8mb4 322 _mn_cyrl_0900_ai_ci 323 _mn_cyrl_0900_as_cs
"""

# MariaDB: a collation's id plus NO_PAD is the same collation, but trailing spaces count.
NO_PAD: Final = 1024
# MariaDB: from this id on each of these sets has 256 ids.
UCA1400: Final = 2048
UCA1400_SETS: Final = ("utf8mb3", "utf8mb4", "ucs2", "utf16", "utf32")
UCA1400_IDS: Final = 256
# MariaDB 10: the first id of each run of 32.
MARIADB_RUNS: Final = {576: "utf8mb3", 608: "utf8mb4", 640: "ucs2", 672: "utf16", 736: "utf32"}
RUN_IDS: Final = 32


def _collations() -> dict[int, tuple[str, str]]:
    """Character set and name by id, in the order of the ids."""
    found = {}
    for line in filter(None, _ENDINGS.splitlines()):
        charset, *words = line.split()
        for number, ending in zip(words[::2], words[1::2], strict=True):
            found[int(number)] = charset, charset + ending.strip("=")
    return dict(sorted(found.items()))


COLLATIONS: Final = _collations()
"""MySQL's collations: (character set, name) by id."""


def collation_name(collation: int) -> str:
    """The name of a collation of MySQL.

    Raises:
        Unsupported: the id is not known.
    """
    if collation not in COLLATIONS:
        raise _unknown(collation)
    return COLLATIONS[collation][1]


@cache
def charset_of(collation: int) -> str:
    """The name of the character set that a collation of MySQL or MariaDB belongs to.

    Raises:
        Unsupported: the id is not known.
    """
    padded = collation - NO_PAD if NO_PAD < collation < UCA1400 else collation
    if padded in COLLATIONS:
        return COLLATIONS[padded][0]
    group = (padded - UCA1400) // UCA1400_IDS
    if 0 <= group < len(UCA1400_SETS):
        return UCA1400_SETS[group]
    if charset := MARIADB_RUNS.get(padded // RUN_IDS * RUN_IDS):
        return charset
    raise _unknown(collation)


@cache
def collation_of(charset: str) -> int:
    """The lowest collation id of a character set.

    Raises:
        Unsupported: the set is not known.
    """
    for collation, (name, _) in COLLATIONS.items():
        if name == charset:
            return collation
    raise Unsupported(f"the character set {charset} is not known")


def _unknown(collation: int) -> Unsupported:
    return Unsupported(f"the collation id {collation} is not known", collation=collation)

"""Name patterns of the configuration: `*` stands for any characters, `?` for one."""

from __future__ import annotations

import re
from functools import lru_cache

WILDCARDS = {"*": ".*", "?": "."}


@lru_cache(maxsize=1024)
def glob(pattern: str, *, ignore_case: bool = False) -> re.Pattern[str]:
    """Compiles a pattern; match it with `fullmatch`.

    Args:
        pattern: the text; every character but `*` and `?` stands for itself.
        ignore_case: whether upper and lower case are the same.
    """
    flags = re.DOTALL | re.IGNORECASE if ignore_case else re.DOTALL
    return re.compile("".join(WILDCARDS.get(char) or re.escape(char) for char in pattern), flags)

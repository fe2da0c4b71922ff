"""Names that `thl verify --table` does not find."""

from __future__ import annotations

import pytest

from connector.errors import ConfigError
from connector.verify.run import SHOWN, _refuse_unknown


def hint(wrong: str, *captured: str) -> str:
    with pytest.raises(ConfigError) as refused:
        _refuse_unknown([wrong], dict.fromkeys(captured))
    return refused.value.hint


def test_near_names_are_named_and_no_others() -> None:
    assert hint("shop.ordrs", "shop.orders", "shop.lines", "x.y") == "did you mean shop.orders?"


def test_without_a_near_name_the_first_captured_tables_are_named() -> None:
    assert hint("orders", "b.t", "a.t") == "--table SCHEMA.TABLE; captured: a.t, b.t"
    many = [f"s.t{at:02}" for at in range(SHOWN + 2)]
    assert hint("nothing", *many).endswith("s.t09 and 2 more")
    assert hint("orders").endswith("captured: none")

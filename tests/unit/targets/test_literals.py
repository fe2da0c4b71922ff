"""Numbers within strings."""

from __future__ import annotations

from connector.targets.ddl.literals import number_in


def test_literal_with_many_digits_is_read_in_linear_time() -> None:
    assert number_in("1" * 100_000 + "x") is None
    assert [number_in(text) for text in ("1.", ".1", "1.5e3", " 12 ")] == ["1.", ".1", "1.5e3", "12"]
    assert number_in(".") is None

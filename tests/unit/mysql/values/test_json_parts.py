"""The text of a JSON container, divided into its parts."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connector.mysql.values.json_parts import parts


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (b"{}", []),
        (b"[]", []),
        (
            b'{"a": 1, "b\\"}": [1, {"c": "]"}], "": "x\\\\"}',
            [b'"a"', b"1", b'"b\\"}"', b'[1, {"c": "]"}]', b'""', b'"x\\\\"'],
        ),
        (
            b'[null, -1.5e3, "base64:type15:AA==", [[]], {"a": {}}]',
            [b"null", b"-1.5e3", b'"base64:type15:AA=="', b"[[]]", b'{"a": {}}'],
        ),
    ],
)
def test_a_container_is_divided_into_its_parts(text: bytes, found: list[bytes]) -> None:
    assert parts(text) == found


@pytest.mark.parametrize(
    "text", [b"", b"{", b"1", b'"a"', b'{"a": 1', b'{"a"}', b'["a]', b"[[]", b"[]]", b'{"a": 1]', b"[1}"]
)
def test_what_is_no_container_is_refused(text: bytes) -> None:
    with pytest.raises(ValueError, match=r"container|string|value"):
        parts(text)


@given(st.binary(max_size=40).map(lambda inner: b"[" + inner + b"]"))
def test_any_bytes_are_divided_or_refused(text: bytes) -> None:
    with suppress(ValueError):
        assert all(one in text for one in parts(text))

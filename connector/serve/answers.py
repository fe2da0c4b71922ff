"""Answers of the API."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from flask import Response

from connector.redaction import without_secrets

INDENT: Final = 2


def json_answer(value: Mapping[str, Any], code: int = 200) -> Response:
    """Return an object as JSON: ASCII alone, so that no character of a name moves a terminal's cursor.

    Args:
        value: the object. Secrets are hidden in its texts, not in its numbers and names, where they would be damage.
        code: the status.
    """
    return _answer(json.dumps(without_secrets(value), indent=INDENT, allow_nan=False), code)


def numbers_answer(value: Mapping[str, Any]) -> Response:
    """Return an object without texts as JSON on one line: it may be large."""
    return _answer(json.dumps(value, allow_nan=False), 200)


def _answer(text: str, code: int) -> Response:
    return Response(text + "\n", code, content_type="application/json")

"""Answers of the API."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from flask import Response

from connector.redaction import redacted


def json_answer(value: Mapping[str, Any], code: int = 200) -> Response:
    """Return an object as JSON: ASCII alone, so that no character of a name moves a terminal's cursor."""
    text = redacted(json.dumps(value, indent=2, allow_nan=False))
    return Response(text + "\n", code, content_type="application/json")

"""A record store is refused where rows change that it does not see."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from connector.config.source import Source

STORE: dict[str, Any] = {"records": {"dir": "/var/lib/thl/records"}}


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"statements": "keep"}, "leave out one of both"),
        ({"ignore_server_ids": [7]}, "ignore_server_ids"),
        ({"accept_unlogged_cascades": True}, "accept_unlogged_cascades"),
        ({"filters": {"tables": [{"match": ["shop.*"], "actions": ["insert", "update", "ddl"]}]}}, "actions"),
        ({"filters": {"tables": [{"match": ["shop.*"], "actions": ["insert", "update", "delete"]}]}}, "defaults"),
    ],
)
def test_a_store_that_would_miss_changes_is_refused(settings: dict[str, Any], told: str) -> None:
    assert Source.model_validate(settings).records.dir is None
    with pytest.raises(ValidationError, match=told):
        Source.model_validate({**settings, **STORE})


def test_an_empty_folder_means_no_store() -> None:
    assert Source.model_validate({"records": {"dir": ""}}).records.dir is None
    rules = {"filters": {"tables": [{"match": ["shop.*"], "drop": ["note"]}]}}
    assert Source.model_validate({**rules, **STORE}).records.dir is not None

"""`thl verify` does without the log's position if no broker answers."""

from __future__ import annotations

import pytest

from connector.config.model import Config
from connector.kafka import published_log
from connector.kafka.published_log import KafkaLog


def test_a_log_whose_brokers_do_not_answer_has_no_position(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(published_log, "SECONDS", 0.2)
    nobody = {"bootstrap": "127.0.0.1:1"}
    given = {"service": "shop", "kafka": nobody, "publish": {"idle_position_seconds": 7}}
    log = KafkaLog(Config.model_validate(given))
    assert log.position() is None
    assert log.idle_seconds == 7

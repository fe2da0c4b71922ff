"""The groups under which readers of a log are known to the brokers."""

from __future__ import annotations

from connector.config.model import Config
from connector.kafka.log_reader import LogReader

CONFIG = Config(service="shop")


def test_reader_of_the_log_has_not_the_name_of_the_producer() -> None:
    with LogReader(CONFIG) as reader, LogReader(CONFIG, role="producer") as producer:
        assert (reader._consumer._group, producer._consumer._group) == ("thl.shop.reader", "thl.shop.producer")


def test_reader_to_the_high_watermark_has_the_same_name() -> None:
    with LogReader(CONFIG, high_watermark=True) as reader:
        assert reader._ends_of._group == "thl.shop.reader"

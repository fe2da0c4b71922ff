"""The URL of a target, as it is shown."""

from __future__ import annotations

import pytest

from connector.config.target_url import address_of


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("postgresql://thl:s3cret@db.example:5432/shop?sslmode=require", "postgres db.example:5432/shop"),
        ("postgresql://thl:s3cr%40t@a,b:1/shop", "postgres a,b:1/shop"),
        ("mysql://thl:s3cret@db.example:3306", "mysql db.example:3306"),
        ("sqlite:////var/lib/shop.db", "sqlite /var/lib/shop.db"),
        ("duckdb:////var/lib/shop.duckdb", "duckdb /var/lib/shop.duckdb"),
    ],
)
def test_address_of_a_target_has_no_secret(url: str, address: str) -> None:
    assert address_of(url) == address

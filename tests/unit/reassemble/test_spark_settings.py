"""Where the Kafka connector's jars go."""

from __future__ import annotations

import pytest

from connector.reassemble.spark import CLASS_PATH, _put_beside


@pytest.mark.parametrize("master", ["local", "local[*]", "local[2]"])
def test_where_driver_and_executor_are_one_jars_are_on_its_class_path(master: str) -> None:
    settings = {"spark.master": master, "spark.jars": "/a.jar,/b.jar", CLASS_PATH: "/mine"}
    _put_beside(settings)
    assert settings == {"spark.master": master, CLASS_PATH: "/mine:/a.jar:/b.jar"}


@pytest.mark.parametrize(
    ("master", "jars"),
    [
        ("local-cluster[2,1,1024]", "/a.jar"),
        ("spark://host:7077", "/a.jar"),
        ("local[2]", "hdfs://host/a.jar"),
        ("local", ""),
    ],
)
def test_elsewhere_spark_serves_them(master: str, jars: str) -> None:
    settings = {"spark.master": master, "spark.jars": jars}
    _put_beside(settings)
    assert settings == {"spark.master": master, "spark.jars": jars}

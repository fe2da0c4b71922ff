"""docker/kubernetes/applier-spark.yaml, run: `thl apply` with the manifest's arguments, Spark's own Kubernetes backend,
and executors that a stand-in for the API server starts as the image's script does."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from connector.fetching.java import java_home
from tests.support.apply_process import THL, Scene
from tests.support.deployed import DOCKER
from tests.support.kubernetes_api import Cluster, api_server, programs
from tests.support.servers.environment import Broker
from tests.unit.deploy.test_kubernetes import ALL, DEPLOYMENTS, executor, process_of

pytestmark = [pytest.mark.servers, pytest.mark.long]
NAME = "thl-applier-shop-0"
TINI = '#!/bin/sh\nshift\nexec "$@"\n'  # as much of it as a process needs that is not process 1


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    (role,) = (one.object for one in ALL if one.object["kind"] == "Role")
    python = f'#!/bin/sh\nexec {sys.executable} "$@"\n'  # a link to it would not be in the virtual environment
    for name, script in (("tini", TINI), ("python", python)):
        (tmp_path / name).write_text(script)
        (tmp_path / name).chmod(0o755)
    path = programs(
        tmp_path / "bin",
        {
            "tini": tmp_path / "tini",
            "spark-executor": DOCKER / "spark-executor",
            "python": tmp_path / "python",
        },
    )
    made = Cluster(role["rules"], {"PATH": path, "JAVA_HOME": str(java_home()), "HOME": str(tmp_path)}, tmp_path)
    driver = {"metadata": {"name": NAME, "uid": "0", "labels": {}}, "status": {"phase": "Running"}}
    driver["status"]["conditions"] = [{"type": "Ready", "status": "True"}]  # type: ignore[index]
    made.put("ADDED", "pods", {"apiVersion": "v1", "kind": "Pod", "spec": {"containers": []}, **driver})
    return made


def arguments(address: str, template: Path) -> list[str]:
    """The manifest's options of Spark; the addresses and paths are those of this machine."""
    (spark,) = (one for one in DEPLOYMENTS if one.file == "applier-spark.yaml")
    here = {
        "apply.master": f"k8s://{address}",
        "apply.spark.spark.kubernetes.driver.pod.name": NAME,
        "apply.spark.spark.kubernetes.executor.podTemplateFile": str(template),
        "apply.spark.spark.driver.host": "127.0.0.1",
        "apply.spark.spark.pyspark.python": sys.executable,
        "apply.spark.spark.executor.memory": "512m",
    }
    words = [one.removeprefix("--set=") for one in process_of(spark).words if one.startswith("--set=")]
    given = dict(word.split("=", 1) for word in words)
    assert here.keys() <= given.keys()
    ports = ("spark.driver.port", "spark.driver.blockManager.port")  # others on this machine may have them
    return [f"--set={name}={value}" for name, value in {**given, **here}.items() if not name.endswith(ports)]


def test_executors_read_and_the_driver_applies(cluster: Cluster, kafka_broker: Broker, tmp_path: Path) -> None:
    template = tmp_path / "executor.yaml"
    template.write_text(yaml.safe_dump(executor()))
    scene = Scene(tmp_path, kafka_broker.bootstrap)
    last = scene.insert(200)
    with api_server(cluster) as address:
        process = scene.start(THL, "apply", "--to-seqno", str(last), *arguments(address, template), KUBECONFIG="/none")
        try:
            code = process.wait(400)
        finally:
            process.end()
        logs = "".join(log.read_text(errors="replace")[-3000:] for log in tmp_path.glob("*-exec-*.log"))
        assert code == 0, scene.log_tail() + logs
        scene.reaches(last)
        pods = [thing for event, kind, thing in cluster.events if (event, kind) == ("ADDED", "pods")][1:]
    assert cluster.refused == set()
    assert len(pods) >= 2
    assert cluster.processes.keys() >= {pod["metadata"]["name"] for pod in pods[:2]}
    assert not [one for one in cluster.objects if one[0] != "pods" or one[1] != NAME], "something is left"
    (container,) = pods[0]["spec"]["containers"]
    (wanted,) = executor()["spec"]["containers"]
    assert (container["command"], container["args"]) == (wanted["command"], ["executor"])
    assert container["securityContext"] == wanted["securityContext"]
    labels = pods[0]["metadata"]["labels"]
    assert labels.items() >= executor()["metadata"]["labels"].items()
    assert pods[0]["metadata"]["ownerReferences"][0]["name"] == NAME

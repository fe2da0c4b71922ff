"""docker/kubernetes: manifests that Kubernetes' schema accepts, command lines and files that `thl` reads."""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any, Final

import jsonschema
import pytest
import yaml

from connector.errors import ConfigError
from connector.private_files import guarded
from connector.serve.jobs import COMMAND_GRACE
from tests.support.deployed import DOCKER, ROOT, SECRET, STOPS, Process
from tests.support.servers.kubernetes_schemas import RELEASES, kubernetes_schema

FOLDER: Final = DOCKER / "kubernetes"
GROUPS: Final = {"v1": "core.v1", "apps/v1": "apps.v1", "policy/v1": "policy.v1"}
GROUPS_OF_RULES: Final = {"rbac.authorization.k8s.io/v1": "rbac.v1"}
SECRETS: Final = {
    "source.password": SECRET,
    "target.url": "postgresql://thl:secret@postgres.example:5432/shop",
}
# What the kubelet puts into variables that name a field of the pod.
FIELDS: Final = {
    "metadata.namespace": "thl",
    "metadata.name": "thl-applier-shop-6d9f7c5b8-x2x7q",
    "status.podIP": "10.1.2.3",
}


@dataclass(frozen=True, slots=True)
class Manifest:
    """One object of a file."""

    file: str
    object: dict[str, Any]

    @property
    def name(self) -> str:
        return f"{self.file}: {self.object['kind']} {self.object['metadata']['name']}"


def manifests() -> Iterator[Manifest]:
    for file in sorted(FOLDER.glob("*.yaml")):
        for found in yaml.safe_load_all(file.read_text()):
            yield Manifest(file.name, found)


ALL: Final = list(manifests())
DEPLOYMENTS: Final = [one for one in ALL if one.object["kind"] == "Deployment"]
MAPS: Final = {one.object["metadata"]["name"]: one.object["data"] for one in ALL if one.object["kind"] == "ConfigMap"}
each = pytest.mark.parametrize("manifest", ALL, ids=lambda one: one.name)
deployments = pytest.mark.parametrize("manifest", DEPLOYMENTS, ids=lambda one: one.name)


def executor() -> dict[str, Any]:
    return yaml.safe_load(MAPS["thl-executor"]["executor.yaml"])


def pod_of(manifest: Manifest) -> dict[str, Any]:
    return manifest.object["spec"]["template"]["spec"]


def container_of(manifest: Manifest) -> dict[str, Any]:
    (only,) = pod_of(manifest)["containers"]
    return only


def process_of(manifest: Manifest) -> Process:
    """The container's process: its variables within its arguments, and the files that its volumes put there."""
    container, pod = container_of(manifest), pod_of(manifest)
    environ = {
        one["name"]: one["value"] if "value" in one else FIELDS[one["valueFrom"]["fieldRef"]["fieldPath"]]
        for one in container["env"]
    }
    words = [re.sub(r"\$\((\w+)\)", lambda name: environ[name[1]], word) for word in container["args"]]
    files, secrets = {}, {}
    volumes = {one["name"]: one for one in pod["volumes"]}
    for mount in container["volumeMounts"]:
        volume = volumes.pop(mount["name"])
        if "configMap" in volume:
            texts = MAPS[volume["configMap"]["name"]]
            files |= {f"{mount['mountPath']}/{name}": text for name, text in texts.items()}
        elif "secret" in volume:
            for item in volume["secret"]["items"]:
                secrets[f"{mount['mountPath']}/{item['path']}"] = SECRETS[item["key"]]
    assert not volumes, "a volume is not mounted"
    return Process(words, {name: text for name, text in environ.items() if name.startswith("THL_")}, files, secrets)


def check(release: str, found: dict[str, Any]) -> None:
    document = json.loads(kubernetes_schema(release).read_text())
    group = (GROUPS | GROUPS_OF_RULES)[found["apiVersion"]]
    reference = {"$ref": f"#/$defs/io.k8s.api.{group}.{found['kind']}", **document}
    jsonschema.Draft202012Validator(reference).validate(found)


@pytest.mark.long
@pytest.mark.parametrize("release", RELEASES)
@each
def test_the_schema_of_kubernetes_accepts_it(release: str, manifest: Manifest) -> None:
    check(release, manifest.object)
    if "executor.yaml" in manifest.object.get("data", {}):
        check(release, executor())


@pytest.mark.long
@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("wrong", [{"terminationGracePeriod": 9}, {"containers": [{"image": "x"}]}, {"hostPID": "no"}])
def test_the_schema_refuses_a_wrong_pod(release: str, wrong: dict[str, Any]) -> None:
    pod = executor()
    pod["spec"] |= wrong
    with pytest.raises(jsonschema.ValidationError):
        check(release, pod)


@deployments
def test_its_command_line_and_its_configuration_are_read(manifest: Manifest, tmp_path: Path) -> None:
    process = process_of(manifest)
    config = process.config(tmp_path)
    assert config.service == "shop"
    reads_source, reads_target = process.command in {"produce", "serve"}, process.command in {"apply", "serve"}
    assert config.source.password.get_secret_value() == (SECRET if reads_source else "")
    assert (config.target.url.get_secret_value() == SECRETS["target.url"]) is reads_target


def test_there_is_a_deployment_for_each_process() -> None:
    assert sorted(process_of(one).command for one in DEPLOYMENTS) == ["apply", "apply", "produce", "serve"]


@deployments
def test_its_ports_are_those_of_the_configuration(manifest: Manifest, tmp_path: Path) -> None:
    process = process_of(manifest)
    config = process.config(tmp_path)
    ports = {one["name"]: one["containerPort"] for one in container_of(manifest)["ports"]}
    section = config.serve if process.command == "serve" else config.metrics
    assert (ports["http" if process.command == "serve" else "metrics"], section.host) == (section.port, "0.0.0.0")  # noqa: S104
    annotations = manifest.object["spec"]["template"]["metadata"].get("annotations", {})
    assert annotations.get("prometheus.io/port", str(section.port)) == str(section.port)
    if "driver" in ports:
        spark = config.apply.spark
        assert ports["driver"] == int(spark["spark.driver.port"])
        assert ports["blocks"] == int(spark["spark.driver.blockManager.port"])


@deployments
def test_its_probes_ask_for_pages_that_there_are(manifest: Manifest) -> None:
    container, command = container_of(manifest), process_of(manifest).command
    ports = {one["name"] for one in container["ports"]}
    probes = {name: container[name]["httpGet"] for name in ("livenessProbe", "readinessProbe") if name in container}
    assert {one["port"] for one in probes.values()} <= ports
    paths = {name: one["path"] for name, one in probes.items()}
    assert paths == {"livenessProbe": "/healthz", "readinessProbe": "/readyz"}
    routes = (ROOT / "connector" / ("serve/app.py" if command == "serve" else "metrics.py")).read_text()
    assert all(f'"{path}"' in routes for path in paths.values())


@deployments
def test_it_has_the_time_to_stop_that_the_code_takes(manifest: Manifest) -> None:
    serves = process_of(manifest).command == "serve"
    assert pod_of(manifest)["terminationGracePeriodSeconds"] >= (2 * COMMAND_GRACE if serves else STOPS)


@deployments
def test_no_two_processes_fence_each_other(manifest: Manifest) -> None:
    spec = manifest.object["spec"]
    assert spec["replicas"] == 1
    assert process_of(manifest).command == "serve" or spec["strategy"] == {"type": "Recreate"}


@deployments
def test_no_mount_lies_within_another_one(manifest: Manifest) -> None:
    """A folder cannot be made within a read-only one."""
    paths = [Path(one["mountPath"]) for one in container_of(manifest)["volumeMounts"]]
    assert not [pair for pair in combinations(paths, 2) if pair[0] in pair[1].parents or pair[1] in pair[0].parents]


def test_every_selector_finds_its_pods_and_no_others() -> None:
    labels = {one.name: one.object["spec"]["template"]["metadata"]["labels"] for one in DEPLOYMENTS}
    labels["executor"] = executor()["metadata"]["labels"]
    for one in ALL:
        spec = one.object.get("spec", {})
        selector = spec.get("selector", {})
        wanted = selector.get("matchLabels", selector if one.object["kind"] == "Service" else {})
        found = {name for name, has in labels.items() if wanted and wanted.items() <= has.items()}
        match one.object["kind"]:
            case "Deployment":
                alternatives = {
                    other.name for other in DEPLOYMENTS if "applier" in other.file and "applier" in one.file
                }
                assert found == alternatives | {one.name}
            case "Service":
                assert found == {other.name for other in DEPLOYMENTS if other.file == one.file}
                (port,) = spec["ports"]
                (deployment,) = (other for other in DEPLOYMENTS if other.file == one.file)
                assert port["targetPort"] in {each["name"] for each in container_of(deployment)["ports"]}
            case "PodDisruptionBudget":
                assert found == {"executor"}


def test_all_objects_are_in_one_namespace_and_refer_to_each_other() -> None:
    assert {one.object["metadata"]["namespace"] for one in ALL} == {"thl"}
    names = {(one.object["kind"], one.object["metadata"]["name"]) for one in ALL}
    (spark,) = (one for one in DEPLOYMENTS if one.file == "applier-spark.yaml")
    assert ("ServiceAccount", pod_of(spark)["serviceAccountName"]) in names
    (binding,) = (one.object for one in ALL if one.object["kind"] == "RoleBinding")
    assert (binding["roleRef"]["kind"], binding["roleRef"]["name"]) in names
    (subject,) = binding["subjects"]
    assert (subject["kind"], subject["name"], subject["namespace"]) in {(*one, "thl") for one in names}


def test_a_budget_of_executors_leaves_room_for_a_drain(tmp_path: Path) -> None:
    """Bare pods can have no other budget than a number that stays."""
    (spark,) = (one for one in DEPLOYMENTS if one.file == "applier-spark.yaml")
    (budget,) = (one.object["spec"] for one in ALL if one.object["kind"] == "PodDisruptionBudget")
    instances = int(process_of(spark).config(tmp_path).apply.spark["spark.executor.instances"])
    assert budget.keys() == {"minAvailable", "selector"}
    assert 0 < budget["minAvailable"] < instances


def test_executors_run_the_image_and_the_command_that_the_driver_names(tmp_path: Path) -> None:
    (spark,) = (one for one in DEPLOYMENTS if one.file == "applier-spark.yaml")
    settings = process_of(spark).config(tmp_path).apply.spark
    (container,) = executor()["spec"]["containers"]
    assert settings["spark.kubernetes.executor.podTemplateContainerName"] == container["name"]
    assert settings["spark.kubernetes.container.image"] == container["image"]
    images = {container_of(one)["image"] for one in DEPLOYMENTS}
    assert images == {container["image"]}
    template = Path(settings["spark.kubernetes.executor.podTemplateFile"].replace(str(tmp_path), ""))
    (mount,) = (one for one in container_of(spark)["volumeMounts"] if one["name"] == "executor")
    assert (str(template.parent)[-len(mount["mountPath"]) :], template.name) == (mount["mountPath"], "executor.yaml")


def test_the_secret_s_keys_are_those_that_the_documents_have() -> None:
    asked = {
        item["key"] for one in DEPLOYMENTS for volume in pod_of(one)["volumes"] if "secret" in volume
        for item in volume["secret"]["items"]
    }  # fmt: skip
    told = set(re.findall(r"--from-file=([\w.]+)", (ROOT / "docs" / "deploying.md").read_text()))
    assert asked == told == set(SECRETS)


@contextmanager
def as_user(uid: int) -> Iterator[None]:
    """Files are asked for as another user, who is also in the group of this number."""
    groups, group = os.getgroups(), os.getegid()
    os.setgroups([uid])
    os.setegid(uid)
    os.seteuid(uid)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(group)
        os.setgroups(groups)


@pytest.mark.parametrize(
    ("owner", "mode", "taken"),
    [(0, 0o2775, False), (0, 0o777, False), (1000, 0o700, True), (0, 0o1777, True)],
    ids=["volume of fsGroup", "emptyDir", "given to the user", "image's /tmp"],
)
def test_folders_of_kubernetes_are_taken_only_if_no_other_user_can_write(owner: int, mode: int, taken: bool) -> None:
    """What docs/deploying.md says of volumes: an init container has to give them to the user."""
    if os.geteuid():
        pytest.skip("only root can make folders of other users, so no volume was tried")
    with tempfile.TemporaryDirectory() as name:
        volume = Path(name, "volume")
        volume.mkdir()
        Path(name).chmod(0o755)
        os.chown(volume, owner, 1000)
        volume.chmod(mode)
        with as_user(1000):
            if taken:
                assert guarded(volume / "relay", "relay.dir").is_dir()
                return
            with pytest.raises(ConfigError, match="can be written by other users"):
                guarded(volume / "relay", "relay.dir")


PODS: Final = {one.name: pod_of(one) for one in DEPLOYMENTS} | {"executor": executor()["spec"]}


@pytest.mark.parametrize("pod", PODS.values(), ids=PODS)
def test_pod_is_admitted_by_a_namespace_that_enforces_restricted(pod: dict[str, Any]) -> None:
    """What the Pod Security Standard `restricted` asks for, but for the volumes' kinds."""
    assert pod["securityContext"]["runAsNonRoot"]
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    for container in pod["containers"]:
        assert not container["securityContext"]["allowPrivilegeEscalation"]
        assert container["securityContext"]["capabilities"]["drop"] == ["ALL"]

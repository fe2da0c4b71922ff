"""docker/Dockerfile: what it copies, installs and starts; and what compose and Kubernetes expect of it."""

from __future__ import annotations

import fnmatch
import json
import os
import re
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
import yaml

from tests.support.deployed import DOCKER, ROOT, STOPS, Process

TEXT: Final = (DOCKER / "Dockerfile").read_text()
EXECUTOR: Final = DOCKER / "spark-executor"
VERSION: Final = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]


def instructions() -> Iterator[tuple[str, str]]:
    joined = re.sub(r"\\\n\s*", "", "\n".join(line for line in TEXT.splitlines() if not line.startswith("#")))
    for line in joined.splitlines():
        if line.strip():
            name, _, rest = line.partition(" ")
            yield name, rest


def stages() -> list[list[tuple[str, str]]]:
    found: list[list[tuple[str, str]]] = []
    for name, rest in instructions():
        if name == "FROM":
            found.append([])
        found[-1].append((name, rest))
    return found


def ignored(path: str) -> bool:
    """True if .dockerignore leaves a path out; the last line that matches a path, or a folder above it, decides."""
    out = False
    for line in (ROOT / ".dockerignore").read_text().splitlines():
        pattern = line.removeprefix("!")
        parts = Path(path).parts
        above = ["/".join(parts[: count + 1]) for count in range(len(parts))]
        names = above if not pattern.startswith("**/") else list(parts)
        if any(fnmatch.fnmatchcase(name, pattern.removeprefix("**/")) for name in names):
            out = not line.startswith("!")
    return out


def copied() -> Iterator[str]:
    for name, rest in instructions():
        words = [word for word in rest.split() if not word.startswith("--chmod")]
        if name == "COPY" and not words[0].startswith("--from"):
            yield from words[:-1]


def test_everything_that_it_copies_is_there_and_not_ignored() -> None:
    assert list(copied())
    assert [path for path in copied() if not (ROOT / path).exists() or ignored(path)] == []


def test_its_context_has_what_the_package_is_made_of() -> None:
    """Sources, templates and data of the package: what git has of its folders, and nothing of tests or secrets."""
    files = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\n")
    package = [file for file in files if file.startswith(("connector/", "schemas/", "spark_apps/"))]
    assert any(file.endswith(".html") for file in package)
    assert [file for file in package if ignored(file)] == []
    assert ignored("tests/conftest.py")
    assert ignored(".env")
    assert ignored("connector/log/__pycache__/x.pyc")


def test_it_installs_every_extra_that_a_command_needs() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"].keys()
    (installed,) = re.findall(r"'\.\[([\w,]+)\]'", TEXT)
    assert set(installed.split(",")) == extras - {"dev"}


def test_it_runs_as_a_user_with_a_number_and_ends_at_once() -> None:
    last = stages()[-1]
    values = dict(last)
    assert (values["USER"], "useradd --uid 1000 " in TEXT) == ("1000", True)
    assert json.loads(values["ENTRYPOINT"]) == ["tini", "--", "thl"]
    (packages,) = (rest for name, rest in last if name == "RUN" and "apt-get" in rest)
    assert {"tini", "openjdk-17-jre-headless"} <= set(packages.split())


def test_its_environment_has_the_programs_and_the_cache(tmp_path: Path) -> None:
    values = dict(re.findall(r"(\w+)=(\S+)", dict(stages()[-1])["ENV"]))
    assert values == {"PATH": "/opt/thl/bin:$PATH", "THL_CACHE": "/home/thl/cache"}
    assert "COPY --from=build /opt/thl /opt/thl" in TEXT


def test_what_it_fetches_is_known_to_the_fetcher() -> None:
    from connector.fetching.fetch import THINGS

    (named,) = re.findall(r"python -m connector\.fetching\.fetch (.+)", TEXT)
    assert set(named.split()) <= THINGS.keys()


def test_every_manifest_and_the_documents_name_the_image_of_this_version() -> None:
    pages = [*(DOCKER / "kubernetes").glob("*.yaml"), DOCKER / "Dockerfile", ROOT / "docs" / "deploying.md"]
    named = {page.name: set(re.findall(r"thl-connector:([\w.]+)", page.read_text())) for page in pages}
    assert named.pop("config.yaml") == set()
    assert set(map(frozenset, named.values())) == {frozenset({VERSION})}


def environment(folder: Path, **more: str) -> dict[str, str]:
    """What Spark's Kubernetes backend puts into an executor's environment."""
    return {
        "PATH": f"{folder}:{os.environ['PATH']}",
        "SPARK_DRIVER_URL": "spark://CoarseGrainedScheduler@10.1.2.3:7078",
        "SPARK_EXECUTOR_ID": "1",
        "SPARK_EXECUTOR_CORES": "1",
        "SPARK_EXECUTOR_MEMORY": "1g",
        "SPARK_APPLICATION_ID": "spark-application-1",
        "SPARK_CONF_DIR": "/opt/spark/conf",
        "SPARK_EXECUTOR_POD_IP": "10.1.2.4",
        "SPARK_EXECUTOR_POD_NAME": "thl-exec-1",
        "SPARK_RESOURCE_PROFILE_ID": "0",
        **more,
    }


def test_an_executor_gets_the_options_of_its_driver_word_by_word(tmp_path: Path) -> None:
    for name, text in {
        "java": '#!/bin/sh\nfor word in "$@"; do echo "$word"; done\n',
        "python": "#!/bin/sh\necho /jars\n",
    }.items():
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    options = {"SPARK_JAVA_OPT_0": "-Da=with space", "SPARK_JAVA_OPT_1": "-Db=$HOME;`id`", "SPARK_JAVA_OPT_3": "-Dc"}
    said = subprocess.run(
        [str(EXECUTOR), "executor"], env=environment(tmp_path, **options), capture_output=True, text=True, check=True
    )
    words = said.stdout.splitlines()
    assert words[:4] == ["-Da=with space", "-Db=$HOME;`id`", "-Xms1g", "-Xmx1g"]
    assert words[words.index("-cp") + 1] == "/opt/spark/conf:/jars/*"
    assert dict(zip(words[-14::2], words[-13::2], strict=True)) == {
        "--driver-url": "spark://CoarseGrainedScheduler@10.1.2.3:7078",
        "--executor-id": "1",
        "--cores": "1",
        "--app-id": "spark-application-1",
        "--hostname": "10.1.2.4",
        "--resourceProfileId": "0",
        "--podName": "thl-exec-1",
    }


def test_an_executor_without_its_environment_says_what_is_missing(tmp_path: Path) -> None:
    environ = environment(tmp_path)
    del environ["SPARK_DRIVER_URL"], environ["SPARK_EXECUTOR_MEMORY"]
    (tmp_path / "python").write_text("#!/bin/sh\necho /jars\n")
    (tmp_path / "python").chmod(0o755)
    said = subprocess.run([str(EXECUTOR)], env=environ, capture_output=True, text=True, check=False)
    assert said.returncode == 2
    assert "SPARK_EXECUTOR_MEMORY" in said.stderr


COMPOSE: Final = yaml.safe_load((DOCKER / "compose.yaml").read_text())["services"]
CONNECTOR: Final = [name for name, service in COMPOSE.items() if "build" in service]


@pytest.mark.parametrize("name", CONNECTOR)
def test_a_service_of_compose_is_read_starts_again_and_has_time_to_stop(name: str) -> None:
    service = COMPOSE[name]
    assert Process(service["command"]).options() is not None
    assert service["restart"] == "on-failure"  # not after `thl offline`
    assert float(service["stop_grace_period"].removesuffix("s")) >= STOPS


def test_every_service_of_compose_has_a_health_check_and_a_policy_of_restarts() -> None:
    assert CONNECTOR == ["produce", "apply", "serve"]
    assert [name for name, one in COMPOSE.items() if "healthcheck" not in one or "restart" not in one] == []
    waits = {name: one.get("depends_on", {}) for name, one in COMPOSE.items()}
    for name, needed in waits.items():
        assert all(other in COMPOSE and how == {"condition": "service_healthy"} for other, how in needed.items()), name


def test_health_checks_of_the_connector_ask_for_its_ports() -> None:
    asked = {
        name: re.findall(r"127\.0\.0\.1:(\d+)(/\w+)", " ".join(COMPOSE[name]["healthcheck"]["test"]))
        for name in CONNECTOR
    }
    metrics = COMPOSE["produce"]["environment"]["THL_METRICS__PORT"]
    assert asked == {
        "produce": [(metrics, "/healthz")],
        "apply": [(metrics, "/healthz")],
        "serve": [("8090", "/healthz")],
    }


def test_grafana_has_prometheus_and_the_dashboard() -> None:
    grafana = COMPOSE["grafana"]
    mounts = dict(reversed(volume.removesuffix(":ro").split(":")) for volume in grafana["volumes"])
    provisioning = (DOCKER / mounts["/etc/grafana/provisioning"]).resolve()
    (source,) = yaml.safe_load((provisioning / "datasources" / "prometheus.yaml").read_text())["datasources"]
    assert source["url"] == "http://prometheus:9090"
    assert COMPOSE["prometheus"]["ports"][0].endswith(":9090")
    (provider,) = yaml.safe_load((provisioning / "dashboards" / "thl.yaml").read_text())["providers"]
    home = Path(grafana["environment"]["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"])
    assert (Path(provider["options"]["path"]), json.loads((DOCKER / mounts[str(home)]).read_text())["uid"]) == (
        home.parent,
        "thl-connector",
    )
    assert json.loads((DOCKER / mounts[str(home)]).read_text())["templating"]["list"][0]["query"] == source["type"]

"""A stand-in for Kubernetes' API server that runs pods as processes of this machine: as much of it as Spark asks for.

It keeps pods and config maps, answers lists and watches (by HTTP: to a websocket it says that there is none), and
refuses what the rules of a Role do not allow. A pod is the process of its container's command, with its environment. It
shows what Spark's own Kubernetes backend makes of a manifest's arguments; it is no Kubernetes.
"""

from __future__ import annotations

import json
import os
import subprocess
import threading
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

Object = dict[str, Any]
KINDS: Final = {"pods": "Pod", "configmaps": "ConfigMap", "services": "Service"} | {
    "persistentvolumeclaims": "PersistentVolumeClaim"
}
VERBS: Final = {"POST": "create", "PUT": "update", "PATCH": "patch"}


@dataclass
class Cluster:
    """What is there, and who may do what.

    Args:
        rules: of the Role.
        environ: variables of every pod's process, under those of its container.
        folder: for the output of pods.
    """

    rules: Sequence[Mapping[str, Sequence[str]]]
    environ: Mapping[str, str]
    folder: Path
    objects: dict[tuple[str, str], Object] = field(default_factory=dict)
    asked: set[tuple[str, str]] = field(default_factory=set)  # verb and resource
    refused: set[tuple[str, str]] = field(default_factory=set)
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    changed: threading.Condition = field(default_factory=threading.Condition)
    events: list[tuple[str, str, Object]] = field(default_factory=list)  # kind of event, resource, object

    def allows(self, verb: str, resource: str) -> bool:
        """Whether the rules allow a request; notes it."""
        self.asked.add((verb, resource))
        if any(resource in rule["resources"] and verb in rule["verbs"] for rule in self.rules):
            return True
        self.refused.add((verb, resource))
        return False

    def put(self, event: str, resource: str, thing: Object) -> None:
        """Keep an object, and let the watches have it."""
        with self.changed:
            thing["metadata"]["resourceVersion"] = str(len(self.events) + 1)
            key = (resource, thing["metadata"]["name"])
            if event == "DELETED":
                self.objects.pop(key, None)
            else:
                self.objects[key] = thing
            self.events.append((event, resource, json.loads(json.dumps(thing))))
            self.changed.notify_all()

    def create(self, resource: str, thing: Object) -> Object:
        """Keep a new object; start the process of a pod."""
        made = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        thing["metadata"] |= {"uid": str(uuid.uuid4()), "creationTimestamp": made, "namespace": "thl"}
        if resource == "pods":
            thing["status"] = {"phase": "Pending"}
        self.put("ADDED", resource, thing)
        if resource == "pods":
            threading.Thread(target=self._run, args=(thing,), daemon=True).start()
        return thing

    def _run(self, pod: Object) -> None:
        name = pod["metadata"]["name"]
        (container,) = pod["spec"]["containers"]
        environ = {one["name"]: one.get("value", "") for one in container["env"] if "valueFrom" not in one}
        for one in container["env"]:
            source = one.get("valueFrom", {}).get("fieldRef", {}).get("fieldPath")
            environ |= {one["name"]: {"status.podIP": "127.0.0.1", "metadata.name": name}[source]} if source else {}
        with (self.folder / f"{name}.log").open("wb") as log:
            process = subprocess.Popen(
                [*container["command"], *container["args"]],
                env={**self.environ, **environ},
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=self.folder,
                start_new_session=True,
            )
        self.processes[name] = process
        self._status(pod, container["name"], "Running", {"running": {}})
        code = process.wait()
        state = {"terminated": {"exitCode": code, "reason": "Completed" if code == 0 else "Error"}}
        if ("pods", name) in self.objects:
            self._status(pod, container["name"], "Succeeded" if code == 0 else "Failed", state)

    def _status(self, pod: Object, container: str, phase: str, state: Object) -> None:
        pod["status"] = {
            "phase": phase,
            "podIP": "127.0.0.1",
            "containerStatuses": [
                {"name": container, "state": state, "ready": phase == "Running", "restartCount": 0}
                | {"image": "", "imageID": ""}
            ],
        }
        self.put("MODIFIED", "pods", pod)

    def delete(self, resource: str, name: str) -> Object | None:
        """Delete an object; end the process of a pod."""
        thing = self.objects.get((resource, name))
        if thing is None:
            return None
        if process := self.processes.get(name):
            process.terminate()
        self.put("DELETED", resource, thing)
        return thing

    def end(self) -> None:
        """End the processes."""
        for process in self.processes.values():
            process.kill()
            process.wait(30)


def selected(thing: Object, query: Mapping[str, list[str]]) -> bool:
    """Whether an object has the labels, and the name, that a request names."""
    labels = thing["metadata"].get("labels", {})
    for term in ",".join(query.get("labelSelector", [])).split(","):
        name, _, value = term.partition("=")
        if term and (name.startswith("!") or labels.get(name) != value.lstrip("=")):
            return False
    for term in query.get("fieldSelector", []):
        name, _, value = term.partition("=")
        if name == "metadata.name" and thing["metadata"]["name"] != value:
            return False
    return True


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    cluster: Cluster

    def log_message(self, format: str, *arguments: Any) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        self._answer()

    def do_POST(self) -> None:
        self._answer()

    def do_PUT(self) -> None:
        self._answer()

    def do_PATCH(self) -> None:
        self._answer()

    def do_DELETE(self) -> None:
        self._answer()

    def _answer(self) -> None:
        url = urlsplit(self.path)
        length = int(self.headers.get("Content-Length") or 0)
        body = json.loads(self.rfile.read(length) or b"{}")
        query = parse_qs(url.query)
        parts = url.path.strip("/").split("/")
        if parts[:3] != ["api", "v1", "namespaces"] or len(parts) < 5:
            self._send(200, {"major": "1", "minor": "30", "gitVersion": "v1.30.0"} if parts == ["version"] else {})
            return
        resource, name = parts[4], parts[5] if len(parts) > 5 else ""
        watches = query.get("watch") == ["true"]
        reads = "watch" if watches else "get" if name else "list"
        deletes = "delete" if name else "deletecollection"
        verb = VERBS.get(self.command, reads if self.command == "GET" else deletes)
        if not self.cluster.allows(verb, resource):
            self._send(403, {"kind": "Status", "status": "Failure", "code": 403, "message": f"{verb} {resource}"})
        elif watches and "upgrade" in self.headers.get("Connection", "").lower():
            self._send(503, {"kind": "Status", "status": "Failure", "code": 503})
        elif watches:
            self._watch(resource, query)
        else:
            self._do(verb, resource, name, query, body)

    def _do(self, verb: str, resource: str, name: str, query: Mapping[str, list[str]], body: Object) -> None:
        found = self.cluster.objects.get((resource, name))
        there = [thing for (kind, _), thing in list(self.cluster.objects.items()) if kind == resource]
        chosen = [thing for thing in there if selected(thing, query)]
        missing = {"kind": "Status", "status": "Failure", "code": 404, "reason": "NotFound", "message": name}
        match verb:
            case "list":
                version = str(len(self.cluster.events))
                kind = {"kind": f"{KINDS[resource]}List", "apiVersion": "v1"}
                self._send(200, {**kind, "metadata": {"resourceVersion": version}, "items": chosen})
            case "create":
                self._send(201, self.cluster.create(resource, body))
            case "deletecollection":
                for thing in chosen:
                    self.cluster.delete(resource, thing["metadata"]["name"])
                self._send(200, {"kind": "Status", "status": "Success", "code": 200})
            case "delete":
                self._send(200, found) if self.cluster.delete(resource, name) and found else self._send(404, missing)
            case "get":
                self._send(200, found) if found else self._send(404, missing)
            case _:
                self._send(200, found) if found else self._send(404, missing)

    def _watch(self, resource: str, query: Mapping[str, list[str]]) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        version = int((query.get("resourceVersion") or ["0"])[0] or 0)
        cluster = self.cluster
        try:
            while True:
                with cluster.changed:
                    if len(cluster.events) <= version:
                        cluster.changed.wait(1)
                    new, version = cluster.events[version:], len(cluster.events)
                for event, kind, thing in new:
                    if kind == resource and selected(thing, query):
                        line = json.dumps({"type": event, "object": thing}).encode() + b"\n"
                        self.wfile.write(f"{len(line):x}\r\n".encode() + line + b"\r\n")
                        self.wfile.flush()
        except OSError:
            self.close_connection = True

    def _send(self, code: int, thing: Object) -> None:
        text = json.dumps(thing).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)


@contextmanager
def api_server(cluster: Cluster) -> Iterator[str]:
    """Answer for a cluster on loopback; the address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"cluster": cluster}))
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        cluster.end()


def programs(folder: Path, found: Mapping[str, Path]) -> str:
    """A PATH that begins with a folder of these programs."""
    folder.mkdir()
    for name, program in found.items():
        (folder / name).symlink_to(program)
    return f"{folder}:{os.environ['PATH']}"

"""The routes of `thl serve`: a page for people, JSON for programs, metrics and health for monitoring."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from flask import Flask, Response, abort, redirect, render_template, request, url_for
from werkzeug.exceptions import HTTPException
from werkzeug.wrappers import Response as BaseResponse

from connector.clock import Clock
from connector.health import Answer, alive
from connector.serve import actions, page
from connector.serve.answers import json_answer, numbers_answer
from connector.serve.exposition import exposed, registry_of
from connector.serve.guard import SESSION_SECONDS, Guard, new_secret
from connector.serve.jobs import Jobs
from connector.serve.objects import service_object, summary
from connector.serve.watcher import Watcher

METRICS_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
# Probes of an orchestrator come under an address, and learn nothing.
WITHOUT_HOST: Final = frozenset({"/healthz", "/readyz"})
HEADERS: Final = {
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
MOST_BYTES: Final = 16 << 10  # of a request
SESSIONS: Final = {
    "SESSION_COOKIE_HTTPONLY": True,
    "SESSION_COOKIE_SAMESITE": "Strict",
    "PERMANENT_SESSION_LIFETIME": SESSION_SECONDS,
    "SESSION_REFRESH_EACH_REQUEST": False,  # else a page that refreshes itself makes it endless
}


def create_app(watchers: Sequence[Watcher], guard: Guard, clock: Clock, jobs: Jobs) -> Flask:
    """Return the application.

    Args:
        watchers: of the services, in the order of the page.
        guard: decides about requests.
        clock: the time of pages.
        jobs: runs the commands of buttons.
    """
    app = Flask("connector.serve")
    app.config.update(
        MAX_CONTENT_LENGTH=MOST_BYTES, **SESSIONS, SESSION_COOKIE_NAME=guard.cookie, SECRET_KEY=new_secret()
    )
    app.session_interface = actions.Sessions()
    page.install(app)
    by_name = {watcher.service.name: watcher for watcher in watchers}
    registry = registry_of(watchers)

    @app.before_request
    def _check_host() -> None:
        if request.path not in WITHOUT_HOST and not guard.is_known_host(request.headers.get("Host", "")):
            abort(421, "this server does not answer to that name: serve.hosts lists further ones")

    @app.after_request
    def _set_headers(response: Response) -> Response:
        for name, value in HEADERS.items():
            response.headers.setdefault(name, value)
        return response

    @app.errorhandler(HTTPException)
    def _refused(error: HTTPException) -> BaseResponse:
        if error.code is not None and 300 <= error.code < 400:
            return error.get_response()
        if request.path.startswith("/api/"):
            return json_answer({"error": error.description}, error.code or 500)
        known = request.path in WITHOUT_HOST or guard.is_known_host(request.headers.get("Host", ""))
        text = render_template("error.html", code=error.code, text=error.description, name=error.name, known=known)
        return Response(text, error.code)

    @app.get("/")
    def index() -> Any:
        if len(watchers) == 1:
            return redirect(url_for("service", name=watchers[0].service.name))
        return render_template("index.html", services=page.overview(watchers))

    @app.get("/services/<name>")
    def service(name: str) -> str:
        hours = request.args.get("hours", default=page.HOURS[1], type=int)
        hours = hours if hours in page.HOURS else page.HOURS[1]
        shown = page.service_page(_watcher(by_name, name), clock, hours)
        buttons = actions.shown(guard, jobs, name)
        return render_template("service.html", **shown, **buttons, periods=page.HOURS, several=len(watchers) > 1)

    @app.get("/api/services")
    def api_services() -> Response:
        return json_answer({"services": [summary(watcher) for watcher in watchers], "readOnly": not guard.has_buttons})

    @app.get("/api/services/<name>")
    def api_service(name: str) -> Response:
        return json_answer(service_object(_watcher(by_name, name)))

    @app.get("/api/services/<name>/history")
    def api_history(name: str) -> Response:
        hours = request.args.get("hours", default=24.0, type=float)
        points = _watcher(by_name, name).history.points(clock.now() / 1e6 - hours * 3600)
        return numbers_answer({"points": [point.as_object() for point in points]})

    @app.get("/metrics")
    def metrics() -> Response:
        return Response(exposed(registry), content_type=METRICS_TYPE)

    @app.get("/healthz")
    def healthz() -> Response:
        return _plain(alive(watcher.loop for watcher in watchers))

    @app.get("/readyz")
    def readyz() -> Response:
        unread = [watcher.service.name for watcher in watchers if watcher.newest is None]
        return _plain(Answer(not unread, f"not read yet: {', '.join(unread)}" if unread else "ok"))

    if guard.has_buttons:
        actions.install(app, {name: watcher.service for name, watcher in by_name.items()}, guard, jobs)
    return app


def _watcher(by_name: Mapping[str, Watcher], name: str) -> Watcher:
    found = by_name.get(name)
    if found is None:
        abort(404, "there is no such service here")
    return found


def _plain(answer: Answer) -> Response:
    return Response(answer.text + "\n", 200 if answer.ok else 503, content_type="text/plain; charset=utf-8")

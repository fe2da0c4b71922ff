"""The routes of the buttons, for sessions and programs that have the token."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from flask import Flask, Response, abort, redirect, request, session, url_for
from flask.sessions import SecureCookieSessionInterface
from werkzeug.wrappers import Response as BaseResponse

from connector.errors import ConnectorError
from connector.serve.answers import json_answer
from connector.serve.guard import Guard, equal
from connector.serve.jobs import ButtonAction, Jobs
from connector.serve.services import ServedService

BEARER: Final = "bearer"
CSRF: Final = "csrf"  # the session's secret
TLS: Final = "tls"  # the session began on a page that came by TLS, from a proxy
FORMS: Final = frozenset({"application/x-www-form-urlencoded", "multipart/form-data"})


class Sessions(SecureCookieSessionInterface):
    """Cookies that go by TLS alone where the session began so: this server itself has none, a proxy may have."""

    def get_cookie_secure(self, app: Flask) -> bool:
        """True if the browser is to send the cookie by TLS alone."""
        return bool(session.get(TLS))


def shown(guard: Guard, jobs: Jobs, service: str) -> dict[str, Any]:
    """Return what a page shows of the buttons: outputs of jobs for those alone who have given the token."""
    logged_in = _is_logged_in(guard)
    return {
        "buttons": guard.has_buttons,
        "logged_in": logged_in,
        "csrf": session.get(CSRF, "") if logged_in else "",
        "jobs": jobs.of(service) if logged_in else [],
        "wrong": request.args.get("wrong") is not None,
        "refused": session.pop("refused", "") if logged_in else "",
    }


def install(app: Flask, services: Mapping[str, ServedService], guard: Guard, jobs: Jobs) -> None:
    """Add the routes.

    Args:
        app: the application.
        services: by name.
        guard: decides about tokens.
        jobs: runs the commands.
    """

    def _service(name: str) -> ServedService:
        return services.get(name) or abort(404, "there is no such service here")

    @app.post("/services/<name>/login")
    def login(name: str) -> BaseResponse:
        _service(name)
        _refuse_other_origins(guard)
        _end_session(guard)
        if not guard.accepts(request.form.get("token", ""), _address()):
            return redirect(url_for("service", name=name, wrong=1) + "#buttons", 303)
        session.permanent = True
        session[CSRF] = guard.open_session()
        session[TLS] = request.headers.get("Origin", "").startswith("https://")
        return redirect(url_for("service", name=name) + "#buttons", 303)

    @app.post("/services/<name>/logout")
    def logout(name: str) -> BaseResponse:
        _service(name)
        _check(guard)
        _end_session(guard)
        return redirect(url_for("service", name=name) + "#buttons", 303)

    @app.post("/services/<name>/actions/<action>")
    def act(name: str, action: str) -> BaseResponse:
        service = _service(name)
        _check(guard)
        try:
            jobs.start(service, _action(action), _fields(), _address())
        except ConnectorError as error:
            session["refused"] = f"{error.message}: {error.hint}" if error.hint else error.message
        return redirect(url_for("service", name=name) + "#buttons", 303)

    @app.post("/api/services/<name>/actions/<action>")
    def api_act(name: str, action: str) -> Response:
        service = _service(name)
        _check_bearer(guard)
        try:
            job = jobs.start(service, _action(action), _fields(), _address())
        except ConnectorError as error:
            return json_answer({"error": error.message, "remedy": error.hint}, 409)
        return json_answer(job.as_object(), 202)

    @app.get("/api/services/<name>/jobs")
    def api_jobs(name: str) -> Response:
        _service(name)
        _check_bearer(guard)
        return json_answer({"jobs": [job.as_object() for job in jobs.of(name)]})


def _action(name: str) -> ButtonAction:
    try:
        return ButtonAction(name)
    except ValueError:
        abort(404, "there is no such action")


def _fields() -> dict[str, str]:
    """Return the fields of the form, each given once. What is sent otherwise would be passed over in silence."""
    if request.args or (request.content_length and request.mimetype not in FORMS):
        abort(415, "fields are sent as a form, in the body: curl -d FIELD=VALUE")
    found = {name: values for name, values in request.form.to_dict(flat=False).items() if name != CSRF}
    if any(len(values) > 1 for values in found.values()):
        abort(400, "a field is given twice")
    return {name: values[0] for name, values in found.items()}


def _address() -> str:
    return request.remote_addr or "unknown"


def _is_logged_in(guard: Guard) -> bool:
    return guard.has_buttons and guard.has_session(session.get(CSRF, ""))


def _end_session(guard: Guard) -> None:
    guard.end_session(session.get(CSRF, ""))
    session.clear()


def _check(guard: Guard) -> None:
    """Refuse a browser without a session, and a form that is not of this server's page."""
    if not _is_logged_in(guard):
        abort(403, "give the token first")
    _refuse_other_origins(guard)
    if not equal(request.form.get(CSRF, ""), session[CSRF]):
        abort(403, "the form is not of this session: load the page again")


def _check_bearer(guard: Guard) -> None:
    """Refuse a program without the token. Browsers do not send this header by themselves."""
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    if scheme.lower() == BEARER and guard.accepts(token.strip(), _address()):
        return
    if scheme and guard.waits(_address()):
        abort(429, "too many wrong tokens were given: none is looked at for a minute")
    abort(401, "Authorization: Bearer TOKEN is needed, with the token of serve.token_file")


def _refuse_other_origins(guard: Guard) -> None:
    if not guard.is_same_origin(request.headers, request.host):
        abort(403, "the request comes from a page of another origin")

"""Middleware for WSGI: Flask, Django, Bottle."""

from __future__ import annotations

from typing import Any, Callable, Iterable, Mapping, Optional

from .check import check, options_of
from .client import Client
from .errors import DoorwardError
from .identity import Identity
from .incoming import is_identity
from .refusal import refusal


def answer(error: DoorwardError, environ: Mapping[str, Any], start_response: Callable) -> Iterable[bytes]:
    """Answers a refused request with a problem."""
    status, title, headers, body = refusal(error)
    start_response(f"{status} {title}", headers)
    return [] if environ["REQUEST_METHOD"] == "HEAD" else [body]


class Protect:
    """Lets a request pass if its caller may do the action, and puts the caller into
    environ["doorward"]. action is a name, or None for everybody who is signed in, or a function
    of environ that returns one of these, or False for what is open to all. on_refused answers
    refused requests in place of a problem; the other options are those of check. With
    resource="deferred" policies that depend on the resource are left to the handler, which calls
    identify with it."""

    def __init__(self, app: Callable, client: Client, action: Any = None, *, via: str = "check",
                 max_age: Optional[int] = None, aal: Optional[int] = None, resource: Optional[str] = None,
                 touch: bool = True, on_refused: Callable = answer):
        self._app, self._client, self._action, self._on_refused = app, client, action, on_refused
        self._options = options_of(client, via, max_age, aal, resource, touch)

    def __call__(self, environ: dict, start_response: Callable) -> Any:
        action = self._action(environ) if callable(self._action) else self._action
        # A client may have sent these; WSGI makes one name of "-" and "_".
        passed = {name: value for name, value in environ.items() if not (name.startswith("HTTP_") and is_identity(name[5:]))}
        passed.pop("doorward", None)
        if action is False:
            return self._app(passed, start_response)
        try:
            passed["doorward"] = identify(self._client, environ, action, **self._options)
        except DoorwardError as error:
            return self._on_refused(error, passed, start_response)
        return self._app(passed, start_response)


def identify(client: Client, environ: Mapping[str, Any], action: Optional[str] = None, **options: Any) -> Identity:
    """Returns who sent a WSGI request. Options and errors are those of check."""
    headers = {name[5:].lower().replace("_", "-"): value for name, value in environ.items() if name.startswith("HTTP_")}
    return check(client, environ["REQUEST_METHOD"], headers, action, **{"ip": environ.get("REMOTE_ADDR"), **options})

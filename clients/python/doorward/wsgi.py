"""Middleware for WSGI: Flask, Django, Bottle."""

from __future__ import annotations

from typing import Any, Callable, Mapping, Optional

from .check import check, is_identity, refusal
from .client import Client
from .errors import DoorwardError


class Protect:
    """Lets a request pass whose caller may do the action, and puts the caller into
    environ["doorward"]. action is a name, None for everybody who is signed in, or a function
    of environ that returns either, or False for what is open to all."""

    def __init__(self, app: Callable, client: Client, action: Any = None, *, via: str = "check"):
        self._app, self._client, self._action, self._via = app, client, action, via

    def __call__(self, environ: dict, start_response: Callable) -> Any:
        action = self._action(environ) if callable(self._action) else self._action
        # A client may have sent these; WSGI makes one name of "-" and "_".
        passed = {name: value for name, value in environ.items() if not (name.startswith("HTTP_") and is_identity(name[5:]))}
        passed.pop("doorward", None)
        if action is False:
            return self._app(passed, start_response)
        try:
            passed["doorward"] = identify(self._client, environ, action, via=self._via)
        except DoorwardError as error:
            status, title, headers, body = refusal(error)
            start_response(f"{status} {title}", headers)
            return [] if environ["REQUEST_METHOD"] == "HEAD" else [body]
        return self._app(passed, start_response)


def identify(client: Client, environ: Mapping[str, Any], action: Optional[str] = None, *, via: str = "check"):
    """Returns who sent a WSGI request, or raises a DoorwardError."""
    headers = {name[5:].lower().replace("_", "-"): value for name, value in environ.items() if name.startswith("HTTP_")}
    return check(client, environ["REQUEST_METHOD"], headers, action, via=via, ip=environ.get("REMOTE_ADDR"))

"""Checks who is calling a service and whether they may do the action, for the WSGI and the ASGI
middleware."""

from __future__ import annotations

import logging
import random
import re
import time
from typing import Any, Callable, Dict, Mapping, NamedTuple, Optional

from .client import Client
from .errors import DoorwardError, Forbidden, Invalid, RateLimited, Unauthenticated, Unavailable
from .incoming import address_of, bearer_of, forwarded, is_cross_origin, sessions_of

_TIMEOUT = 3.0  # seconds; Doorward answers a check within 2
_TRIES = 3
_log = logging.getLogger("doorward")


def options_of(via: str, max_age: Optional[int], aal: Optional[int]) -> Dict[str, Any]:
    """Returns the options of check that a middleware has been given. Raises ValueError for an
    unknown via, and for a proof with introspection, which can't demand one."""
    if via not in ("check", "introspection"):
        raise ValueError('via must be "check" or "introspection"')
    if via == "introspection" and (max_age is not None or aal is not None):
        raise ValueError('max_age and aal need via="check": introspection demands no proof')
    return {"via": via, "max_age": max_age, "aal": aal}


class Identity(NamedTuple):
    """Who is calling. For a server with an API key only tenant_id, role and key_id are set, for
    a person all but key_id; the others are empty."""

    user_id: str
    tenant_id: str  # the tenant whose data the caller may see, and no other
    role: str
    email: str
    session_id: str  # for logs; no credential
    key_id: str
    aal: int  # 2 after a second factor or a passkey, else 1; 0 for a server


def check(client: Client, method: str, headers: Mapping[str, str], action: Optional[str] = None, *, via: str = "check",
          ip: Optional[str] = None, max_age: Optional[int] = None, aal: Optional[int] = None) -> Identity:
    """Returns who sent the request, or raises Unauthenticated, Forbidden, RateLimited or
    Unavailable. The names in headers are in lower case; ip is the address of the peer, or for an
    introspection the caller's. With via="introspection" the client needs a service key.
    max_age, in seconds, and aal say what proof a person must have given; they work with
    via="check" only."""
    options_of(via, max_age, aal)
    try:
        if via == "introspection":
            return _introspect_caller(client, method, headers, action, ip)
        return _check_caller(client, forwarded(method, headers, client.cookie_name, ip), {"action": action or None, "maxAge": max_age, "aal": aal})
    except DoorwardError as error:
        decided = _to_decision(error, action)
        if isinstance(decided, Unavailable) or decided.code == "unknown_action":
            _log.error("access check of %s failed: %s (cause: %s)", action, decided, decided.__cause__)
        raise decided from decided.__cause__


def _to_decision(error: DoorwardError, action: Optional[str]) -> DoorwardError:
    """Returns the error for the caller. What says nothing about the caller, such as a 404 of
    another program, becomes Unavailable."""
    if isinstance(error, (Unauthenticated, Forbidden, RateLimited, Unavailable)):
        return error
    decided: DoorwardError
    if isinstance(error, Invalid) and any(e.get("pointer") == "/action" for e in error.errors):
        decided = _refused(Forbidden, 403, "unknown_action", f"There is no action {action}.")
    else:
        decided = Unavailable(f"Doorward doesn't judge the request: {error.status} {error.code}.", request_id=error.request_id)
    decided.__cause__ = error
    return decided


def _check_caller(client: Client, sent: Mapping[str, str], query: Mapping[str, Any]) -> Identity:
    answer = _with_retries(lambda timeout: client.as_(None).send("GET", "/api/v2/access/check", query=query, headers=sent, timeout=timeout))
    identity = _identity(answer.headers)
    if identity is None:
        raise Unavailable("The answer to the check names nobody.")
    return identity


def _identity(headers: Mapping[str, str]) -> Optional[Identity]:
    user, tenant, role, email, session, key, aal = (
        headers.get(f"X-Auth-{name}") or "" for name in ("User", "Tenant", "Role", "Email", "Session", "Key", "AAL"))
    is_person = user and email and session and not key
    is_server = key and not (user or email or session)
    if not (tenant and role and (is_person or is_server)):
        return None
    return Identity(user, tenant, role, email, session, key, int(aal) if aal in ("1", "2") else 0)


def _introspect_caller(client: Client, method: str, headers: Mapping[str, str], action: Optional[str], ip: Optional[str]) -> Identity:
    """Asks with a key of this service. The credential and the origin of the request are checked
    here, since Doorward doesn't see the request."""
    credential = _credential(client, method, headers)
    answer = _with_retries(lambda timeout: client.introspect(credential, action, address_of(ip), timeout=timeout))
    if not answer.get("active"):
        raise _refused(Unauthenticated, 401, "unauthenticated", "The credential isn't valid.")
    if action and answer.get("allowed") is not True:
        raise _refused(Forbidden, 403, "forbidden", f"{action} is not allowed.")
    key, user, session = answer.get("apiKey"), answer.get("user"), answer.get("session")
    if key:
        return Identity("", key["tenantId"], key["effectiveRole"], "", "", key["id"], 0)
    if not user or not session:
        raise Unavailable("The answer to the introspection is incomplete.")
    return Identity(user["id"], user["tenantId"], user["role"], user["email"], session["id"], "", session.get("aal", 1))


def _credential(client: Client, method: str, headers: Mapping[str, str]) -> str:
    """Returns the only credential of a request."""
    sessions, bearer = sessions_of(headers, client.cookie_name), bearer_of(headers)
    credentials = sessions if bearer is None else [*sessions, bearer]
    if len(credentials) != 1 or not re.fullmatch(r"[!-~]{1,512}", credentials[0]):
        raise _refused(Unauthenticated, 401, "unauthenticated", "The request has no credential, or several.")
    if sessions and is_cross_origin(method, headers, client.public_url):
        raise _refused(Forbidden, 403, "cross_origin", "A page of another origin sent this request.")
    return credentials[0]


def _refused(kind: Callable[..., DoorwardError], status: int, code: str, detail: str) -> DoorwardError:
    return kind({"status": status, "code": code, "detail": detail})


def _with_retries(call: Callable[[float], Any]) -> Any:
    """Makes a call, and repeats it up to twice while it is Unavailable and there is time."""
    end = time.monotonic() + _TIMEOUT
    for attempt in range(1, _TRIES + 1):
        try:
            return call(max(0.001, end - time.monotonic()))
        except Unavailable as error:
            wait = (0.05 * 2 ** attempt if error.retry_after is None else error.retry_after) * random.uniform(1, 1.5)
            if attempt == _TRIES or time.monotonic() + wait >= end:
                raise
            time.sleep(wait)

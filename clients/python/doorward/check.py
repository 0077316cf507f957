"""Checks who is calling a service and whether they may do the action, for the WSGI and the ASGI
middleware."""

from __future__ import annotations

import collections.abc
import logging
import random
import re
import time
from typing import Any, Callable, Dict, Mapping, Optional, Union

from .client import Client
from .errors import DoorwardError, Forbidden, Invalid, RateLimited, StepUpRequired, Unauthenticated, Unavailable
from .identity import Identity
from .incoming import address_of, bearer_of, forwarded, is_cross_origin, sessions_of

_TIMEOUT = 3.0  # seconds; Doorward answers a check within 2
_TRIES = 3
_log = logging.getLogger("doorward")


def options_of(client: Client, via: str, max_age: Optional[int], aal: Optional[int], resource: Optional[str], touch: bool) -> Dict[str, Any]:
    """Returns the options of check that a middleware has been given. Raises ValueError for an
    unknown via, for introspection without a key, for a proof with introspection, which can't demand
    one, or touch with it, which uses the session, and for a resource: the middleware doesn't know it."""
    if via not in ("check", "introspection"):
        raise ValueError('via must be "check" or "introspection"')
    if via == "introspection":
        client.as_service()
    if via == "introspection" and (max_age is not None or aal is not None):
        raise ValueError('max_age and aal need via="check": introspection demands no proof')
    if via == "introspection" and not touch:
        raise ValueError("an introspection is a use of the session: leave touch out")
    if resource not in (None, "deferred"):
        raise ValueError('the resource can only be "deferred" here: call identify with it in the handler')
    return {"via": via, "max_age": max_age, "aal": aal, "resource": resource, "touch": touch}


def check(client: Client, method: str, headers: Mapping[str, str], action: Optional[str] = None, *, via: str = "check",
          ip: Optional[str] = None, max_age: Optional[int] = None, aal: Optional[int] = None,
          resource: Union[None, str, Mapping[str, Any]] = None, touch: bool = True) -> Identity:
    """Returns who sent the request, or raises Unauthenticated, Forbidden, RateLimited or
    Unavailable. The names in headers are in lower case; ip is the address of the peer, or for an
    introspection or with a resource the caller's. max_age, in seconds, and aal say what proof a
    person must have given; they work with via="check" only. resource is what the action acts on,
    {"type", "id", "properties"}, or "deferred" where the handler asks again with it. Introspection
    and a resource need a client with a service key. With touch=False the check is no use of the
    session, which goes on idling; it works with via="check" and without a resource only."""
    is_known = isinstance(resource, collections.abc.Mapping)
    options_of(client, via, max_age, aal, None if is_known else resource, touch)
    if is_known and not touch:
        raise ValueError("a check with a resource is a use of the session: leave touch out")
    if is_known and not action:
        raise ValueError("a resource needs an action")
    deferred = "deferred" if resource else None
    try:
        if via == "introspection":
            identity = _introspect_caller(client, method, headers, action, ip, deferred)
        else:
            query = {"action": action or None, "maxAge": max_age, "aal": aal, "resource": deferred, "touch": None if touch else False}
            identity = _check_caller(client, forwarded(method, headers, client.cookie_name, ip), query)
        if is_known:
            _decide(client, identity if identity.key_id else _credential(client, headers), action, resource, ip)
        return identity
    except DoorwardError as error:
        decided = _to_decision(error, action)
        if isinstance(decided, Unavailable) or decided.code == "unknown_action":
            _log.error("access check of %s at %s failed: %s (cause: %s)", action, client.base_url, decided, decided.__cause__)
        raise decided from decided.__cause__


def _decide(client: Client, subject: Union[Identity, str], action: str, resource: Mapping[str, Any], ip: Optional[str]) -> None:
    """Asks with the resource, and raises what a check would."""
    decision = _with_retries(lambda timeout: client.can(subject, action, resource, ip=address_of(ip), timeout=timeout))
    if decision.allowed:
        return
    problem = {"status": 403, "detail": decision.reason}
    if decision.step_up:
        raise StepUpRequired({**problem, "code": "step_up_required", **decision.step_up})
    if decision.policy_id:
        raise Forbidden({**problem, "code": "denied_by_policy", "policyId": decision.policy_id})
    raise Forbidden({**problem, "code": "forbidden"})


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


def _introspect_caller(client: Client, method: str, headers: Mapping[str, str], action: Optional[str], ip: Optional[str],
                       resource: Optional[str]) -> Identity:
    """Asks with a key of this service. The credential and the origin of the request are checked
    here, since Doorward doesn't see the request."""
    credential = _credential(client, headers)
    if credential != bearer_of(headers) and is_cross_origin(method, headers, client.public_url):
        raise _refused(Forbidden, 403, "cross_origin", "A page of another origin sent this request.")
    answer = _with_retries(lambda timeout: client.introspect(credential, action, address_of(ip), resource=resource, timeout=timeout))
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


def _credential(client: Client, headers: Mapping[str, str]) -> str:
    """Returns the only credential of a request."""
    sessions, bearer = sessions_of(headers, client.cookie_name), bearer_of(headers)
    credentials = sessions if bearer is None else [*sessions, bearer]
    if len(credentials) != 1 or not re.fullmatch(r"[!-~]{1,512}", credentials[0]):
        raise _refused(Unauthenticated, 401, "unauthenticated", "The request has no credential, or several.")
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

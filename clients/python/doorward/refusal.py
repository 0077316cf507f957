"""The answer to a refused request."""

from __future__ import annotations

import json
import math
import re
from typing import Any, Dict, List, Optional, Tuple

from .errors import DoorwardError

_TITLES = {401: "Unauthorized", 403: "Forbidden", 429: "Too Many Requests", 503: "Service Unavailable"}


def refusal(error: DoorwardError) -> Tuple[int, str, List[Tuple[str, str]], bytes]:
    """Returns status, its title, headers and body for a request that check has refused. A
    fault is 503 and not 401, so that people stay signed in while Doorward restarts."""
    status = error.status if error.status in _TITLES else 503
    body = json.dumps(_problem(status, error)).encode()
    headers = [
        ("Content-Type", "application/problem+json"), ("Cache-Control", "no-store"),
        ("X-Content-Type-Options", "nosniff"), ("Content-Length", str(len(body))),
    ]
    challenge = _challenge(status, error)
    if challenge:
        headers.append(("WWW-Authenticate", challenge))
    if status in (429, 503):
        headers.append(("Retry-After", str(max(1, math.ceil(error.retry_after or 1)))))
    return status, _TITLES[status], headers, body


def _challenge(status: int, error: DoorwardError) -> Optional[str]:
    if status == 401:
        return 'Bearer realm="doorward"'
    acr, max_age = error.problem.get("acr"), error.problem.get("maxAge")
    if error.code != "step_up_required" or not isinstance(acr, str) or not re.fullmatch(r"\w+", acr, re.ASCII):
        return None
    age = f', max_age="{max_age}"' if isinstance(max_age, int) else ""  # RFC 9470
    return f'Bearer realm="doorward", error="insufficient_user_authentication", acr_values="{acr}"{age}'


def _problem(status: int, error: DoorwardError) -> Dict[str, Any]:
    common = {"type": "about:blank", "title": _TITLES[status], "status": status}
    if status == 503:
        return {**common, "code": "unavailable", "detail": "Doorward can't say now who is calling. Try again.", "requestId": error.request_id}
    members = {name: value for name, value in error.problem.items() if name != "instance"}  # the path of the check
    return {**common, **members, "status": status}

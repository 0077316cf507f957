"""What a call raises.

Only an answer that is Doorward's own problem (RFC 9457) counts as a decision: a 401 from
another program at its address says nothing about the credential.
"""

from __future__ import annotations

import math
import re
import time
from email.utils import parsedate_to_datetime
from typing import Any, Mapping, Optional


class DoorwardError(Exception):
    """A problem. code is stable; new ones may be added, so treat one that you don't know by
    its class."""

    def __init__(self, problem: Mapping[str, Any], retry_after: Optional[float] = None):
        self.errors: list = problem.get("errors") or []
        # With what is wrong in each member, so that a log says it.
        wrong = [f"{one.get('pointer') or one.get('parameter')}: {one.get('message')}" for one in self.errors]
        super().__init__("\n".join([problem.get("detail") or problem.get("title") or problem["code"], *wrong]))
        self.problem = dict(problem)
        self.status: int = problem["status"]
        self.code: str = problem["code"]
        self.request_id: Optional[str] = problem.get("requestId")
        self.retry_after = retry_after  # seconds


class Malformed(DoorwardError):
    """400, 405, 413, 415, 428: a defect of the program that calls."""


class Unauthenticated(DoorwardError):
    """401: there is no valid credential."""


class Forbidden(DoorwardError):
    """403: the caller is known, and may not do it."""


class StepUpRequired(Forbidden):
    """403 step_up_required: the person must prove their identity again."""


class SecondFactorRequired(Forbidden):
    """403 mfa_required, mfa_enrolment_required: problem has the challenge."""


class NotFound(DoorwardError):
    """404: absent, or in another tenant."""


class Conflict(DoorwardError):
    """409, 412: the state doesn't allow it."""


class Gone(DoorwardError):
    """410: it was valid once."""


class Invalid(DoorwardError):
    """422: errors says which members."""


class RateLimited(DoorwardError):
    """429: retry_after says after how many seconds to try again."""


class Unavailable(DoorwardError):
    """Doorward is down, slow or can't answer now, or something else answers at its address. It
    says nothing about the credential, so its status is always 503."""

    def __init__(self, detail: str, code: str = "unavailable", retry_after: Optional[float] = None, request_id: Optional[str] = None):
        super().__init__({"status": 503, "code": code, "detail": detail, "requestId": request_id}, retry_after)


_classes_by_status = {
    400: Malformed, 405: Malformed, 413: Malformed, 415: Malformed, 428: Malformed, 401: Unauthenticated,
    403: Forbidden, 404: NotFound, 409: Conflict, 412: Conflict, 410: Gone, 422: Invalid, 429: RateLimited,
}
_classes_by_code = {
    "step_up_required": StepUpRequired, "mfa_required": SecondFactorRequired, "mfa_enrolment_required": SecondFactorRequired,
}


def error_of(status: int, headers: Mapping[str, str], body: Any) -> DoorwardError:
    """Returns the error for an answer that is no success."""
    retry_after = _seconds(headers.get("Retry-After") or "")
    is_problem = (headers.get("Content-Type") or "").startswith("application/problem+json") and isinstance(body, dict)
    if not is_problem or not isinstance(body.get("code"), str) or body.get("status") != status:
        return Unavailable(f"Something that isn't Doorward answers with {status}.", retry_after=retry_after)
    kind = _classes_by_code.get(body["code"]) or _classes_by_status.get(status)
    if kind is None:
        return Unavailable(body.get("detail") or "", body["code"], retry_after, body.get("requestId"))
    return kind(body, retry_after)


def _seconds(text: str) -> Optional[float]:
    """Reads Retry-After, as seconds or as a date (RFC 9110, section 10.2.3)."""
    if re.fullmatch(r"[0-9]{1,9}", text):
        return float(text)
    try:
        at = parsedate_to_datetime(text)
    except (TypeError, ValueError):
        return None
    return float(max(0, math.ceil(at.timestamp() - time.time()))) if text.endswith(" GMT") else None

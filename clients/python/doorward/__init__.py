"""The client of Doorward's API, with the standard library alone. See README.md."""

from .client import Client, Decision
from .errors import (
    Conflict,
    DoorwardError,
    Forbidden,
    Gone,
    Invalid,
    Malformed,
    NotFound,
    RateLimited,
    SecondFactorRequired,
    StepUpRequired,
    Unauthenticated,
    Unavailable,
)
from .identity import Identity

__all__ = [
    "Client", "Conflict", "Decision", "DoorwardError", "Forbidden", "Gone", "Identity", "Invalid", "Malformed", "NotFound",
    "RateLimited", "SecondFactorRequired", "StepUpRequired", "Unauthenticated", "Unavailable",
]

"""The client of Doorward's API, with the standard library alone. See README.md."""

from .check import Identity
from .client import Client
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

__all__ = [
    "Client", "Conflict", "DoorwardError", "Forbidden", "Gone", "Identity", "Invalid", "Malformed", "NotFound",
    "RateLimited", "SecondFactorRequired", "StepUpRequired", "Unauthenticated", "Unavailable",
]

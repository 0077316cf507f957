"""The server of these tests: the kit for tests, with the program of this checkout."""

import os
import pathlib

from doorward.testing import PASSWORD, start_doorward

__all__ = ["AUDIENCE", "PASSWORD", "start"]

os.environ.setdefault("DOORWARD_BIN", str(pathlib.Path(__file__).resolve().parents[3] / "bin" / "doorward"))
AUDIENCE = "https://reports.example"


def start():
    return start_doorward("--assertion-audience", AUDIENCE)

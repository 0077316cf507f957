"""Starts a real Doorward for a test: "doorward dev" in a folder of its own, with the tenant Acme
and one person for each role. The program is DOORWARD_BIN, or doorward on the PATH."""

from __future__ import annotations

import atexit
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
from typing import Any, Optional

from .client import Client

PASSWORD = "open sesame 9042"  # of all four people


def start_doorward(*flags: str, model: Optional[str] = None) -> "Server":
    """Starts a server on a free port, and returns it when it answers. flags are those of
    "doorward dev", model is the text of a model of the platform's own actions. It downloads
    nothing. Raises FileNotFoundError if the program is missing, and RuntimeError if it ends."""
    return Server(flags, model)


class Server:
    """A running Doorward. As a context manager it stops at the end."""

    def __init__(self, flags: Any, model: Optional[str]):
        self._program = os.environ.get("DOORWARD_BIN") or "doorward"
        self.folder = tempfile.mkdtemp(prefix="doorward-")
        # Settings in the environment of the test are not meant for this server.
        self._environment = {name: value for name, value in os.environ.items() if not name.startswith("DOORWARD_")}
        arguments = ["dev", "--listen", "localhost:0", "--password-memory-kib", "1024", "--password-time", "1", "--log-level", "error"]
        if model is not None:
            (pathlib.Path(self.folder) / "model.yaml").write_text(model, encoding="utf-8")
            arguments += ["--model", "model.yaml"]
        try:
            self._process = subprocess.Popen([self._program, *arguments, *flags], cwd=self.folder, env=self._environment, stdout=subprocess.PIPE, text=True)
        except OSError as error:
            shutil.rmtree(self.folder)
            raise FileNotFoundError(f"{self._program} can't be started: set DOORWARD_BIN to the program, or put doorward on the PATH") from error
        atexit.register(self.stop)  # also of a test that has failed
        self.url = self._address()
        self.client = Client(self.url)  # without a credential

    def _address(self) -> str:
        """Returns the address that the server prints."""
        assert self._process.stdout
        for line in self._process.stdout:
            found = re.search(r"is ready at (\S+)", line)
            if found:
                return found[1]
        code = self._process.wait()
        self.stop()
        raise RuntimeError(f"{self._program} dev ended with {code}")

    def sign_in(self, role: str) -> Client:
        """Returns a client with a new session of "owner", "admin", "user" or "viewer"."""
        return self.client.as_(self.client.login(f"{role}@acme.example", PASSWORD)["token"])

    def operate(self, *arguments: str) -> str:
        """Runs a command on the server's database, and returns what it prints."""
        done = subprocess.run([self._program, *arguments, "--database", "sqlite:doorward-dev/doorward.db", "--base-url", self.url],
                              cwd=self.folder, env=self._environment, check=True, stdout=subprocess.PIPE, text=True)
        return done.stdout

    def create_service_key(self, *may: str) -> str:
        """Returns a new service key that may do these things, such as "access.introspect"."""
        name = f"test {','.join(may)}"[:50]
        return self.operate("key", "create-service", "--name", name, "--may", ",".join(may)).strip().split("\n")[-1]

    def stop(self) -> None:
        """Ends the server, and removes its data. A second call does nothing."""
        atexit.unregister(self.stop)
        if not os.path.isdir(self.folder):
            return
        self._process.kill()
        self._process.wait()
        if self._process.stdout:
            self._process.stdout.close()
        shutil.rmtree(self.folder)
        if hasattr(self, "client"):
            self.client.close()

    def __enter__(self) -> "Server":
        return self

    def __exit__(self, *_: Any) -> None:
        self.stop()

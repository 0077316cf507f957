"""Starts a real Doorward for a test: "doorward dev" in a folder of its own, with one person
for each role."""

import os
import pathlib
import re
import shutil
import subprocess
import tempfile

PROGRAM = os.environ.get("DOORWARD") or str(pathlib.Path(__file__).resolve().parents[3] / "bin" / "doorward")
PASSWORD = "open sesame 9042"
AUDIENCE = "https://reports.example"


class Server:
    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="doorward-python-")
        cheap = ["--password-memory-kib", "1024", "--password-time", "1", "--log-level", "error"]
        self.process = subprocess.Popen(
            [PROGRAM, "dev", "--listen", "localhost:0", "--assertion-audience", AUDIENCE, *cheap],
            cwd=self.folder, stdout=subprocess.PIPE, text=True)
        for line in self.process.stdout:
            found = re.search(r"is ready at (\S+)", line)
            if found:
                self.url = found[1]
                return
        raise RuntimeError("doorward dev ended")

    def operate(self, *args):
        """Runs a command on the server's database, and returns what it prints."""
        done = subprocess.run([PROGRAM, *args, "--database", "sqlite:doorward-dev/doorward.db", "--base-url", self.url],
                              cwd=self.folder, check=True, capture_output=True, text=True)
        return done.stdout

    def stop(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()
        shutil.rmtree(self.folder)

"""The example application of Flask, with a real Doorward."""

import importlib.util
import os
import pathlib
import unittest

import doorward
from tests.server import PASSWORD
from tests.test_client import WithServer

EXAMPLE = pathlib.Path(__file__).resolve().parents[3] / "examples" / "flask" / "app.py"


@unittest.skipUnless(importlib.util.find_spec("flask"), "needs Flask: apt-get install python3-flask")
class FlaskTest(WithServer):
    def test_the_example(self):
        os.environ["DOORWARD"] = self.server.url
        spec = importlib.util.spec_from_file_location("example", EXAMPLE)
        example = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(example)
        self.addCleanup(example.client.close)
        web = example.app.test_client(use_cookies=False)

        def ask(method, role=None, data=None):
            headers = {"Cookie": f"JSESSIONID={tokens[role]}"} if role else {}
            return web.open("/reports", method=method, headers=headers, data=data)

        tokens = {role: self.client.login(f"{role}@acme.example", PASSWORD)["token"] for role in ("admin", "viewer")}
        self.assertEqual(web.get("/").status_code, 200)
        self.assertEqual(ask("GET").status_code, 401)
        self.assertEqual(ask("POST", "viewer", "sales").status_code, 403)
        self.assertEqual(ask("POST", "admin", "sales").status_code, 201)
        answer = ask("GET", "viewer").get_json()
        self.assertEqual((answer["for"], answer["reports"]), ("viewer@acme.example", ["sales"]))
        example.app.wsgi_app._client = doorward.Client("http://127.0.0.1:1")
        with self.assertLogs("doorward"):
            self.assertEqual(ask("GET", "viewer").status_code, 503)

"""Webhooks of a real server, and those of others."""

import base64
import hashlib
import hmac
import http.server
import threading

from doorward import webhook
from tests.test_client import WithServer


class WebhookTest(WithServer):
    def test_a_message_of_a_real_server(self):
        messages, secrets = [], []

        class Endpoint(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                messages.append(webhook.verify(secrets, self.headers, body))
                self.send_response(204)
                self.end_headers()

            def log_message(self, *_):
                pass

        endpoint = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Endpoint)
        threading.Thread(target=endpoint.serve_forever, args=(0.01,), daemon=True).start()
        self.addCleanup(endpoint.server_close)
        self.addCleanup(endpoint.shutdown)
        owner = self.signed_in("owner")
        made = owner.post("/api/v2/webhooks", {"url": f"http://localhost:{endpoint.server_port}/", "events": ["user.*"]})
        secrets.append(made["secret"])
        test = f"/api/v2/webhooks/{made['webhook']['id']}/test"
        self.assertEqual(owner.post(test)["status"], 204)
        secrets.append(owner.post(f"/api/v2/webhooks/{made['webhook']['id']}/rotate-secret", {"graceHours": 1})["secret"])
        del secrets[0]
        self.assertEqual(owner.post(test)["status"], 204)
        self.assertEqual([m.type for m in messages], ["webhook.test"] * 2)
        self.assertTrue(messages[0].data["id"])

    def test_others_are_refused(self):
        key, body, at = b"a secret of 24 characters", b'{"type":"user.role","timestamp":"2031-03-10T09:31:12Z","data":{"id":"evt_1"}}', 1930901472
        secret = "whsec_" + base64.b64encode(key).decode()
        signature = "v1," + base64.b64encode(hmac.new(key, f"evt_1.{at}.".encode() + body, hashlib.sha256).digest()).decode()

        def verify(seconds=0, secret=secret, **changed):
            headers = {"webhook-id": "evt_1", "webhook-timestamp": str(at), "webhook-signature": signature, **{f"webhook-{n}": v for n, v in changed.items()}}
            return webhook.verify(secret, headers, body, now=lambda: at + seconds)

        self.assertEqual(verify(300), ("evt_1", "user.role", "2031-03-10T09:31:12Z", {"id": "evt_1"}))
        verify(-300, signature=f"v1,AAAA v1a,x {signature}")
        for seconds, changed in ((301, {}), (-301, {}), (0, {"id": "evt_2"}), (0, {"id": None}), (0, {"timestamp": f"{at}x"}), (0, {"timestamp": ""}),
                                 (0, {"signature": ""}), (0, {"signature": "v1,"}), (0, {"signature": signature.replace("v1,", "v1a,")}), (0, {"signature": "v1,\xe9"})):
            with self.subTest(seconds=seconds, **changed), self.assertRaises(webhook.InvalidWebhook):
                verify(seconds, **changed)
        for other in ("", "secret", "whsec_", "whpk_AAAA", [secret, "x"]):
            with self.assertRaises(ValueError):
                verify(secret=other)

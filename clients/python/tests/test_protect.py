"""The middleware, before a real Doorward and without one."""

import asyncio
import json
import wsgiref.util

import doorward
from doorward import asgi, wsgi
from tests.server import PASSWORD
from tests.test_client import WithServer, other_program


def identity_with_claim(identity, claimed):
    return json.dumps({**identity._asdict(), "claimed": claimed}).encode()


def wsgi_call(client, method, headers, action, via, **options):
    def app(environ, start_response):
        start_response("200 OK", [])
        return [identity_with_claim(environ["doorward"], environ.get("HTTP_X_AUTH_USER"))]

    environ = {"REQUEST_METHOD": method, **{"HTTP_" + n.upper().replace("-", "_"): v for n, v in headers.items()}}
    wsgiref.util.setup_testing_defaults(environ)
    answer = {}

    def start_response(status, sent):
        answer.update(status=int(status[:3]), headers=dict(sent))

    body = b"".join(wsgi.Protect(app, client, action, via=via, **options)(environ, start_response))
    return answer["status"], json.loads(body), answer["headers"]


def asgi_call(client, method, headers, action, via, **options):
    async def app(scope, receive, send):
        claimed = dict(scope["headers"]).get(b"x-auth-user")
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": identity_with_claim(scope["doorward"], claimed)})

    sent = []

    async def send(message):
        sent.append(message)

    scope = {"type": "http", "method": method, "headers": [(n.lower().encode(), v.encode()) for n, v in headers.items()], "client": ("127.0.0.1", 1)}
    asyncio.run(asgi.Protect(app, client, action, via=via, **options)(scope, None, send))
    names = {n.decode().title(): v.decode() for n, v in sent[0]["headers"]}
    return sent[0]["status"], json.loads(sent[1]["body"]), {**names, "WWW-Authenticate": names.get("Www-Authenticate")}


class ProtectTest(WithServer):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.client = doorward.Client(cls.server.url, key=cls.server.create_service_key("access.introspect"))
        cls.addClassCleanup(cls.client.close)
        cls.tokens = {role: cls.client.login(f"{role}@acme.example", PASSWORD)["token"] for role in ("owner", "viewer")}

    def each(self):
        for call in (wsgi_call, asgi_call):
            for via in ("check", "introspection"):
                with self.subTest(call=call.__name__, via=via):
                    yield lambda headers, action=None, method="GET", call=call, via=via: call(self.client, method, headers, action, via)

    def cookie(self, role):
        return {"Cookie": f"JSESSIONID={self.tokens[role]}"}

    def test_who_is_let_in(self):
        for call in self.each():
            status, body, _ = call({**self.cookie("owner"), "X-Auth-User": "usr_forged"}, "message.send", "POST")
            self.assertEqual((status, body["email"], body["role"], body["aal"], body["claimed"]), (200, "owner@acme.example", "OWNER", 1, None))
            self.assertEqual(call({"Authorization": f"Bearer {self.tokens['viewer']}"})[1]["role"], "VIEWER")
            self.assertEqual(call({"Cookie": f"JSESSIONID=tomcat; JSESSIONID={self.tokens['viewer']}; a=b"})[1]["role"], "VIEWER")

    def test_who_is_refused(self):
        for call in self.each():
            status, body, _ = call(self.cookie("viewer"), "message.send", "POST")
            self.assertEqual((status, body["code"], "instance" in body), (403, "forbidden", False))
            with self.assertLogs("doorward"):
                status, body, _ = call(self.cookie("owner"), "mesage.send")
            self.assertEqual((status, body["code"]), (403, "unknown_action"))
            for headers in ({}, {"Cookie": "JSESSIONID=short"}, {"Authorization": "Basic YTpi"}, {"Cookie": "JSESSIONID=" + "A" * 43},
                            {"Authorization": "Bearer"}, {"Authorization": "Bearer a b"}, {"Authorization": "Bearer " + "a" * 5000},
                            {**self.cookie("owner"), "Authorization": "Bearer"},
                            {**self.cookie("owner"), "Authorization": f"Bearer {self.tokens['owner']}"}):
                status, body, sent = call(headers)
                self.assertEqual((status, body["code"], sent["WWW-Authenticate"]), (401, "unauthenticated", 'Bearer realm="doorward"'), headers)
            for headers, method in (({"Sec-Fetch-Site": "cross-site"}, "POST"), ({"Origin": "https://evil.example"}, "POST"),
                                    ({"Origin": "https://evil.example", "Sec-WebSocket-Key": "x"}, "GET")):
                status, body, _ = call({**self.cookie("owner"), **headers}, method=method)
                self.assertEqual((status, body["code"]), (403, "cross_origin"), headers)

    def test_faults_are_503_and_never_401(self):
        own = doorward.Client(self.server.url, key="dws_" + "a" * 49)
        self.addCleanup(own.close)
        for call in (wsgi_call, asgi_call):
            for client, ways in ((doorward.Client("http://127.0.0.1:1", key="dws_x"), ("check", "introspection")),
                                 (doorward.Client(other_program(self), key="dws_x"), ("check", "introspection")), (own, ("introspection",))):
                for via in ways:
                    with self.subTest(call=call.__name__, client=client, via=via), self.assertLogs("doorward") as logged:
                        status, body, sent = call(client, "GET", self.cookie("owner"), None, via)
                        self.assertEqual((status, body["code"]), (503, "unavailable"))
                        self.assertTrue(sent["Retry-After"].isdigit())
                    self.assertNotIn(self.tokens["owner"], str(logged.output))

    def test_a_demanded_proof(self):
        for call in (wsgi_call, asgi_call):
            status, body, sent = call(self.client, "GET", self.cookie("owner"), None, "check", aal=2, max_age=60)
            self.assertEqual((status, body["code"]), (403, "step_up_required"))
            self.assertEqual(sent["WWW-Authenticate"], 'Bearer realm="doorward", error="insufficient_user_authentication", acr_values="aal2", max_age="60"')
            with self.assertRaises(ValueError):
                call(self.client, "GET", {}, None, "introspection", aal=2)

    def test_on_refused_replaces_the_answer(self):
        def redirect(error, environ, start_response):
            start_response("303 See Other", [("Location", f"/login?{error.code}")])
            return []

        async def send_redirect(error, scope, receive, send):
            await send({"type": "http.response.start", "status": 303, "headers": [(b"location", f"/login?{error.code}".encode())]})
            await send({"type": "http.response.body", "body": b"null"})

        self.assertEqual(asgi_call(self.client, "GET", {}, None, "check", on_refused=send_redirect)[0], 303)
        output = []
        environ = {"REQUEST_METHOD": "GET"}
        self.assertEqual(wsgi.Protect(None, self.client, on_refused=redirect)(environ, lambda *answer: output.append(answer)), [])
        self.assertEqual(output, [("303 See Other", [("Location", "/login?unauthenticated")])])

    def test_a_public_request_has_no_identity(self):
        seen = {}

        def app(environ, start_response):
            seen.update(environ)
            return []

        wsgi.Protect(app, self.client, lambda environ: False)({"REQUEST_METHOD": "GET", "HTTP_X_AUTH_USER": "usr_forged", "doorward": "forged"}, None)
        self.assertEqual(seen, {"REQUEST_METHOD": "GET"})

    def handshake(self, client, origin, **more):
        sent = []

        async def send(message):
            sent.append(message)

        async def receive():
            return {"type": "websocket.connect"}

        scope = {"type": "websocket", "headers": [(b"cookie", self.cookie("owner")["Cookie"].encode()), (b"origin", origin.encode())], **more}
        asyncio.run(asgi.Protect(None, client)(scope, receive, send))
        return sent

    def test_a_refused_websocket(self):
        foreign = "https://evil.example"
        self.assertEqual(self.handshake(self.client, foreign), [{"type": "websocket.close", "code": 1008}])
        start, body = self.handshake(self.client, foreign, extensions={"websocket.http.response": {}})
        self.assertEqual((start["type"], start["status"], json.loads(body["body"])["code"]), ("websocket.http.response.start", 403, "cross_origin"))

    # A server without the extension answers a close before the handshake with 403.
    def test_a_websocket_in_an_outage(self):
        unreachable = doorward.Client("http://127.0.0.1:1")
        with self.assertLogs("doorward"):
            self.assertEqual(self.handshake(unreachable, self.server.url), [{"type": "websocket.accept"}, {"type": "websocket.close", "code": 1013}])
            start, _ = self.handshake(unreachable, self.server.url, extensions={"websocket.http.response": {}})
        self.assertEqual(start["status"], 503)

"""A tenant's policy that reads the resource: guards leave it to the handler, which asks with the
resource."""

import asyncio
import datetime
import json
import unittest

import doorward
from doorward import asgi, check, wsgi
from doorward.testing import PASSWORD, start_doorward
from tests import server  # noqa: F401 for DOORWARD_BIN
from tests.test_hostile import IDENTITY, Stub
from tests.test_protect import asgi_call, wsgi_call

MODEL = """
actions:
  invoice.pay: {roles: [OWNER, ADMIN], resource: invoice}
resources:
  invoice: {amount: long}
"""
POLICY = """
@id("large") @reason("Large invoices are paid by the OWNER.") forbid(principal, action == Action::"invoice.pay", resource)
  when { resource.amount > 1000 } unless { principal in Role::"OWNER" };
@id("inside") forbid(principal, action == Action::"invoice.pay", resource) when { resource.amount < 10 && !context.ip.isInRange(ip("192.0.2.0/24")) };
"""


def invoice(amount):
    return {"type": "invoice", "id": "17", "properties": {"amount": amount}}


class ResourceTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        running = start_doorward(model=MODEL)
        cls.addClassCleanup(running.stop)
        cls.client = doorward.Client(running.url, key=running.create_service_key("access.introspect", "access.evaluate"))
        cls.addClassCleanup(cls.client.close)
        owner = running.sign_in("owner")
        owner.put("/api/v2/policy", {"text": POLICY}, headers={"If-Match": "*"})
        cls.api_key = owner.post("/api/v2/api-keys", {"name": "payments", "permissions": ["invoice.pay"], "role": "ADMIN"})["key"]
        cls.tokens = {role: cls.client.login(f"{role}@acme.example", PASSWORD)["token"] for role in ("owner", "admin", "viewer")}

    def test_a_guard_leaves_the_policy_to_the_handler(self):
        headers = {"Authorization": f"Bearer {self.tokens['admin']}"}
        for call in (wsgi_call, asgi_call):
            for via in ("check", "introspection"):
                with self.subTest(call.__name__, via=via):
                    self.assertEqual(call(self.client, "POST", headers, "invoice.pay", via)[0], 403)
                    status, body, _ = call(self.client, "POST", headers, "invoice.pay", via, resource="deferred")
                    self.assertEqual((status, body["role"]), (200, "ADMIN"))
                    with self.assertRaises(ValueError):
                        call(self.client, "POST", headers, "invoice.pay", via, resource=invoice(1))

    def test_a_check_asks_with_the_resource(self):
        for via in ("check", "introspection"):
            def pay(token, resource, ip=None):
                return check.check(self.client, "POST", {"authorization": f"Bearer {token}"}, "invoice.pay", via=via, resource=resource, ip=ip)

            self.assertEqual(pay(self.tokens["admin"], invoice(1000)).role, "ADMIN")
            with self.assertRaises(doorward.Forbidden) as caught:
                pay(self.tokens["admin"], invoice(1001))
            self.assertEqual((caught.exception.code, caught.exception.problem["policyId"], str(caught.exception)),
                             ("denied_by_policy", "large", "Large invoices are paid by the OWNER."))
            self.assertEqual(pay(self.tokens["owner"], invoice(1001)).role, "OWNER")
            self.assertTrue(pay(self.api_key, invoice(1000)).key_id)
            self.assertEqual(pay(self.tokens["admin"], invoice(9), "192.0.2.7").role, "ADMIN")
            for refused in ((self.api_key, invoice(1001)), (self.tokens["viewer"], invoice(1)), (self.tokens["admin"], invoice(9), "198.51.100.7"),
                            (self.tokens["admin"], invoice(9)), (self.tokens["admin"], None)):
                with self.assertRaises(doorward.Forbidden):
                    pay(*refused)
            with self.assertRaises(doorward.Unauthenticated):
                pay("A" * 43, invoice(1))
        for options in ({"resource": invoice(1)}, {"action": "invoice.pay", "resource": "none"}):
            with self.assertRaises(ValueError):
                check.check(self.client, "POST", {}, **options)

    def test_a_check_that_is_no_use_of_the_session_says_so(self):
        stub = Stub(self, lambda n: (200, IDENTITY, b""))
        for touch in ({}, {"touch": True}, {"touch": False}):
            check.check(stub.client, "GET", {"cookie": "JSESSIONID=" + "A" * 43}, "invoice.pay", **touch)
            for call in (wsgi_call, asgi_call):
                call(stub.client, "GET", {"Cookie": "JSESSIONID=" + "A" * 43}, "invoice.pay", "check", **touch)
        use = "/api/v2/access/check?action=invoice.pay"
        self.assertEqual(stub.paths, [use] * 6 + [use + "&touch=false"] * 3)
        for options in ({"via": "introspection"}, {"resource": invoice(1)}):
            with self.assertRaises(ValueError):
                check.check(stub.client, "GET", {}, "invoice.pay", touch=False, **options)
        with self.assertRaises(ValueError):
            wsgi.Protect(None, stub.client, via="introspection", touch=False)

    def test_a_page_of_an_allowed_origin_is_asked_about_a_resource(self):
        """Doorward has judged the origin of the request, and knows --allowed-origins."""
        with start_doorward("--allowed-origins", "http://localhost:5173", model=MODEL) as own:
            client = doorward.Client(own.url, key=own.create_service_key("access.evaluate", "access.introspect"))
            self.addCleanup(client.close)
            cookie = f"JSESSIONID={client.login('admin@acme.example', PASSWORD)['token']}"

            def pay(origin, via="check"):
                headers = {"cookie": cookie, "origin": origin, "sec-fetch-site": "same-site"}
                return check.check(client, "POST", headers, "invoice.pay", resource=invoice(1), via=via)

            self.assertEqual(pay("http://localhost:5173").role, "ADMIN")
            for refused in (("http://localhost:3000",), ("http://localhost:5173", "introspection")):  # of which Doorward sees no origin
                with self.assertRaises(doorward.Forbidden) as caught:
                    pay(*refused)
                self.assertEqual(caught.exception.code, "cross_origin")

    def test_identify_asks_with_the_resource(self):
        environ = {"REQUEST_METHOD": "POST", "HTTP_COOKIE": f"JSESSIONID={self.tokens['admin']}"}
        self.assertEqual(wsgi.identify(self.client, environ, "invoice.pay", resource=invoice(1000)).email, "admin@acme.example")
        scope = {"type": "http", "method": "POST", "headers": [(b"cookie", environ["HTTP_COOKIE"].encode())]}
        self.assertEqual(asyncio.run(asgi.identify(self.client, scope, "invoice.pay", resource=invoice(1000))).email, "admin@acme.example")

    def test_can_asks_by_ids_alone(self):
        me = self.client.as_(self.tokens["admin"]).session()["user"]
        identity = doorward.Identity(me["id"], me["tenantId"])
        self.assertEqual(self.client.can(identity, "invoice.pay", invoice(10)), (True, "", "", None))
        self.assertEqual(self.client.can(identity, "invoice.pay", invoice(1001)), (False, "Large invoices are paid by the OWNER.", "large", None))
        self.assertTrue(self.client.can(identity, "invoice.pay", invoice(9), ip="192.0.2.1", time=datetime.datetime.now()).allowed)
        self.assertTrue(self.client.can(identity, "user.invite").allowed)
        self.assertTrue(self.client.can(self.tokens["owner"], "invoice.pay", invoice(1001)).allowed)
        for call in (lambda: self.client.can(doorward.Identity(tenant_id="tnt_1"), "user.invite"), lambda: self.client.can(self.tokens["owner"], "user.invite")):
            with self.assertRaises(ValueError):
                call()
        stranger = doorward.Client(self.client.base_url, key="dws_x")
        self.addCleanup(stranger.close)
        with self.assertRaises(doorward.Unavailable):
            stranger.can(identity, "user.invite")

    def test_a_decision_that_needs_a_step_up_says_so(self):
        decision = {"decision": False, "context": {"reason": "x", "stepUp": {"acr": "aal2", "maxAge": 600, "methods": ["totp"]}}}
        answers = [(200, IDENTITY, b""), (200, {"Content-Type": "application/json"}, json.dumps(decision).encode())]
        with self.assertRaises(doorward.StepUpRequired) as caught:
            check.check(Stub(self, lambda n: answers[n - 1]).client, "GET", {"cookie": "JSESSIONID=" + "A" * 43}, "invoice.pay", resource=invoice(1))
        self.assertEqual(caught.exception.problem["maxAge"], 600)

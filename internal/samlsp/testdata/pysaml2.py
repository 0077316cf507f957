# Judges SAML responses with pysaml2, which has xmlsec1 verify and decrypt. Reads {provider, us, responses} from the standard
# input, as reference.mjs does, and writes {judged}: one answer for each.
import json
import logging
import sys
import tempfile

from saml2 import BINDING_HTTP_POST
from saml2.client import Saml2Client
from saml2.config import SPConfig

logging.disable(logging.CRITICAL)
asked = json.load(sys.stdin)
provider, us = asked["provider"], asked["us"]


def metadata(certificates):
    keys = "".join(
        '<md:KeyDescriptor use="signing"><ds:KeyInfo><ds:X509Data><ds:X509Certificate>'
        + "".join(pem.strip().splitlines()[1:-1])
        + "</ds:X509Certificate></ds:X509Data></ds:KeyInfo></md:KeyDescriptor>"
        for pem in certificates
    )
    return (
        '<md:EntityDescriptor xmlns:md="urn:oasis:names:tc:SAML:2.0:metadata" xmlns:ds="http://www.w3.org/2000/09/xmldsig#"'
        f' entityID="{provider["entityId"]}"><md:IDPSSODescriptor protocolSupportEnumeration="urn:oasis:names:tc:SAML:2.0:protocol">'
        f'{keys}<md:SingleSignOnService Binding="urn:oasis:names:tc:SAML:2.0:bindings:HTTP-Redirect" Location="{provider["ssoUrl"]}"/>'
        "</md:IDPSSODescriptor></md:EntityDescriptor>"
    )


def file(text):
    f = tempfile.NamedTemporaryFile("w", suffix=".pem")
    f.write(text)
    f.flush()
    return f


def judge(response):
    options = {
        "entityid": us["entityId"],
        "xmlsec_binary": "/usr/bin/xmlsec1",
        "metadata": {"inline": [metadata(response["certificates"])]},
        "accepted_time_diff": 180,
        "allow_unknown_attributes": True,
        "service": {
            "sp": {
                "endpoints": {"assertion_consumer_service": [(us["acs"], BINDING_HTTP_POST)]},
                "allow_unsolicited": False,
                "want_response_signed": False,
                "want_assertions_signed": False,
                "want_assertions_or_response_signed": True,
            }
        },
    }
    key = response.get("key")
    with file(key or "") as private, file(us["certificate"]) as certificate:
        if key:
            options["encryption_keypairs"] = [{"key_file": private.name, "cert_file": certificate.name}]
        client = Saml2Client(SPConfig().load(options))
        got = client.parse_authn_request_response(response["form"], BINDING_HTTP_POST, {response["requestId"]: "/"})
        if got is None:
            return {"error": "no assertion"}
        return {"nameId": got.get_subject().text}


def verdict(response):
    try:
        return judge(response)
    except Exception as error:  # of whatever it consists of
        return {"error": f"{type(error).__name__}: {error}"}


json.dump({"judged": [verdict(one) for one in asked["responses"]]}, sys.stdout)

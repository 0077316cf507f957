"""Reports by Flask, protected by Doorward: python3 app.py, with clients/python on PYTHONPATH."""

import os

import flask

import doorward
from doorward import wsgi

client = doorward.Client(os.environ.get("DOORWARD", "http://127.0.0.1:8080"))


def action(environ):
    """Returns the action that a request needs, or False if it is open to all."""
    if environ["PATH_INFO"] == "/":
        return False
    return "report.read" if environ["REQUEST_METHOD"] in ("GET", "HEAD") else "settings.manage"


app = flask.Flask(__name__)
app.wsgi_app = wsgi.Protect(app.wsgi_app, client, action)
reports = {}  # by tenant


@app.get("/")
def home():
    return {"service": "reports"}


@app.get("/reports")
def show():
    caller = flask.request.environ["doorward"]
    return {"tenant": caller.tenant_id, "for": caller.email, "reports": reports.get(caller.tenant_id, [])}


@app.post("/reports")
def add():
    caller = flask.request.environ["doorward"]
    reports.setdefault(caller.tenant_id, []).append(flask.request.get_data(as_text=True))
    return {"added": True}, 201


if __name__ == "__main__":
    app.run(port=9000)

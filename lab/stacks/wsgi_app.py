"""A handler for `stacks`, under gunicorn, that works in small steps, plain and within
TerminateWsgi.
"""

import time

from bywash import Class, Controller, TerminateWsgi, checkpoint
from observer import tell


def work(name, ask):
    try:
        for _ in range(40):
            tell(name, "step")
            time.sleep(0.02)
            ask()
    except BaseException:
        tell(name, "told")
        raise
    tell(name, "done")


def handler(environ, start_response):
    _, how, name = environ["PATH_INFO"].split("/")
    work(name, checkpoint if how == "sdk" else lambda: None)
    start_response("200 OK", [("Content-Length", "4")])
    return [b"done"]


terminable = TerminateWsgi(handler, Controller(Class("work", run_min=1.0, run_max=30.0)), lambda environ: "work")


def app(environ, start_response):
    return (terminable if environ["PATH_INFO"].startswith("/sdk/") else handler)(environ, start_response)

"""An origin on gunicorn or waitress (PEP 3333). The route is `PATH_INFO`, which both decode."""

from reflect import reflection


def app(environ, start_response):
    body = environ["wsgi.input"].read()
    target = environ.get("RAW_URI") or environ.get("REQUEST_URI")
    method, host = environ["REQUEST_METHOD"], environ.get("HTTP_HOST")
    fields, text = reflection(method, target, host, environ["PATH_INFO"], body)
    fields += [("Content-Type", "application/json"), ("Content-Length", str(len(text)))]
    start_response("200 OK", fields)
    return [text]

"""An origin on uvicorn, with either of its parsers (ASGI 3). An incomplete body gets no answer."""

from reflect import latin, reflection


async def app(scope, receive, send):
    if scope["type"] != "http":
        return
    body = b""
    while True:
        event = await receive()
        if event["type"] != "http.request":
            return
        body += event.get("body", b"")
        if not event.get("more_body"):
            break
    target = scope["raw_path"]
    if scope["query_string"]:
        target += b"?" + scope["query_string"]
    hosts = [value for name, value in scope["headers"] if name == b"host"]
    host = latin(b",".join(hosts)) if hosts else None
    fields, text = reflection(scope["method"], latin(target), host, scope["path"], body)
    fields += [("Content-Type", "application/json"), ("Content-Length", str(len(text)))]
    headers = [(name.encode(), value.encode()) for name, value in fields]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": text})

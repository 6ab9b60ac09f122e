"""What an origin written in Python answers with: the request as it understood it.

Every text is Latin 1, one character a byte, so that nothing of the message is lost on the way.
"""

import json

# A response to HEAD has no body; its reflection goes into a field, and a field has to be short.
LONGEST_FIELD = 6000


def latin(octets):
    """The bytes as text, one character each; None stays None: the origin does not say."""
    return None if octets is None else octets.decode("latin-1")


def reflection(method, target, host, route, body):
    """Status line and fields are the server's business; this is (extra fields, body), as bytes."""
    seen = {"method": method, "target": target, "host": host, "route": route, "body": body.hex()}
    text = json.dumps(seen)
    if method != "HEAD":
        return [], text.encode("ascii")
    if len(text) > LONGEST_FIELD:
        text = json.dumps({**seen, "body": None})
    return [("Reflection", text)], b""

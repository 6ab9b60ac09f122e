"""The answer of an origin that is written in Python: the request as the origin understood it.

Every text is Latin-1, one character for each byte, so that no byte of the message is lost.
"""

import json

# The maximum length of the field with the reflection. A response to HEAD has no body, so its
# reflection is in a field, which must be short.
LONGEST_FIELD = 6000


def latin(octets):
    """Returns the bytes as text, with one character for each byte. None, a value that the origin
    does not report, stays None.
    """
    return None if octets is None else octets.decode("latin-1")


def reflection(method, target, host, route, body):
    """Returns (extra fields, body as bytes). The server itself writes the status line and other
    fields.
    """
    seen = {"method": method, "target": target, "host": host, "route": route, "body": body.hex()}
    text = json.dumps(seen)
    if method != "HEAD":
        return [], text.encode("ascii")
    if len(text) > LONGEST_FIELD:
        text = json.dumps({**seen, "body": None})
    return [("Reflection", text)], b""

"""The common parts of ASGI and WSGI: header fields, and the response to terminated requests."""

import json
import math
import os
import re
from typing import Callable, Dict, Iterable, List, Optional, Tuple

from .token import CLIENT_LEFT, RAN_TOO_LONG, Terminated

#: The header field with the milliseconds that are left to a request. A sender can only shorten its
#: own request.
HEADER = "bywash-deadline"
_MILLISECONDS = re.compile(rb"[0-9]{1,9}")

#: The header field with the name that the gateway gave to a request.
REQUEST = "bywash-request"
_NAME = re.compile(rb"[A-Za-z0-9._:-]{1,128}")

# The problem types: the one that the gateway uses as well (IETF draft on RateLimit), and none
# (RFC 9457).
_BUSY = "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity"
_PLAIN = "about:blank"


def seconds_left(values: Iterable[bytes]) -> Optional[float]:
    """Return the time in seconds that is left to a request by the deadline in its header.

    Anything but a single number of 1 to 9 digits counts as no deadline.
    """
    values = list(values)
    if len(values) != 1 or not _MILLISECONDS.fullmatch(values[0]):
        return None
    return int(values[0]) / 1000


def name_of(values: Iterable[bytes]) -> Optional[str]:
    """Return the name of a request from its header.

    Anything but a single value of 1 to 128 of the allowed characters counts as no name.
    """
    values = list(values)
    return values[0].decode() if len(values) == 1 and _NAME.fullmatch(values[0]) else None


def new_name() -> str:
    """Return a name for a request without one.

    It has the format of the names of mod_bywash_sentry, so that the names of different processes
    differ.
    """
    return os.urandom(8).hex()


def passed_on(values: Callable[[str], List[bytes]], request: Optional[str]) -> Dict[str, str]:
    """Return the header fields that calls to other services carry unchanged."""
    fields = {} if request is None else {REQUEST: request}
    traces = values("traceparent")
    # A server for WSGI joins several values with commas.
    if len(traces) == 1 and b"," not in traces[0]:
        fields["traceparent"] = traces[0].decode("latin-1")
        # There may be several (Trace Context, 3.3.1.1). Without a traceparent they have no meaning.
        states = b",".join(values("tracestate"))
        if states:
            fields["tracestate"] = states.decode("latin-1")
    return fields


def answer(terminated: Terminated, accept: str) -> Tuple[List[Tuple[str, str]], bytes]:
    """Return the head and the body of the 504 response to a terminated request.

    The body is problem+json (RFC 9457) if the client accepts JSON, else a line of text.

    `Retry-After` is only sent if the reason is `ran_too_long`. The caller omits the body in the
    response to a HEAD.
    """
    reason, again = terminated.reason, max(math.ceil(terminated.retry_after), 1)
    problem = {"type": _PLAIN, "title": "The deadline of this request has passed."}
    if reason == RAN_TOO_LONG:
        problem = {"type": _BUSY, "title": f"The site is very busy. Please try again in {again} s."}
    elif reason == CLIENT_LEFT:
        problem = {"type": _PLAIN, "title": "The client of this request has left."}
    if "json" in accept.lower():
        kind = "application/problem+json"
        more = {"retry-after": again} if reason == RAN_TOO_LONG else {}
        body = json.dumps({**problem, "status": 504, "reason": reason, **more}).encode()
    else:
        kind, body = "text/plain; charset=utf-8", f"{problem['title']} ({reason})\n".encode()
    head = [("Content-Type", kind), ("Content-Length", str(len(body))), ("Cache-Control", "no-store")]
    if reason == RAN_TOO_LONG:
        head.append(("Retry-After", str(again)))
    return head, body

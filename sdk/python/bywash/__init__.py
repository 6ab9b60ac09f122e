"""Cooperative termination: ends a request that has run for too long at the present load.

The contract is in `sdk/README.md` and is the same for every language. The README.md next to this
package has an example.
"""

from .asgi import TerminateAsgi
from .classes import Class, SettingError
from .controller import Controller, Stats
from .databases import leased, sqlite_factory
from .lease import OwnQuery, Query, Taken
from .stop_client import StopClient, StopClientStats
from .token import Terminated, Token, checkpoint, current, outgoing
from .unleased import unleased
from .wsgi import TerminateWsgi

__all__ = [
    "Class",
    "Controller",
    "OwnQuery",
    "Query",
    "SettingError",
    "Stats",
    "StopClient",
    "StopClientStats",
    "Taken",
    "Terminated",
    "TerminateAsgi",
    "TerminateWsgi",
    "Token",
    "checkpoint",
    "current",
    "leased",
    "outgoing",
    "sqlite_factory",
    "unleased",
]

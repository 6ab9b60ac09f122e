"""Cooperative termination: a request is told when it has run for too long for the present load.

The contract is in `sdk/README.md`, the same for every language; README.md beside this package has an example.
"""

from .asgi import TerminateAsgi
from .classes import Class, SettingError
from .controller import Controller, Stats
from .token import Terminated, Token, checkpoint, current
from .wsgi import TerminateWsgi

__all__ = [
    "Class",
    "Controller",
    "SettingError",
    "Stats",
    "Terminated",
    "TerminateAsgi",
    "TerminateWsgi",
    "Token",
    "checkpoint",
    "current",
]

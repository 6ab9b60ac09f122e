"""The databases that `scripts/with-databases` gives a command."""

import os
from pathlib import Path
from typing import NamedTuple


class Database(NamedTuple):
    """A database: its variable in the environment, the scheme of its URLs, and the name of its processes."""

    variable: str
    scheme: str
    program: str

    def is_there(self) -> bool:
        """Returns whether `scripts/with-databases` has started it."""
        return self.variable in os.environ

    def address(self) -> str:
        """Returns its host and port."""
        return os.environ[self.variable]

    def url(self, user: str) -> str:
        """Returns the URL of its database `shop` for a user."""
        return f"{self.scheme}://{user}@{self.address()}/shop"

    def process(self) -> int:
        """Returns the id of its first process. The process changes if the database is restarted."""
        return int(Path(os.environ[f"{self.variable}_PROCESS"]).read_text())


DATABASES = {
    "postgres": Database("BYWASH_POSTGRES", "postgres", "postgres"),
    "mariadb": Database("BYWASH_MARIADB", "mysql", "mariadbd"),
}

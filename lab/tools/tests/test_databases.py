"""Tests that the variables of the databases are read when they are needed."""

import os
import tempfile
import unittest
from unittest import mock

from bywash_lab.databases import DATABASES


class Databases(unittest.TestCase):
    def test_a_database_is_there_if_its_variable_is_set(self) -> None:
        with mock.patch.dict(os.environ, {"BYWASH_MARIADB": "127.0.0.1:20000"}, clear=True):
            self.assertEqual([name for name, database in DATABASES.items() if database.is_there()], ["mariadb"])
            self.assertEqual(DATABASES["mariadb"].url("shop"), "mysql://shop@127.0.0.1:20000/shop")

    def test_the_process_is_read_again_each_time_because_a_restart_changes_it(self) -> None:
        with tempfile.NamedTemporaryFile("w+") as file, mock.patch.dict(os.environ, {"BYWASH_POSTGRES_PROCESS": file.name}):
            for number in (12, 345):
                file.seek(0)
                file.write(f"{number}\n")
                file.flush()
                self.assertEqual(DATABASES["postgres"].process(), number)

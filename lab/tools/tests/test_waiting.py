"""Tests that waiting ends by a result, by an error, or by its limit."""

import itertools
import unittest

from bywash_lab.waiting import seconds_until, until


class Waiting(unittest.TestCase):
    def test_the_first_true_result_is_returned(self) -> None:
        results = iter([0, "", "ready", "never asked"])
        self.assertEqual(until("it is ready", lambda: next(results), pause=0), "ready")
        self.assertEqual(next(results), "never asked")

    def test_an_os_error_is_no_result_and_another_error_is_not_hidden(self) -> None:
        calls = itertools.count()

        def look() -> bool:
            if next(calls) < 3:
                raise ConnectionRefusedError
            return True

        self.assertTrue(until("it answers", look, pause=0))
        numbers: dict[str, int] = {}
        with self.assertRaises(KeyError):
            until("it answers", lambda: numbers["missing"])

    def test_a_condition_that_never_holds_ends_the_script(self) -> None:
        with self.assertRaisesRegex(SystemExit, "not within 0.01 s: it is ready"):
            until("it is ready", lambda: False, limit=0.01, pause=0)
        self.assertIsNone(seconds_until(lambda: False, 0.01, 0))

    def test_a_condition_that_holds_has_a_time(self) -> None:
        passed = seconds_until(lambda: True, 60)
        assert passed is not None
        self.assertGreaterEqual(passed, 0)

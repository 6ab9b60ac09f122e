"""Tests of messages, tables, result files, summaries and runs of `bywash lab run`, with a substitute for
the program."""

import contextlib
import io
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

from bywash_lab.lab_run import begin, result
from bywash_lab.places import ROOT
from bywash_lab.procfs import PROC
from bywash_lab.reports import fail, failures_exit_with, not_tested, save, script, table
from bywash_lab.summaries import medians, quantile


class Messages(unittest.TestCase):
    def test_a_module_has_the_name_of_its_folder_and_a_script_its_own(self) -> None:
        for started, name in [("lab/applications/measure.py", "applications"), ("scripts/check-unit", "check-unit")]:
            with mock.patch.object(sys, "argv", [str(ROOT / started)]):
                self.assertEqual(script(), name)
                with self.assertRaisesRegex(SystemExit, f"^{name}: it is broken$"):
                    fail("it is broken")

    def test_a_failure_may_have_another_exit_code_and_its_message_is_printed(self) -> None:
        with contextlib.redirect_stderr(io.StringIO()) as words, self.assertRaises(SystemExit) as ended, failures_exit_with(2):
            fail("it does not start")
        self.assertEqual((ended.exception.code, words.getvalue()), (2, f"{script()}: it does not start\n"))
        with self.assertRaises(SystemExit) as ended, failures_exit_with(2):
            sys.exit(143)
        self.assertEqual(ended.exception.code, 143)

    def test_tests_that_are_left_out_are_reported_as_errors_are(self) -> None:
        with contextlib.redirect_stderr(io.StringIO()) as words:
            not_tested("Apache, because apache2 is missing")
        self.assertEqual(words.getvalue(), "NOT TESTED: Apache, because apache2 is missing\n")

    def test_a_table_has_a_rule_below_its_head_and_single_spaces_in_empty_cells(self) -> None:
        with contextlib.redirect_stdout(io.StringIO()) as words:
            row = table("", "mean, ms")
            row("parity  alone", 3.5)
        self.assertEqual(words.getvalue(), "| | mean, ms |\n|---|---|\n| parity  alone | 3.5 |\n")

    def test_a_saved_file_is_complete_and_leaves_no_part(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            save(Path(folder) / "run-1.json", "{}\n")
            save(Path(folder) / "run-1.json", "[]\n")
            self.assertEqual([(path.name, path.read_text()) for path in Path(folder).iterdir()], [("run-1.json", "[]\n")])


class Summaries(unittest.TestCase):
    def test_quantiles_are_values_and_the_last_one_is_the_largest(self) -> None:
        values = [3.0, 1.0, 2.0, 4.0]
        self.assertEqual([quantile(values, share) for share in (0, 0.25, 0.5, 0.95, 1)], [1, 2, 3, 4, 4])

    def test_medians_are_those_of_columns(self) -> None:
        self.assertEqual(medians([(1, 10), (2, 30), (9, 20)]), [2, 20])


class LabRuns(unittest.TestCase):
    def run_of(self, text: str) -> tuple[Path, Path]:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        program = Path(folder.name) / "bywash"
        program.write_text(f"#!/bin/sh\n{text}\n")
        program.chmod(0o755)
        return program, Path(folder.name) / "scenario.toml"

    def test_a_run_gets_its_options_and_its_json_is_returned(self) -> None:
        program, scenario = self.run_of("""printf '{"words": "%s"}' "$*"; exit 1""")
        process = begin(scenario, "http://127.0.0.1:80", "--seed", 7, bywash=program, before=("nice", "-n", "1"))
        self.assertEqual(result(process), {"words": f"lab run {scenario} --target http://127.0.0.1:80 --seed 7 --json"})

    def test_a_run_without_json_ends_the_script_with_its_errors(self) -> None:
        program, scenario = self.run_of("echo the scenario has no class >&2; exit 2")
        with self.assertRaisesRegex(SystemExit, "lab run: the scenario has no class"):
            result(begin(scenario, "http://127.0.0.1:80", bywash=program))

    def test_a_run_leaves_no_process_even_if_its_result_is_not_read(self) -> None:
        program, scenario = self.run_of("echo '{}'")
        process = begin(scenario, "http://127.0.0.1:80", bywash=program)
        self.assertEqual(result(process), {})
        self.assertFalse((PROC / str(process.pid)).exists())
        program, scenario = self.run_of("exec sleep 1000")
        process = begin(scenario, "http://127.0.0.1:80", bywash=program)
        assert process.stdout is not None and process.stderr is not None
        with process.stdout, process.stderr, mock.patch.object(process, "communicate", side_effect=KeyboardInterrupt):
            with self.assertRaises(KeyboardInterrupt):
                result(process)
        self.assertFalse((PROC / str(process.pid)).exists())

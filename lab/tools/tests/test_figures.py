"""Tables of pages from result files."""

import tempfile
import unittest
from pathlib import Path
from unittest import mock

from bywash_lab import figures

RESULTS = {
    "sim": [{"policy": policy, "rho": rho, "closes": closes, "useful": useful, "error": error, "done": 3, "left": 1}
            for policy, rho, closes, useful, error in [
                ("a", 0.9, "visible", 0.9861, 0.002), ("a", 2.0, "visible", 0.5, None), ("a", 0.9, "hidden", 0.1, 0.1), ("b", 2.0, "visible", 1, 0)]],
    "other": [{"policy": "c", "rho": 0.9, "closes": "visible", "useful": 0.25, "error": 0.0, "done": 0, "left": 0}],
}


def read(name: str) -> figures.Record:
    return {"commit": "0123abcd", "date": "2026-01-02", "results": RESULTS[name]}


def page(words: str, content: str = "") -> str:
    return f"Before.\n\n<!-- table {words} -->\n\n{content}<!-- end -->\n\nAfter.\n"


class Tables(unittest.TestCase):
    def check(self, words: str, *lines: str) -> None:
        expected = page(words, "".join(f"{line}\n" for line in lines) + "\n")
        self.assertEqual(figures.written(page(words, "| old |\n|---|\n"), read), expected)
        self.assertEqual(figures.written(expected, read), expected)

    def test_results_are_spread_over_rows_and_columns(self) -> None:
        self.check('sim closes=visible "rows=the policy=policy" columns=rho "head=ρ = {rho}" "cell={useful:.1%} ± {error:.1%|?}"',
                   "| the policy | ρ = 0.9 | ρ = 2 |", "|---|---|---|", "| a | 98.6 ± 0.2 | 50.0 ± ? |", "| b | – | 100.0 ± 0.0 |")

    def test_several_files_have_titles_and_several_results_of_a_cell_follow_each_other(self) -> None:
        self.check('sim,other closes=visible|hidden rows=policy columns=result "titles=one|two"\n    cell={rho}',
                   "| policy | one | two |", "|---|---|---|", "| a | 0.9, 2, 0.9 | – |", "| b | 2 | – |", "| c | – | 0.9 |")

    def test_columns_may_be_named_one_by_one_and_divide_values(self) -> None:
        self.check("sim,other rho=0.9 closes=visible rows=policy rows=closes part={done/done+left:.2%} done={done:.1f}",
                   "| policy | closes | part | done |", "|---|---|---|---|", "| a | visible | 75.00 | 3.0 |", "| c | visible | – | 0.0 |")

    def test_a_page_says_when_its_results_were_recorded(self) -> None:
        text = "Virtual time. <!-- recorded sim other -->\n<!-- end -->\n"
        self.assertEqual(figures.written(text, read), text.replace("<!-- end", "Recorded in commit 0123abcd (2026-01-02).\n<!-- end"))

    def test_a_value_of_one_result_stands_in_a_line(self) -> None:
        mark = '<!-- value sim policy=a rho=2 "{useful:.1%} ± {error:.1%|?}" -->{}<!-- end -->'
        text = f"It kept {mark} of it.\n"
        self.assertEqual(figures.written(text.replace("{}<", "old<"), read), text.replace("{}<", "50.0 ± ?<"))
        with self.assertRaisesRegex(SystemExit, "sim policy=a chooses 3 results"):
            figures.written("<!-- value sim policy=a {rho} --><!-- end -->", read)
        with self.assertRaisesRegex(SystemExit, "policy=b is no template"):
            figures.written("<!-- value sim policy=b --><!-- end -->", read)

    def test_mistakes_in_a_mark_are_reported(self) -> None:
        for words, why in [("sim rows=policy x={worth:.1f}", "has no worth"), ("sim closes=open rows=policy", "no result of sim"),
                           ("sim rows=policy columns=rho titles=one cell={rho}", "1 titles for 2 columns")]:
            with self.assertRaisesRegex(SystemExit, why):
                figures.written(page(words), read)
        with self.assertRaisesRegex(SystemExit, "has no <!-- end -->"):
            figures.written("<!-- table sim rows=policy -->\n", read)


class Results(unittest.TestCase):
    def test_a_file_has_its_origin_and_a_line_for_each_result(self) -> None:
        with tempfile.TemporaryDirectory() as folder, mock.patch.object(figures, "RESULTS", Path(folder)):
            figures.write("one", "bywash lab sim", [{"ρ": 1}, {"ρ": 2}], commit="0123abcd")
            found = figures.read("one")
            self.assertEqual(Path(folder, "one.json").read_text().count('\n  {"ρ": '), 2)
            with self.assertRaisesRegex(SystemExit, "two.json does not exist"):
                figures.read("two")
        self.assertEqual(list(found), ["command", "commit", "date", "machine", "results"])
        self.assertEqual(found["commit"], "0123abcd")

    def test_a_cell_becomes_a_flat_record_for_each_phase(self) -> None:
        cell = {"rho": 2.0, "recovery": {"seconds": None}, "timeline": [1], "classes": [{"class": "page", "p50_ms": 7, "response": []}]}
        output = {"scenario": "s", "seeds": [1, 2], "cells": [cell]}
        flat = {"scenario": "s", "seeds": 2, "rho": 2.0, "recovery.seconds": None}
        self.assertEqual(figures.records(output, classes=False), [flat])
        self.assertEqual(figures.records(output, classes=True), [flat | {"page.class": "page", "page.p50_ms": 7}])
        phases = {"seeds": 5, "cells": [{"limit": "slope", "phases": [{"lost": 0.1}, {"lost": 0.2}]}]}
        self.assertEqual([(one["phase"], one["lost"], one["seeds"]) for one in figures.records(phases, classes=False)], [(0, 0.1, 5), (1, 0.2, 5)])

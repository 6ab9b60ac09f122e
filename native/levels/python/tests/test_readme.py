"""Tests that the README's program prints what the README says, and that the stubs are complete."""

import ast
import pathlib
import re
import subprocess
import sys
import unittest

import bywash_levels
from bywash_levels import _native

PACKAGE = pathlib.Path(bywash_levels.__file__).resolve().parent
README = pathlib.Path(__file__).resolve().parent.parent / "README.md"


class Readme(unittest.TestCase):
    def test_its_program_runs(self):
        text = README.read_text(encoding="utf-8")
        program, said = re.search(r"```python\n(.*?)```\n\n```text\n(.*?)```", text, re.DOTALL).groups()
        done = subprocess.run(
            [sys.executable, "-W", "error", "-c", program],
            capture_output=True, text=True, timeout=60, cwd=PACKAGE.parent,
        )  # fmt: skip
        self.assertEqual((done.stdout, done.stderr), (said, ""))


class Stubs(unittest.TestCase):
    def test_they_name_what_there_is(self):
        stub = ast.parse((PACKAGE / "_native.pyi").read_text(encoding="utf-8"))
        self.assertTrue((PACKAGE / "py.typed").is_file())
        named = {}
        for node in stub.body:
            if isinstance(node, ast.ClassDef):
                named[node.name] = {item.name for item in node.body if isinstance(item, ast.FunctionDef)}
            elif isinstance(node, ast.FunctionDef):
                named[node.name] = set()
        there = {name for name in vars(_native) if not name.startswith("_")}
        self.assertEqual(set(named), there)
        for name, methods in named.items():
            methods -= {"__init__"}
            if not issubclass(type(getattr(_native, name)), type) or issubclass(getattr(_native, name), Exception):
                continue
            own = set(vars(getattr(_native, name)))
            own = {method for method in own if not method.startswith("_")} | (own & {"__enter__", "__exit__"})
            self.assertEqual(methods, own, name)

    def test_all_is_all(self):
        for name in bywash_levels.__all__:
            self.assertTrue(hasattr(bywash_levels, name), name)


if __name__ == "__main__":
    unittest.main()

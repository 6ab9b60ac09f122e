"""Tests that descendants and processor time are those that the kernel reports."""

import os
import subprocess
import time
import unittest

from bywash_lab import procfs
from bywash_lab.processes import announced, kill, start

SELF = procfs.PROC / "self"


class Proc(unittest.TestCase):
    def test_the_fields_of_this_process_name_its_parent(self) -> None:
        self.assertEqual(procfs.fields(SELF)[1], str(os.getppid()))

    def test_descendants_are_children_and_their_children(self) -> None:
        process = start("sh", "-c", "sh -c 'sleep 1000 & echo child $!; wait' & wait", stdout=subprocess.PIPE)
        grandchild = int(announced("it", process.stdout, r"child (\d+)")[0])
        found = procfs.descendants(os.getpid())
        self.assertTrue({process.pid, grandchild} <= set(found), found)
        self.assertNotIn(os.getpid(), found)
        self.assertNotIn(process.pid, procfs.descendants(process.pid))
        kill(process)

    def test_a_process_that_has_ended_is_no_descendant(self) -> None:
        process = start("true")
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        self.assertIn(process.pid, procfs.family(os.getpid()))
        self.assertNotIn(process.pid, procfs.descendants(os.getpid()))
        kill(process)

    def test_processor_seconds_include_children_that_run_and_that_have_ended(self) -> None:
        before = procfs.processor_seconds(os.getpid())
        # A tenth of a second is ten ticks, so none is lost by rounding.
        busy = "import sys, time; end = time.process_time() + 0.1\nwhile time.process_time() < end: pass\nprint('done', flush=True); sys.stdin.read()"
        process = start("python3", "-c", busy, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        announced("it", process.stdout, "done")
        running = procfs.processor_seconds(os.getpid())
        assert process.stdin is not None
        process.stdin.close()
        process.wait()
        ended = procfs.processor_seconds(os.getpid())
        self.assertGreaterEqual(running - before, 0.08)
        self.assertGreaterEqual(ended - before, 0.08)

    def test_time_of_a_thread_is_read_as_that_of_a_process(self) -> None:
        end = time.thread_time() + 0.05
        while time.thread_time() < end:
            pass
        self.assertGreater(procfs.ticks(procfs.fields(SELF / "task" / str(os.getpid()))), 0)

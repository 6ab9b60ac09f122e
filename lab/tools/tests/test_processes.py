"""Tests that programs start, end by signals, and end with their script. Each test ends the programs
that it starts."""

import os
import signal
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

from bywash_lab import procfs
from bywash_lab.network import free_port, listens
from bywash_lab.processes import Process, Processes, announced, kill, start, stop
from bywash_lab.waiting import until

PACKAGE = Path(__file__).resolve().parents[1]
PIPE = subprocess.PIPE
# A server that ends by SIGTERM, as those of the laboratory do.
SERVER = "import http.server as h, sys; h.test(h.SimpleHTTPRequestHandler, port=int(sys.argv[1]), bind='127.0.0.1')"
# A shell that does not end on SIGTERM. It prints the process id of its child, which ignores SIGTERM too.
STUBBORN = "trap '' TERM; sleep 1000 & echo child $!; wait"


def runs(process: int) -> bool:
    """Returns whether a process exists and has not ended."""
    try:
        return procfs.fields(procfs.PROC / str(process))[0] != "Z"
    except OSError:
        return False


def script(text: str) -> subprocess.Popen[str]:
    """Starts a script that uses the package."""
    head = f"import sys; sys.path.insert(0, {str(PACKAGE)!r})\nfrom bywash_lab.processes import *\n"
    return subprocess.Popen([sys.executable, "-c", head + text], stdout=PIPE, stderr=PIPE, text=True)


class OneProgram(unittest.TestCase):
    def test_a_program_tells_its_address_and_ends_by_sigterm(self) -> None:
        process = start("sh", "-c", "echo loading; echo listening on 127.0.0.1:80; echo more; exec sleep 1000", stdout=PIPE)
        self.assertEqual(announced("server", process.stdout, r"on (\S+):(\d+)"), ("127.0.0.1", "80"))
        stop(process)
        self.assertEqual(process.returncode, -signal.SIGTERM)

    def test_a_program_that_ends_before_its_address_ends_the_script(self) -> None:
        with start("echo", "no address", stdout=PIPE) as process:
            with self.assertRaisesRegex(SystemExit, "server ended before it printed"):
                announced("server", process.stdout, "listening")

    def test_a_program_that_prints_no_address_ends_the_script_with_its_lines(self) -> None:
        process = start("sh", "-c", "echo loading; exec sleep 1000", stdout=PIPE)
        try:
            self.assertEqual(announced("server", process.stdout, "loading"), ())
        finally:
            kill(process)
        process = start("sh", "-c", "exec sleep 1000", stdout=PIPE)
        try:
            with self.assertRaisesRegex(SystemExit, "server did not print listening within 0 s"):
                announced("server", process.stdout, "listening", patience=0)
        finally:
            kill(process)
        process = start("sh", "-c", "echo no such file; exit 1", stdout=PIPE)
        with self.assertRaisesRegex(SystemExit, "ended before it printed listening: no such file"):
            announced("server", process.stdout, "listening")
        kill(process)

    def test_the_children_of_a_program_that_has_ended_are_killed(self) -> None:
        for end in (stop, kill):
            process = start("sh", "-c", "trap '' TERM; sleep 1000 >/dev/null & echo child $!; exit 3", stdout=PIPE)
            child = int(announced("it", process.stdout, r"child (\d+)")[0])
            until("the program ends", lambda: process.poll() is not None)
            self.assertTrue(runs(child))
            end(process)
            self.assertEqual(process.returncode, 3)
            until("the child ends", lambda: not runs(child))

    def test_the_children_of_a_program_that_sigterm_ends_are_killed(self) -> None:
        process = start("sh", "-c", "(trap '' TERM; echo child $(exec sh -c 'echo $PPID'); sleep 1000; sleep 1000) & wait", stdout=PIPE)
        child = int(announced("it", process.stdout, r"child (\d+)")[0])
        stop(process)
        self.assertEqual(process.returncode, -signal.SIGTERM)
        until("the child ends", lambda: not runs(child))

    def test_a_program_that_ignores_sigterm_is_killed_with_its_children(self) -> None:
        process = start("sh", "-c", STUBBORN, stdout=PIPE)
        child = int(announced("it", process.stdout, r"child (\d+)")[0])
        self.assertTrue(runs(child))
        stop(process, patience=0)
        self.assertEqual(process.returncode, -signal.SIGKILL)
        until("the child ends", lambda: not runs(child))

    def test_stopping_twice_is_no_error(self) -> None:
        process = start("sleep", "1000")
        stop(process)
        stop(process)
        kill(process)

    def test_a_wait_has_a_limit_and_leaves_the_process_id(self) -> None:
        process = start("sleep", "1000")
        with self.assertRaises(subprocess.TimeoutExpired):
            process.wait(0.01)
        process.terminate()
        self.assertEqual((process.wait(20), process.wait(), process.poll()), (-signal.SIGTERM,) * 3)
        self.assertEqual(procfs.fields(procfs.PROC / str(process.pid))[0], "Z")
        for _ in range(2):
            kill(process)
            self.assertEqual(process.returncode, -signal.SIGTERM)
            self.assertFalse((procfs.PROC / str(process.pid)).exists())

    def test_an_id_that_the_caller_has_released_is_not_killed(self) -> None:
        process = start("true")
        os.waitpid(process.pid, 0)
        with mock.patch("os.killpg") as killpg:
            kill(process)
        killpg.assert_not_called()
        self.assertTrue(process.released)
        process.returncode = 0

    def test_a_released_id_that_another_child_has_is_not_killed(self) -> None:
        for end in (stop, kill):
            first, other = start("sleep", "1000"), start("sleep", "1000")
            self.addCleanup(kill, other)
            end(first)
            first.pid = other.pid
            for again in (stop, kill):
                again(first)
                self.assertTrue(runs(other.pid))

    def test_a_program_ends_with_code_0_if_the_kernel_does_not_keep_its_code(self) -> None:
        self.addCleanup(signal.signal, signal.SIGCHLD, signal.signal(signal.SIGCHLD, signal.SIG_IGN))
        process = start("sh", "-c", "exit 3")
        self.assertEqual((process.wait(), process.poll()), (0, 0))
        self.assertEqual(start("sh", "-c", "exit 3").wait(20), 0)
        for end in (stop, kill):
            process = start("sleep", "1000")
            end(process)
            self.assertEqual(process.returncode, 0)
            self.assertFalse((procfs.PROC / str(process.pid)).exists())
            end(process)

    def test_a_missing_program_ends_the_script_with_its_name(self) -> None:
        with self.assertRaisesRegex(SystemExit, "/nowhere/bywash is missing"):
            start("/nowhere/bywash", "run")

    def test_options_and_priority_reach_the_program(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            process = start("nice", "-n", "3", "sh", "-c", 'echo "$WORD $(pwd -P) $(nice)"', stdout=PIPE, cwd=folder,
                            env=os.environ | {"WORD": "word"})
            output, _ = process.communicate()
            self.assertEqual(output.split(), ["word", str(Path(folder).resolve()), str(min(19, os.nice(0) + 3))])

    def test_a_program_ends_with_a_script_that_is_killed(self) -> None:
        killed = script("start('sh', '-c', 'echo child $$; exec sleep 1000'); signal.pause()")
        assert killed.stdout is not None
        child = int(killed.stdout.readline().split()[1])
        self.assertTrue(runs(child))
        killed.kill()
        # The child has the same output, which ends with the last of them.
        killed.communicate()
        until("the child ends", lambda: not runs(child))

    def test_sigterm_runs_the_finally_blocks_of_a_script(self) -> None:
        ended = script("""
exit_on_sigterm()
try:
    print('waits', flush=True)
    signal.pause()
finally:
    print('tidies up')
""")
        assert ended.stdout is not None
        self.assertEqual(ended.stdout.readline(), "waits\n")
        ended.terminate()
        self.assertEqual(ended.communicate()[0], "tidies up\n")
        self.assertEqual(ended.returncode, 143)


class SeveralPrograms(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.processes = Processes(self.folder)
        self.addCleanup(self.processes.kill)

    def serve(self, name: str) -> tuple[Process, int]:
        port = free_port()
        return self.processes.start(name, [sys.executable, "-c", SERVER, port], lambda: listens(port), cwd=self.folder), port

    def test_a_started_server_listens_and_a_stopped_one_does_not(self) -> None:
        (first, port), (_, other) = self.serve("first"), self.serve("second")
        self.assertTrue(listens(port) and listens(other))
        self.processes.end(first)
        self.assertTrue(not listens(port) and listens(other))
        self.processes.stop()
        self.assertFalse(listens(other))
        self.assertEqual(self.processes.running, [])

    def test_the_last_program_is_stopped_first(self) -> None:
        order = self.folder / "order"
        for name in ("first", "second"):
            ready = self.folder / name
            ends = f"trap 'echo {name} >>{order}; kill $!; exit' TERM; sleep 1000 & touch {ready}; wait"
            self.processes.start(name, ["sh", "-c", ends], ready.exists)
        self.processes.stop()
        self.assertEqual(order.read_text().split(), ["second", "first"])

    def test_a_program_that_ends_early_ends_the_script_with_its_output(self) -> None:
        _, port = self.serve("first")
        with self.assertRaisesRegex(SystemExit, "broken does not start: no such file"):
            self.processes.start("broken", ["sh", "-c", "echo no such file >&2; exit 1"], lambda: False)
        self.assertFalse(listens(port), "the other programs have ended")

    def test_a_program_that_is_never_ready_ends_the_script(self) -> None:
        self.processes.patience = 0
        with self.assertRaisesRegex(SystemExit, "slow does not start"):
            self.processes.start("slow", ["sleep", "1000"], lambda: False)

    def test_a_port_that_another_program_holds_ends_the_script(self) -> None:
        process, port = self.serve("first")
        with self.assertRaisesRegex(SystemExit, "second cannot start"):
            self.processes.start("second", ["sleep", "1000"], lambda: listens(port))
        self.assertIsNotNone(process.returncode, "the other programs have ended")
        self.assertFalse((self.folder / "second.out").read_text())

    def test_a_program_that_has_ended_is_not_ready(self) -> None:
        seen = []

        def ready() -> bool:
            if not self.processes.running:
                return False
            seen.append(until("the program ends", lambda: self.processes.running[0].poll() is not None))
            return True

        with self.assertRaisesRegex(SystemExit, "second does not start: address in use"):
            self.processes.start("second", ["sh", "-c", "echo address in use; exit 1"], ready)
        self.assertTrue(seen)

    def test_a_program_without_a_condition_only_starts(self) -> None:
        process = self.processes.start("visitors", ["sleep", "1000"], None)
        self.assertIsNone(process.poll())

    def test_killed_programs_take_their_children_along(self) -> None:
        output = self.folder / "stubborn.out"
        self.processes.start("stubborn", ["sh", "-c", STUBBORN], lambda: output.read_text().endswith("\n"))
        child = int(output.read_text().split()[1])
        self.processes.kill()
        until("the child ends", lambda: not runs(child))

    def test_children_are_killed_if_the_caller_has_waited_for_their_program(self) -> None:
        output = self.folder / "parent.out"
        for end in (self.processes.kill, self.processes.stop):
            # It ends only after the start, which fails for a program that has ended.
            leave = self.folder / end.__name__
            leaves = f"trap '' TERM; sleep 1000 & echo child $!; until [ -e {leave} ]; do sleep 0.01; done; exit 3"
            process = self.processes.start("parent", ["sh", "-c", leaves], None)
            leave.touch()
            self.assertEqual(process.wait(), 3)
            child = int(output.read_text().split()[-1])
            self.assertTrue(runs(child))
            end()
            until("the child ends", lambda: not runs(child))

    def test_output_is_added_to_that_of_an_earlier_start(self) -> None:
        for word in ("one", "two"):
            ready = self.folder / word
            self.processes.start("same", ["sh", "-c", f"echo {word}; touch {ready}; exec sleep 1000"], ready.exists)
        self.assertEqual((self.folder / "same.out").read_text(), "one\ntwo\n")


class Messages(unittest.TestCase):
    def test_a_script_that_cannot_start_a_program_prints_why(self) -> None:
        failed = script("start('/nowhere/bywash')")
        output, errors = failed.communicate()
        self.assertEqual((failed.returncode, output), (1, ""))
        self.assertIn("/nowhere/bywash is missing", errors)

"""Tests of turns, tasks, exceptions and statistics. A test that takes a minute has failed."""

import gc
import os
import pathlib
import pickle
import signal
import subprocess
import sys
import threading
import time
import traceback
import unittest
from concurrent.futures import CancelledError

import bywash_levels
from bywash_levels import (
    Closed,
    Level,
    Percentile,
    Pool,
    QueueFull,
    Ratio,
    Refused,
    TimedOut,
    UnknownLevel,
    Verdict,
)

STUCK = 60.0
TWO = {"high": Level(max_threads=4), "low": Level()}


def until(what):
    """Wait until `what` returns a true value."""
    end = time.monotonic() + STUCK
    while not what():
        if time.monotonic() > end:
            raise AssertionError("stuck")
        os.sched_yield()


def in_thread(function):
    """Run `function` in a thread.

    Return a function that waits for the thread, and returns its result or raises its exception.
    """
    result = []

    def run():
        try:
            result.append(function())
        except BaseException as error:
            result.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()

    def joined():
        thread.join(STUCK)
        assert result, "stuck"
        return result[0]

    return joined


class Turns(unittest.TestCase):
    def test_a_request_has_its_turn_and_is_counted(self):
        with Pool(2, TWO) as pool:
            with pool.request("high") as request:
                self.assertEqual(request.level, "high")
                stats = pool.stats()
                self.assertEqual((stats.levels["high"].running, stats.levels["high"].threads), (1, 1))
                self.assertIsNone(stats.goal)
            high = pool.stats().levels["high"]
            self.assertEqual((high.name, high.answered, high.failed, high.running), ("high", 1, 0, 0))
            self.assertGreater(high.p99, 0)
            self.assertGreater(high.share, 0.99)

    def test_who_gets_no_turn_is_told_why(self):
        with Pool(1, {"low": Level(queue=1)}) as pool:
            with pool.request("low"):
                with self.assertRaisesRegex(TimedOut, "no turn came"):
                    pool.request("low", timeout=0)
                with self.assertRaises(TimedOut):
                    in_thread_raises(lambda: pool.request("low", timeout=0.001))
                with self.assertRaisesRegex(UnknownLevel, "no level `lwo`; there is low"):
                    pool.request("lwo")
                future = pool.submit("low", lambda request: "was run")
                with self.assertRaises(QueueFull):
                    pool.request("low")
                with self.assertRaises(QueueFull):
                    pool.submit("low", lambda request: None)
                for wrong in (-1, float("nan")):
                    with self.assertRaises(ValueError):
                        pool.request("low", timeout=wrong)
            self.assertEqual(future.result(STUCK), "was run")
            low = pool.stats().levels["low"]
            self.assertEqual((low.left, low.refused), (2, 2))
            pool.request("low", timeout=float("inf")).end()
            pool.request("low", timeout=1e300).end()
        for kind in (TimedOut, QueueFull, UnknownLevel, Closed):
            self.assertTrue(issubclass(kind, Refused))
        self.assertIsInstance(pickle.loads(pickle.dumps(Closed("so"))), Closed)

    def test_who_waits_gets_the_next_turn(self):
        with Pool(1, TWO) as pool:
            request = pool.request("low")
            waits = in_thread(lambda: pool.request("low").end())
            until(lambda: pool.stats().levels["low"].waiting == 1)
            request.end()
            request.end()
            self.assertIsNone(waits())
            with self.assertRaisesRegex(RuntimeError, "has ended"):
                request.map(len, [])

    def test_a_request_that_is_forgotten_ends(self):
        with Pool(1, TWO) as pool:
            request = pool.request("low")
            del request
            gc.collect()
            pool.request("low", timeout=STUCK).end()

    def test_the_main_thread_is_interrupted_while_it_waits(self):
        # A process that was started in the background ignores it.
        self.addCleanup(signal.signal, signal.SIGINT, signal.getsignal(signal.SIGINT))
        signal.signal(signal.SIGINT, signal.default_int_handler)
        with Pool(1, TWO) as pool, pool.request("high"):
            def interrupt():
                until(lambda: pool.stats().levels["low"].waiting == 1)
                os.kill(os.getpid(), signal.SIGINT)

            interrupted = in_thread(interrupt)
            with self.assertRaises(KeyboardInterrupt):
                pool.request("low", timeout=STUCK)
            interrupted()
            low = pool.stats().levels["low"]
            self.assertEqual((low.waiting, low.left), (0, 1))

    def test_a_closed_pool_turns_out_who_waits(self):
        pool = Pool(1, TWO)
        request = pool.request("high")
        waits = in_thread(lambda: pool.request("low"))
        until(lambda: pool.stats().levels["low"].waiting == 1)
        future = pool.submit("high", lambda request: None)
        pool.close(wait=False)
        self.assertIsInstance(waits(), Closed)
        self.assertIsInstance(future.exception(STUCK), Closed)
        with self.assertRaises(Closed):
            pool.request("high")
        with self.assertRaises(Closed):
            pool.submit("high", lambda request: None)
        self.assertEqual(request.map(len, ["who", "has", "begun"]), [3, 3, 5])
        request.end()
        pool.close()

    @unittest.skipUnless(hasattr(os, "fork"), "no fork here")
    def test_a_child_cannot_use_its_parents_pool(self):
        with Pool(2, TWO) as pool, pool.request("high") as request:
            child = os.fork()
            if child == 0:
                # Use no assertion: the test runner would report its exception twice.
                passed = 0
                for call in (lambda: pool.request("low"), lambda: request.map(len, []), pool.stats, pool.close):
                    try:
                        call()
                    except Closed:
                        passed += 1
                del pool, request
                gc.collect()
                os._exit(0 if passed == 4 else 1)
            self.assertEqual(os.waitpid(child, 0)[1], 0)
            self.assertEqual(request.map(len, ["a"]), [1])


def in_thread_raises(function):
    result = in_thread(function)()
    if isinstance(result, BaseException):
        raise result
    return result


class Tasks(unittest.TestCase):
    def test_a_map_is_in_order_and_every_number_comes_once(self):
        with Pool(3, TWO) as pool:
            for level in ("high", "low"):
                with pool.request(level) as request:
                    self.assertEqual(request.map(str, range(500)), [str(i) for i in range(500)])
                    self.assertEqual(request.map(len, iter(["a", "bc"])), [1, 2])
                    self.assertEqual(request.map(len, []), [])
                    seen = []
                    request.parallel_for(500, seen.append)
                    self.assertEqual(sorted(seen), list(range(500)))
                    request.parallel_for(0, seen.append)
                    self.assertEqual(len(seen), 500)

    def test_an_exception_is_raised_as_it_is_when_the_others_have_ended(self):
        with Pool(2, TWO) as pool:
            ended = []
            mine = LookupError("the fourth")

            def task(i):
                if i == 3:
                    raise mine
                ended.append(i)

            with pool.request("high") as request:
                for call in (lambda: request.map(task, range(20)), lambda: request.parallel_for(20, task)):
                    try:
                        call()
                    except LookupError as error:
                        self.assertIs(error, mine)
                        lines = [frame.name for frame in traceback.extract_tb(error.__traceback__)]
                        self.assertEqual(lines[-1], "task")
                    else:
                        self.fail("nothing was raised")
                    self.assertEqual(sorted(ended), [i for i in range(20) if i != 3])
                    ended.clear()
                self.assertEqual(request.map(len, ["goes on"]), [7])
            pool.request("high").end()
            high = pool.stats().levels["high"]
            self.assertEqual((high.answered, high.failed), (2, 1))

    def test_of_several_exceptions_one_that_ends_the_program_comes_first(self):
        def task(i):
            raise KeyboardInterrupt if i == 7 else ValueError(i)

        with Pool(2, TWO) as pool, pool.request("high") as request:
            with self.assertRaises(KeyboardInterrupt):
                request.map(task, range(10))
            with self.assertRaises(KeyboardInterrupt):
                request.parallel_for(10, task)
            with self.assertRaises(ValueError) as caught:
                request.map(task, range(7))
            self.assertEqual(caught.exception.args, (0,))

    def test_a_block_that_raises_has_failed(self):
        with Pool(1, TWO) as pool:
            with self.assertRaises(LookupError):
                with pool.request("low"):
                    raise LookupError
            with pool.request("low") as request:
                request.fail()
            self.assertEqual(pool.stats().levels["low"].failed, 2)

    def test_items_that_raise_or_are_none_run_nothing(self):
        def items():
            yield 1
            raise LookupError

        called = []
        with Pool(1, TWO) as pool, pool.request("low") as request:
            with self.assertRaises(LookupError):
                request.map(called.append, items())
            with self.assertRaises(TypeError):
                request.map(called.append, 5)
            with self.assertRaises(TypeError):
                request.map(None, [1])
            with self.assertRaises((OverflowError, TypeError)):
                request.parallel_for(-1, called.append)
        self.assertEqual(called, [])

    def test_a_task_cannot_use_its_request(self):
        with Pool(2, TWO) as pool, pool.request("high") as request:
            for call in (lambda _: request.map(len, []), lambda _: request.end(), lambda _: request.fail()):
                with self.assertRaisesRegex(RuntimeError, "already"):
                    request.map(call, [1, 2, 3])

    def test_many_at_once(self):
        with Pool(3, TWO) as pool:
            def client(number):
                for i in range(30):
                    with pool.request("high" if (number + i) % 2 else "low") as request:
                        assert request.map(lambda x: x * x, range(6)) == [0, 1, 4, 9, 16, 25]

            clients = [in_thread(lambda number=number: client(number)) for number in range(8)]
            futures = [pool.submit("low", lambda request, n: sum(request.map(int, range(n))), n) for n in range(50)]
            self.assertEqual([future.result(STUCK) for future in futures], [n * (n - 1) // 2 for n in range(50)])
            self.assertEqual([client() for client in clients], [None] * 8)
            until(lambda: sum(level.answered for level in pool.stats().levels.values()) == 8 * 30 + 50)


class Submitted(unittest.TestCase):
    def test_arguments_results_and_exceptions_go_through_the_future(self):
        def fn(request, base, *, power):
            if power < 0:
                raise ArithmeticError("no")
            return request.level, threading.current_thread() is threading.main_thread(), base**power

        with Pool(2, TWO) as pool:
            self.assertEqual(pool.submit("high", fn, 3, power=2).result(STUCK), ("high", False, 9))
            with self.assertRaisesRegex(ArithmeticError, "no"):
                pool.submit("low", fn, 3, power=-1).result(STUCK)
            until(lambda: pool.stats().levels["low"].failed == 1)

    def test_a_request_is_over_with_its_function(self):
        with Pool(2, TWO) as pool:
            def fn(request):
                with self.assertRaisesRegex(RuntimeError, "function"):
                    request.end()
                return request

            request = pool.submit("low", fn).result(STUCK)
            until(lambda: pool.stats().levels["low"].answered == 1)
            with self.assertRaisesRegex(RuntimeError, "has ended"):
                request.map(len, [])

    def test_a_function_that_returns_while_its_request_is_used_is_waited_for(self):
        with Pool(1, TWO) as pool:
            begun, may_end, users = threading.Event(), threading.Event(), []

            def task(_):
                begun.set()
                assert may_end.wait(STUCK)
                return "done"

            def fn(request):
                users.append(in_thread(lambda: request.map(task, [1])))
                assert begun.wait(STUCK)

            future = pool.submit("low", fn)
            future.result(STUCK)
            self.assertEqual(pool.stats().levels["low"].answered, 0)
            may_end.set()
            self.assertEqual(users[0](), ["done"])
            until(lambda: pool.stats().levels["low"].answered == 1)

    def test_it_can_be_cancelled_until_its_turn(self):
        with Pool(1, TWO) as pool:
            with pool.request("high"):
                future = pool.submit("low", lambda request: self.fail("it was cancelled"))
                self.assertTrue(future.cancel())
            with self.assertRaises(CancelledError):
                future.result(STUCK)
            until(lambda: pool.stats().levels["low"].answered == 1)


class Settings(unittest.TestCase):
    def test_settings_that_contradict_themselves_are_value_errors(self):
        for words, make in [
            ("one thread", lambda: Pool(0, TWO)),
            ("one level", lambda: Pool(1, {})),
            ("too many", lambda: Pool(1_000_000, TWO)),
            ("below 0 or too large", lambda: Pool(-1, TWO)),
            ("below 0 or too large", lambda: Pool(1, {"a": Level(queue=-1)})),
            ("least", lambda: Pool(1, {"a": Level(max_threads=0)})),
            ("least", lambda: Pool(4, {"a": Level(max_threads=2, min_threads=3)})),
            ("weight", lambda: Pool(1, {"a": Level(weight=0)})),
            ("floors", lambda: Pool(1, {"a": Level(floor=1.5)})),
            ("`lwo`; there is high, low", lambda: Pool(4, TWO, goal=Ratio("high", "lwo", 0.5))),
            ("with itself", lambda: Pool(4, TWO, goal=Ratio("low", "low", 0.5))),
            ("ratio", lambda: Pool(4, TWO, goal=Ratio("high", "low", 2))),
            ("share", lambda: Pool(4, TWO, goal=Percentile("high", 0.1, 1.0))),
            ("time", lambda: Pool(4, TWO, goal=Percentile("high", 0.95, 0))),
            ("not a valid time", lambda: Pool(4, TWO, goal=Percentile("high", 0.95, -1))),
            ("the name of a level is empty", lambda: Pool(1, {"": Level()})),
            ("parity", lambda: Pool(4, TWO, goal=Ratio("high", "low", 0.5), parity=2)),
        ]:
            with self.subTest(words), self.assertRaisesRegex(ValueError, words):
                make()
        with self.assertRaises(TypeError):
            Pool(1, TWO, goal=0.5)

    def test_a_goal_is_measured_and_judged(self):
        for goal in (Ratio("high", "low", 0.5), Percentile("high", 0.95, 0.001)):
            with self.subTest(goal), Pool(None, TWO, goal=goal) as pool:
                first = pool.stats().goal
                self.assertEqual((first.verdict, first.measured), (Verdict.SETTLING, None))
                over = threading.Event()

                def client(level):
                    while not over.is_set():
                        with pool.request(level) as request:
                            request.map(lambda _: sum(range(2000)), range(4))

                clients = [in_thread(lambda level=level: client(level)) for level in ("high", "low") * 2]
                try:
                    until(lambda: pool.stats().goal.measured is not None)
                finally:
                    over.set()
                self.assertEqual([client() for client in clients], [None] * 4)
                self.assertIsInstance(pool.stats().goal.verdict, Verdict)

    def test_in_parity_places_are_scarce(self):
        with Pool(1, {"all": Level(max_threads=3)}, parity=2) as pool:
            with pool.request("all"), pool.request("all"), self.assertRaises(TimedOut):
                pool.request("all", timeout=0)


class Ends(unittest.TestCase):
    """Tests of how a program with a pool ends, each in an interpreter of its own."""

    def ends(self, code):
        # Import the installed package, not the sources next to the tests.
        elsewhere = pathlib.Path(bywash_levels.__file__).resolve().parent.parent
        program = "import threading, time\nfrom bywash_levels import *\n" + code
        done = subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, timeout=STUCK, cwd=elsewhere
        )
        self.assertEqual((done.returncode, done.stderr), (0, ""), done)
        return done.stdout

    def test_a_submitted_function_that_has_begun_is_waited_for(self):
        said = self.ends(
            "begun = threading.Event()\n"
            "def fn(request):\n"
            "    begun.set()\n"
            "    request.map(time.sleep, [0.05, 0.05])\n"
            "    print('to its end')\n"
            "pool = Pool(2, {'low': Level()})\n"
            "pool.submit('low', fn)\n"
            "begun.wait()\n"
        )
        self.assertEqual(said, "to its end\n")

    def test_a_close_that_would_wait_for_its_own_thread_raises(self):
        for code in (
            "def close(*_):\n"
            "    pool.close()\n"
            "pool.submit('high', close).result()\n",
            "with pool.request('high') as request:\n"
            "    request.map(lambda _: pool.close(), [1])\n",
            "def in_each(request):\n"
            "    request.parallel_for(9, lambda _: pool.close())\n"
            "pool.submit('high', in_each).result()\n",
            "with pool:\n"
            "    kept = pool.request('low')\n",
            # Another thread runs tasks in a request that this thread has begun.
            "request = pool.request('high')\n"
            "failed = []\n"
            "def use():\n"
            "    try:\n"
            "        request.map(lambda _: pool.close(), [1, 2])\n"
            "    except RuntimeError as error:\n"
            "        failed.append(error)\n"
            "user = threading.Thread(target=use)\n"
            "user.start()\n"
            "user.join()\n"
            "raise failed[0]\n",
        ):
            with self.subTest(code):
                self.ends(
                    "pool = Pool(2, {'high': Level(max_threads=2), 'low': Level()})\n"
                    "try:\n"
                    + "".join(f"    {line}\n" for line in code.splitlines())
                    + "except RuntimeError as error:\n"
                    "    assert 'would wait for itself' in str(error), error\n"
                    "else:\n"
                    "    raise AssertionError('nothing was raised')\n"
                    "try:\n"
                    "    pool.request('low')\n"
                    "except Closed:\n"
                    "    pass\n"
                )

    def test_a_close_waits_for_the_requests_of_other_threads(self):
        said = self.ends(
            "pool = Pool(2, {'low': Level()})\n"
            "request = pool.request('low')\n"
            "begun = threading.Event()\n"
            "def use():\n"
            "    request.map(len, ['a'])\n"
            "    begun.set()\n"
            "    time.sleep(0.05)\n"
            "    print('to its end')\n"
            "    request.end()\n"
            "threading.Thread(target=use).start()\n"
            "begun.wait()\n"
            "pool.close()\n"
            "print('closed')\n"
        )
        self.assertEqual(said, "to its end\nclosed\n")

    def test_a_request_that_is_kept_or_at_work_in_a_daemon_thread_holds_nobody_up(self):
        said = self.ends(
            "pool = Pool(2, {'high': Level(max_threads=2)})\n"
            "kept = pool.request('high')\n"
            "begun = threading.Event()\n"
            "def work():\n"
            "    with pool.request('high') as request:\n"
            "        request.map(lambda i: (begun.set(), sum(range(1000))), range(10**6))\n"
            "threading.Thread(target=work, daemon=True).start()\n"
            "begun.wait()\n"
            "print('ends')\n"
        )
        self.assertEqual(said, "ends\n")


if __name__ == "__main__":
    unittest.main()

"""Tests of what runs in parallel and what takes turns.

They count the threads inside a call, and use no clock. The interpreter is set never to take its
lock away from a thread. A second thread therefore gets inside only if the first has released the
lock itself.
"""

import hashlib
import sys
import threading
import time
import unittest
import zlib

from bywash_levels import Level, Pool

STUCK = 60.0
BUFFER = bytes(8 << 20)


class Inside:
    """A counter of the threads that are inside `call` now, with its maximum."""

    def __init__(self, call):
        self.call = call
        self.now = 0
        self.most = 0
        self.threads = set()

    def __call__(self, _=None):
        self.now += 1
        self.most = max(self.most, self.now)
        self.threads.add(threading.get_ident())
        self.call()
        self.now -= 1


class SideBySide(unittest.TestCase):
    def setUp(self):
        self.addCleanup(sys.setswitchinterval, sys.getswitchinterval())
        sys.setswitchinterval(1e6)

    def most_inside(self, call, enough):
        """Return the maximum number of threads inside `call`.

        Repeat the call until the maximum reaches `enough`, or until a limit of rounds is
        reached.
        """
        inside = Inside(call)
        end = time.monotonic() + STUCK
        with Pool(2, {"high": Level(max_threads=2)}) as pool, pool.request("high") as request:
            for _ in range(1000):
                request.map(inside, range(8))
                if inside.most >= enough or time.monotonic() > end:
                    break
        self.assertEqual(inside.now, 0)
        return inside.most

    def test_hashing_large_buffers_does(self):
        self.assertEqual(self.most_inside(lambda: hashlib.sha256(BUFFER), 2), 2)

    def test_compressing_large_buffers_does(self):
        self.assertEqual(self.most_inside(lambda: zlib.compress(BUFFER, 1), 2), 2)

    def test_a_loop_in_python_does_not(self):
        self.assertEqual(self.most_inside(lambda: sum(i * i for i in range(500)), 2), 1)

    def test_no_more_than_the_level_may(self):
        inside = Inside(lambda: hashlib.sha256(BUFFER[: 1 << 20]))
        with Pool(3, {"low": Level()}) as pool, pool.request("low") as request:
            request.map(inside, range(50))
        self.assertEqual((inside.most, inside.threads), (1, {threading.get_ident()}))


if __name__ == "__main__":
    unittest.main()

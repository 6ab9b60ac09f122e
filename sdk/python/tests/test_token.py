"""Tests of a token on a clock that the test advances. `test_conformance.py` tests its states."""

import copy
import pickle
import random
import threading
import unittest

from bywash import Class, Controller, Terminated, checkpoint, current

from .clock import Clock


class Tokens(unittest.TestCase):
    def setUp(self):
        self.clock = Clock()
        self.controller = Controller(Class("search", 1.0, 9.0), clock=self.clock)

    def stats(self):
        return self.controller.stats()["search"]

    def test_it_looks_again_at_the_end_of_the_interval_or_at_its_deadline(self):
        token = self.controller.begin("search")
        self.clock.go(5)
        token.checkpoint()
        self.assertEqual(token.not_before, 1009.0)
        late = self.controller.begin("search")
        self.assertEqual(late.not_before, 1010.0, "the end of the interval, before its deadline")

    def test_a_deadline_is_not_before_the_begin(self):
        self.assertEqual(self.controller.begin("search", -5.0).deadline, 1000.0)

    def test_a_call_says_whether_it_has_ended_the_request(self):
        left, deferred, ended, settled, overdue = [self.controller.begin("search") for _ in range(5)]
        self.assertEqual((left.leave(), left.leave(), left.settle()), (True, False, False))
        deferred.cancel_termination()
        ended.end()
        self.assertEqual((deferred.leave(), ended.leave(), settled.settle(), settled.leave()), (False, False, True, True))
        self.assertFalse(overdue.look())
        self.clock.go(9)
        self.assertTrue(overdue.is_terminated)
        self.assertEqual((overdue.look(), overdue.look(), overdue.reason), (True, False, "ran_too_long"))

    def test_code_that_works_for_no_request_passes_its_checkpoints(self):
        self.assertIsNone(current())
        checkpoint()

    def test_no_error_handling_of_errors_swallows_it(self):
        self.assertFalse(issubclass(Terminated, Exception))

    def test_it_can_be_copied_and_sent_to_another_process(self):
        terminated = Terminated("search", "deadline", 10.0)
        for made in (copy.copy(terminated), copy.deepcopy(terminated), pickle.loads(pickle.dumps(terminated))):
            self.assertEqual(type(made), Terminated)
            self.assertEqual((made.name, made.reason, made.retry_after), ("search", "deadline", 10.0))
            self.assertEqual(str(made), "class search: deadline")

    def test_a_checkpoint_is_never_late_whatever_the_loads(self):
        """Compare the checkpoints with a reference that reads the threshold at each step.

        The loads are random; the seed is 7.
        """
        chance = random.Random(7)
        running = []
        for _ in range(3000):
            self.clock.go(chance.choice([0.01, 0.3, 2.0]))
            for _ in range(chance.randrange(14)):
                self.controller.arrived("search")
            if chance.random() < 0.1:
                self.controller.lost("search")
            running.append(self.controller.begin("search", chance.choice([None, None, 3.0])))
            for token in list(running):
                is_due = self.clock.now >= token.deadline
                try:
                    token.checkpoint()
                    self.assertFalse(is_due)
                    if chance.random() < 0.3:
                        token.end()
                        running.remove(token)
                except Terminated:
                    self.assertTrue(is_due)
                    running.remove(token)
        self.assertGreater(self.stats().terminated, 30)
        self.assertGreater(self.stats().deadline, 30)

    def test_threads_agree_on_what_became_of_each(self):
        self.clock.go(1)

        def work():
            for turn in range(300):
                token = self.controller.begin("search", 0.0 if turn % 3 == 0 else None)
                token.look()
                token.leave() if turn % 3 == 1 else token.settle()
                token.end()

        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        stats = self.stats()
        self.assertEqual((stats.arrived, stats.running), (2400, 0))
        self.assertEqual((stats.deadline, stats.client_left), (800, 800))

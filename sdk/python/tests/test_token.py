"""Tests of the states of a token, on a clock that the test advances."""

import copy
import pickle
import random
import threading
import unittest
from math import inf

from bywash import Class, Controller, Terminated, checkpoint, current

from .clock import Clock


class Tokens(unittest.TestCase):
    def setUp(self):
        self.clock = Clock()
        self.controller = Controller(Class("search", 1.0, 9.0), clock=self.clock)

    def stats(self):
        return self.controller.stats()["search"]

    def lose_all(self):
        """Make the threshold fall to `run_min` from the next interval on."""
        for _ in range(100):
            self.controller.arrived("search")
            self.controller.lost("search")

    def ends(self, token, reason):
        with self.assertRaises(Terminated) as caught:
            token.checkpoint()
        self.assertEqual(caught.exception.reason, reason)
        self.assertEqual(token.reason, reason)
        self.assertTrue(token.is_terminated)
        self.assertEqual(token.left(), 0.0)

    def test_a_checkpoint_ends_who_has_run_for_as_long_as_it_may(self):
        token = self.controller.begin("search")
        self.assertEqual((token.deadline, token.left()), (1009.0, 9.0))
        self.clock.go(8.999)
        token.checkpoint()
        self.assertFalse(token.is_terminated)
        self.clock.go(0.001)
        self.ends(token, "ran_too_long")
        self.ends(token, "ran_too_long")
        self.assertEqual((self.stats().lost, self.stats().terminated), (1, 1), "once")

    def test_the_threshold_may_fall_while_it_runs(self):
        token = self.controller.begin("search")
        self.lose_all()
        self.clock.go(5)
        token.checkpoint()
        self.assertEqual(token.not_before, 1009.0)
        late = self.controller.begin("search")
        self.assertEqual(late.not_before, 1010.0, "the end of the interval, before its deadline")
        self.clock.go(5)
        self.assertEqual(late.deadline, 1006.0)
        self.ends(late, "ran_too_long")

    def test_the_threshold_may_rise_while_it_runs(self):
        self.lose_all()
        self.clock.go(19.5)
        token = self.controller.begin("search")
        self.assertEqual(token.deadline, 1020.5)
        self.clock.go(1)
        self.assertFalse(token.look())
        self.assertEqual(token.deadline, 1028.5)

    def test_its_own_deadline_can_only_shorten(self):
        self.assertEqual(self.controller.begin("search", 60.0).deadline, 1009.0)
        self.assertEqual(self.controller.begin("search", 0.5).deadline, 1000.5)
        self.assertEqual(self.controller.begin("search", -5.0).deadline, 1000.0, "not below zero")

    def test_deadlines_of_their_own_do_not_lower_the_threshold_of_others(self):
        for _ in range(100):
            self.ends(self.controller.begin("search", 0.0), "deadline")
        self.clock.go(10)
        self.assertEqual(self.controller.threshold("search"), 9.0)
        self.assertEqual((self.stats().p, self.stats().lost, self.stats().deadline), (0.0, 0, 100))

    def test_a_deadline_counts_from_run_min_on(self):
        tokens = [self.controller.begin("search", left) for left in (0.999, 1.0, 5.0)]
        self.clock.go(0.999)
        self.ends(tokens[0], "deadline")
        self.assertEqual((self.stats().deadline, self.stats().lost), (1, 0))
        self.clock.go(4.001)
        for token in tokens[1:]:
            self.ends(token, "deadline")
        self.assertEqual((self.stats().deadline, self.stats().lost, self.stats().terminated), (3, 2, 0))
        self.clock.go(5)
        self.assertEqual((self.stats().p, self.controller.threshold("search")), (1.0, 1.0), "of two that arrived")

    def test_who_comes_and_goes_within_an_interval_did_not_arrive_in_it(self):
        for _ in range(90):
            self.controller.begin("search").leave()
            self.ends(self.controller.begin("search", 0.0), "deadline")
        settled = self.controller.begin("search")
        settled.settle()
        settled.leave()
        for _ in range(10):
            self.controller.arrived("search")
        self.controller.lost("search")
        self.assertEqual((self.stats().arrived, self.stats().lost), (191, 1), "all who came")
        self.clock.go(10)
        self.assertEqual(self.stats().p, 0.1)

    def test_who_came_in_an_earlier_interval_arrived_in_it(self):
        early = [self.controller.begin("search") for _ in range(5)]
        self.controller.lost("search")
        self.clock.go(10)
        self.assertEqual(self.stats().p, 0.2)
        for token in early:
            self.assertTrue(token.leave())
        for _ in range(10):
            self.controller.arrived("search")
        self.controller.lost("search")
        self.clock.go(10)
        self.assertEqual(self.stats().p, 0.1)
        # Its departure is the first event of a new interval.
        late = self.controller.begin("search")
        self.controller.arrived("search")
        self.controller.lost("search")
        self.clock.go(10)
        late.leave()
        self.assertEqual(self.stats().p, 0.5)

    def test_who_leaves_in_the_last_tenth_of_his_deadline_has_come_to_it(self):
        for left, after, reason, lost in [
            (4.0, 3.59, "client_left", 0),
            (4.0, 3.61, "deadline", 1),
            (4.0, 4.5, "deadline", 1),
            (0.5, 0.46, "deadline", 0),
            (None, 8.9, "client_left", 0),
        ]:
            with self.subTest(left=left, after=after):
                before = self.stats()
                token = self.controller.begin("search", left)
                self.clock.go(after)
                self.assertTrue(token.leave())
                self.ends(token, reason)
                self.assertEqual(self.stats().lost - before.lost, lost)
                self.assertEqual(getattr(self.stats(), reason) - getattr(before, reason), 1)

    def test_to_ask_whether_it_is_over_tells_nobody(self):
        token = self.controller.begin("search")
        self.clock.go(9)
        self.assertTrue(token.is_terminated)
        self.assertEqual((self.stats().terminated, self.stats().lost, token.reason), (0, 0, None))
        self.assertTrue(token.look(), "who cancels it is still to do so")
        self.assertEqual((self.stats().terminated, token.reason), (1, "ran_too_long"))

    def test_whoever_left_does_not_count(self):
        for _ in range(100):
            token = self.controller.begin("search")
            self.assertTrue(token.leave())
            self.assertFalse(token.leave())
            self.ends(token, "client_left")
        self.clock.go(10)
        self.assertEqual(self.controller.threshold("search"), 9.0)
        self.assertEqual(self.stats().client_left, 100)

    def test_whoever_is_terminated_counts(self):
        tokens = [self.controller.begin("search") for _ in range(10)]
        self.clock.go(9)
        self.assertTrue(all(token.look() for token in tokens))
        self.clock.go(1)
        self.assertEqual(self.controller.threshold("search"), 1.0)

    def test_after_the_first_byte_only_a_client_who_leaves_ends_it(self):
        token = self.controller.begin("search", 0.5)
        self.assertTrue(token.settle())
        self.clock.go(100)
        token.checkpoint()
        self.assertEqual(token.deadline, inf)
        token.leave()
        self.ends(token, "client_left")

    def test_who_cancels_termination_is_not_terminated_by_anything(self):
        token = self.controller.begin("search", 0.5)
        token.cancel_termination()
        token.cancel_termination()
        self.clock.go(100)
        self.assertFalse(token.leave())
        token.checkpoint()
        self.assertFalse(token.is_terminated)
        self.assertEqual((self.stats().deferred, self.stats().lost), (1, 0))

    def test_too_late_to_cancel_termination(self):
        token = self.controller.begin("search")
        self.clock.go(9)
        with self.assertRaises(Terminated):
            token.cancel_termination()
        self.assertEqual(self.stats().deferred, 0)

    def test_whoever_has_ended_is_not_terminated_and_ends_once(self):
        token, _ = self.controller.begin("search"), self.controller.begin("search")
        self.assertEqual(self.stats().running, 2)
        token.end()
        token.end()
        self.clock.go(100)
        token.checkpoint()
        self.assertFalse(token.leave())
        self.assertEqual(self.stats().running, 1)

    def test_what_has_come_counts_even_if_it_was_overdue_in_the_same_moment(self):
        token = self.controller.begin("search")
        self.clock.go(9)
        self.assertTrue(token.settle())
        token.checkpoint()
        self.assertEqual(self.stats().lost, 0)

    def test_who_still_works_for_one_that_is_over_is_told(self):
        token = self.controller.begin("search")
        token.leave()
        token.end()
        self.ends(token, "client_left")
        self.assertEqual(self.stats().running, 0)

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
        """Compare with a reference that asks the controller at each step.

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

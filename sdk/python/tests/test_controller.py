"""Tests of the thresholds and the settings. `test_conformance.py` tests the controller's rules."""

import csv
import threading
import unittest

from bywash import Class, Controller, SettingError

from .clock import Clock
from .conformance import GOLDEN

PATIENCE = 60


def search(**settings):
    return Class(**{"name": "search", "run_min": 1.0, "run_max": 9.0, **settings})


class Thresholds(unittest.TestCase):

    def test_every_golden_threshold_is_the_engines(self):
        rows = 0
        for row in csv.DictReader(GOLDEN.read_text().splitlines()):
            clock, arrived, lost = Clock(), int(row["arrived"]), int(row["lost"])
            settings = Class(
                "golden",
                int(row["lb_ms"]) / 1000,
                int(row["ub_ms"]) / 1000,
                float(row["alpha"]),
                float(row["lw"]),
                float(row["hw"]),
            )
            controller = Controller(settings, clock=clock)
            # Counting millions would only be slow: the same fraction of fewer gives the same
            # threshold.
            if arrived < 10_000:
                for _ in range(arrived):
                    controller.arrived("golden")
                for _ in range(lost):
                    controller.lost("golden")
                clock.go(10.0)
                threshold = controller.threshold("golden")
            else:
                threshold = settings.granted(lost / arrived)
            self.assertAlmostEqual(threshold, int(row["threshold_ns"]) / 1e9, delta=1e-6, msg=str(row))
            rows += 1
        self.assertEqual(rows, 105)

    def test_a_signal_handler_may_ask_for_numbers_although_its_thread_holds_the_lock(self):
        """Check a signal handler that runs while its thread holds the lock.

        Here the handler runs in the clock, which is read with the lock held.
        """
        stats, signals = [], []

        def clock():
            if signals:
                signals.pop()
                stats.append(controller.stats()["search"])
            return 1000.0

        controller = Controller(search(), clock=clock)
        signals.append("HUP")
        thread = threading.Thread(target=controller.threshold, args=("search",), daemon=True)
        thread.start()
        thread.join(PATIENCE)
        self.assertFalse(thread.is_alive())
        self.assertEqual([each.threshold for each in stats], [9.0])

    def test_the_threshold_never_rises_with_the_loss_and_stays_within_its_bounds(self):
        thresholds = [search().granted(lost / 1000) for lost in range(1001)]
        self.assertEqual(thresholds, sorted(thresholds, reverse=True))
        self.assertEqual((thresholds[0], thresholds[-1]), (9.0, 1.0))


class Settings(unittest.TestCase):
    def refused(self, *words, **settings):
        with self.assertRaises(SettingError) as caught:
            search(**settings)
        for word in words:
            self.assertIn(word, str(caught.exception))

    def test_what_makes_no_sense_is_refused_with_the_field_and_both_values(self):
        self.refused("run_min 8", "run_max 2", run_min=8, run_max=2)
        self.refused("low 0.15", "high 0.15", low=0.15, high=0.15)
        self.refused("run_min is -1", "0.001", run_min=-1)
        self.refused("run_max is nan", "3600", run_max=float("nan"))
        self.refused("alpha is nan", alpha=float("nan"))
        self.refused("alpha is -4", "0", alpha=-4)
        self.refused("high is 1.5", "1", high=1.5)
        self.refused("interval is 0", "0.1", interval=0)
        self.refused("retry_after is inf", retry_after=float("inf"))
        self.refused("run_max is '30s'", run_max="30s")
        self.refused("name is ''", name="")

    def test_a_class_that_is_not_declared_is_an_error(self):
        controller = Controller(search())
        for ask in (controller.begin, controller.lost, controller.arrived, controller.threshold, controller.knows):
            with self.assertRaisesRegex(SettingError, "'page'.*search"):
                ask("page")
        with self.assertRaisesRegex(SettingError, "twice"):
            Controller(search(), search())


if __name__ == "__main__":
    unittest.main()

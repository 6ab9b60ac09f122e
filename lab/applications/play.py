"""Sends the visitors of a scenario to a URL, directly or through HAProxy or bywash."""

import os
import re
import tempfile
import threading
import time
import tomllib

from bywash_lab import lab_run
from bywash_lab.network import free_port, get, listens
from bywash_lab.places import ROOT

BYWASH = os.environ["BYWASH"]
CONNECTIONS = 4000  # HAProxy's limit; it needs two open files for each connection


class Visitors:
    """A scenario of lab/scenarios. A run may replace some of its tables."""

    def __init__(self, path):
        self.text = (ROOT / path).read_text()
        written = tomllib.loads(self.text)
        self.workers = written["servers"]["workers"]
        self.requests, self.work = of_session(written)

    def rho(self, requests_per_second):
        """Returns the offered load ρ at which visitors make `requests_per_second` requests a second."""
        return requests_per_second * self.work / self.requests / self.workers

    def variant(self, seconds, **tables):
        """Returns the text of the scenario with a duration of `seconds`, and with `tables` in place of its own tables."""
        text = re.sub(r'^duration = "\w+"', f'duration = "{seconds}s"', self.text, flags=re.M)
        for name, table in tables.items():
            text = re.sub(rf"^\[{name}\]\n(?:[^\[\n].*\n)*", "", text, flags=re.M)
            text += f"\n{table}\n"
        return text

    def start(self, url, text, rho, seed):
        """Starts a run of the scenario `text`. Returns the run, which `result` takes as its argument."""
        file = tempfile.NamedTemporaryFile("w", suffix=".toml")
        file.write(text)
        file.flush()
        # Real visitors have their own processors. Here the load generator has the highest priority.
        first = ["chrt", "--rr", "1"] if os.geteuid() == 0 else ["nice", "-n", "-10"]
        options = ["--rho", f"{rho:.6f}", "--seed", seed, "--own-addresses"]
        return lab_run.begin(file.name, url, *options, bywash=BYWASH, before=first), file

    def run(self, *arguments):
        """Runs a scenario to its end. Returns the result as parsed JSON. The arguments are those of `start`."""
        return result(self.start(*arguments))


def result(started):
    """Waits for the end of a run that `start` has started. Returns the result as parsed JSON."""
    process, file = started
    with file:
        return lab_run.result(process)


def within(distribution, millis):
    """Returns the share of a run's answers that took at most `millis` milliseconds, as the last point of the distribution up to
    that time gives it."""
    return max((share for ms, share in distribution if ms <= millis), default=0.0)


def of_session(written):
    """Returns the mean number of requests of a session, and its mean total service time in seconds."""
    classes = {one["name"]: one for one in written["class"]}
    visits = dict.fromkeys(classes, 0.0)
    for _ in range(2000):
        after = dict.fromkeys(classes, 0.0)
        after[written["session"]["start"]] = 1.0
        for name, one in classes.items():
            for other, chance in one.get("next", {}).items():
                after[other] += visits[name] * chance
        visits = after
    millis = {name: float(re.fullmatch(r"([\d.]+)ms", one["service"]["mean"])[1]) for name, one in classes.items()}
    return sum(visits.values()), sum(visits[name] * millis[name] / 1000 for name in classes)


def settle(url):
    """Waits until the application is fast again, so that no run begins with the backlog of an earlier run."""
    quick, end = 0, time.monotonic() + 90
    while quick < 3 and time.monotonic() < end:
        begun = time.monotonic()
        try:
            get(url)
            quick = quick + 1 if time.monotonic() - begun < 1 else 0
        except OSError:
            quick = 0
        time.sleep(0.2)


def haproxy(processes, url, maxconn, transactions):
    """Starts HAProxy with lab/peers/haproxy.cfg. Returns its process and URL.

    Requests have priority if their path begins with one of the prefixes in `transactions`, which are separated by spaces."""
    port = free_port()
    text = (ROOT / "lab/peers/haproxy.cfg").read_text()
    for name, value in {"CONNECTIONS": CONNECTIONS, "PORT": port, "TRANSACTION_PATHS": f"-m beg {transactions}",
                        "UPSTREAM": url.rsplit(":", 1)[1], "LIMIT": maxconn}.items():
        text = text.replace(f"@{name}@", str(value))
    file = processes.folder / "haproxy.cfg"
    file.write_text(text)
    process = processes.start("haproxy", ["haproxy", "-db", "-f", file], lambda: listens(port))
    return process, f"http://127.0.0.1:{port}"


class Limits:
    """Records the concurrency limit of a gateway each second, until `stop` is called."""

    def __init__(self, process):
        self.seen, self.stops = [], threading.Event()
        self.metrics = f"http://{process.args[process.args.index('--admin') + 1]}/metrics"
        threading.Thread(target=self.run, daemon=True).start()

    def run(self):
        while not self.stops.wait(1):
            try:
                limit = re.search(r"^bywash_limit ([0-9.]+)", get(self.metrics, timeout=5).decode(), re.M)
                self.seen.append(float(limit[1]))
            except OSError:
                self.seen.append(None)

    def stop(self):
        """Stops recording. Returns the limit of each second, `None` for a second in which the gateway did not answer."""
        self.stops.set()
        return self.seen


def bywash(processes, config):
    """Starts bywash with the configuration file `config` on free ports. Returns its process and URL."""
    port, admin = free_port(), free_port()
    command = [BYWASH, "run", "--config", config, "--listen", f"127.0.0.1:{port}", "--admin", f"127.0.0.1:{admin}"]
    process = processes.start("bywash", command, lambda: listens(port))
    return process, f"http://127.0.0.1:{port}"

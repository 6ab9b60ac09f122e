"""Plays visitors of a scenario against a URL, and what can stand in between: HAProxy or bywash."""

import json
import os
import re
import subprocess
import sys
import tempfile
import time
import tomllib
import urllib.request

import stack

BYWASH = os.environ["BYWASH"]
CONNECTIONS = 4000  # of HAProxy, which wants two open files for each


class Visitors:
    """A scenario of lab/scenarios, of which a run may differ in some tables."""

    def __init__(self, path):
        self.text = (stack.ROOT / path).read_text()
        written = tomllib.loads(self.text)
        self.workers = written["servers"]["workers"]
        self.requests, self.work = of_session(written)

    def rho(self, requests_per_second):
        """The ρ at which visitors ask for so much."""
        return requests_per_second * self.work / self.requests / self.workers

    def variant(self, seconds, **tables):
        """The text of a scenario for so long, with these tables in place of its own."""
        text = re.sub(r'^duration = "\w+"', f'duration = "{seconds}s"', self.text, flags=re.M)
        for name, table in tables.items():
            text = re.sub(rf"^\[{name}\]\n(?:[^\[\n].*\n)*", "", text, flags=re.M)
            text += f"\n{table}\n"
        return text

    def start(self, url, text, rho, seed):
        """Starts a run of this scenario; what `result` takes."""
        file = tempfile.NamedTemporaryFile("w", suffix=".toml")
        file.write(text)
        file.flush()
        # Visitors have processors of their own elsewhere. Here the load generator comes before all other processes.
        first = ["chrt", "--rr", "1"] if os.geteuid() == 0 else ["nice", "-n", "-10"]
        command = [*first, BYWASH, "lab", "run", file.name, "--target", url, "--rho", f"{rho:.6f}", "--seed", str(seed),
                   "--own-addresses", "--json"]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        return process, file

    def run(self, *arguments):
        """Plays a scenario to its end; its JSON."""
        return result(self.start(*arguments))


def result(started):
    """The JSON of a run that was started."""
    process, file = started
    out, words = process.communicate()
    file.close()
    if not out.startswith("{"):
        sys.exit(f"applications: lab run: {words[-2000:]}")
    return json.loads(out)


def within(distribution, millis):
    """The share of a run's answers that took no longer: that of the last point below."""
    return max((share for ms, share in distribution if ms <= millis), default=0.0)


def of_session(written):
    """Requests and seconds of service that a session comes to on average."""
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
    """Waits until the application answers at once again, so that no run begins with what another has left."""
    quick, end = 0, time.monotonic() + 90
    while quick < 3 and time.monotonic() < end:
        begun = time.monotonic()
        try:
            with urllib.request.urlopen(url, timeout=60) as answer:
                answer.read()
            quick = quick + 1 if time.monotonic() - begun < 1 else 0
        except OSError:
            quick = 0
        time.sleep(0.2)


def haproxy(processes, url, maxconn, transactions):
    """HAProxy in ordinary hands (lab/peers/haproxy.cfg), with these paths first; its process and URL."""
    port = stack.free_port()
    text = (stack.ROOT / "lab/peers/haproxy.cfg").read_text()
    for name, value in {"CONNECTIONS": CONNECTIONS, "PORT": port, "TRANSACT_PATHS": f"-m beg {transactions}",
                        "UPSTREAM": url.rsplit(":", 1)[1], "LIMIT": maxconn}.items():
        text = text.replace(f"@{name}@", str(value))
    file = processes.folder / "haproxy.cfg"
    file.write_text(text)
    process = processes.start("haproxy", ["haproxy", "-db", "-f", file], lambda: stack.listens(port))
    return process, f"http://127.0.0.1:{port}"


def bywash(processes, config):
    """bywash with this file, whose addresses are its own; its process and URL."""
    port, admin = stack.free_port(), stack.free_port()
    command = [BYWASH, "run", "--config", config, "--listen", f"127.0.0.1:{port}", "--admin", f"127.0.0.1:{admin}"]
    process = processes.start("bywash", command, lambda: stack.listens(port))
    return process, f"http://127.0.0.1:{port}"

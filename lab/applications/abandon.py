"""Measures WordPress while visitors abandon searches, with the stop daemon and without it.

Readers load the site to half of its knee. In addition, visitors search and leave after 300 ms, more often than the
database can search. The gateway only observes. The runs differ in one thing: whether the stop daemon cancels the queries of
clients that have left. WordPress has the files of examples/wordpress, set up as its README says."""

import argparse
import json
import os
import pathlib
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tools"))
import play
import stack
import wordpress
from bywash_lab.network import free_port
from bywash_lab.processes import Processes, exit_on_sigterm
from bywash_lab.reports import fail, table

WAYS = ["without", "with"]
SECOND = 1000.0  # ms: a page that takes longer is late
SEARCHERS = """
name = "searchers"
[servers]
workers = 1
[[class]]
name = "Search"
request = "GET /?s=word{1..20000}"
tier = "browsing"
utility = 1
service = { mean = "1000ms", shape = "constant" }
[session]
start = "Search"
order = "Search"
[arrivals]
shape = "poisson"
[client]
think = { mean = "1s", shape = "constant" }
patience = { mean = "300ms", shape = "constant" }
[run]
rho = [1]
"""


def socket(root):
    """Returns the path of the stop daemon's socket."""
    return root / "stopd.sock"


def configure(root, url, way):
    """Writes the configuration file of the gateway and of the stop daemon."""
    password = root / "password"
    password.write_text("lab\n")
    password.chmod(0o600)
    config = root / "abandon.toml"
    told = f'socket = "{socket(root)}"\n' if way == "with" else ""
    leases = f'leases = ["{stack.USER}"]\n' if os.getuid() == 0 else ""  # otherwise PHP runs as the daemon's user
    config.write_text(
        f'version = 1\nmode = "observe"\n[upstream]\nserver = "{url}"\n'
        f'[stopd]\nmode = "enforce"\nadmin = "127.0.0.1:{free_port()}"\n{told}{leases}'
        f'[database.wordpress]\nserver = "mysql://stopd@{os.environ["BYWASH_MARIADB"]}/shop"\npassword_file = "{password}"\n')
    return config


def once(way, visitors, processes, url, rho, chosen, seed):
    """Executes one run. Returns the share of the readers' pages that were answered within a second,
    and how the searches ended."""
    root, started = processes.folder, []
    config = configure(root, url, way)
    try:
        if way == "with":
            command = [play.BYWASH, "stopd", "--config", config]
            socket(root).unlink(missing_ok=True)
            started.append(processes.start("stopd", command, socket(root).exists))
        gateway, front = play.bywash(processes, config)
        started.append(gateway)
        text = f'{SEARCHERS}duration = "{chosen.seconds}s"\n'
        searchers = visitors.start(front, text, chosen.searches, 1000 + seed)
        readers = visitors.run(front, visitors.variant(chosen.seconds), rho, seed)["cells"][0]
        searched = play.result(searchers)["cells"][0]
    finally:
        for process in reversed(started):
            processes.end(process)
        play.settle(url)
    within = play.within(readers["response"].get("all", []), SECOND) * readers["completed"]
    return {"way": way, "seed": seed, "asked": readers["generated"], "within": within,
            "searches": searched["generated"], "answered": searched["completed"], "load": os.getloadavg()[0]}


def main():
    exit_on_sigterm()
    parser = argparse.ArgumentParser(prog="scripts/applications abandon", description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--seconds", type=int, default=45)
    parser.add_argument("--searches", type=float, default=4, help="a second")
    chosen = parser.parse_args()
    root = chosen.folder.resolve()
    found = root / "ramp.json"
    if not found.exists():
        fail(f"{found} is missing: first run scripts/applications measure wordpress {chosen.folder}")
    processes, visitors, rows = Processes(root), play.Visitors(wordpress.SCENARIO), []
    print(f"this takes about {2 * chosen.seeds * (chosen.seconds + 35) / 60:.0f} minutes", file=sys.stderr)
    try:
        url = wordpress.start(processes, root, stopd=socket(root))
        rho = 0.5 * visitors.rho(json.loads(found.read_text())["knee"])
        for seed in range(1, chosen.seeds + 1):
            for way in WAYS if seed % 2 else reversed(WAYS):
                rows.append(once(way, visitors, processes, url, rho, chosen, seed))
                print(rows[-1], file=sys.stderr)
    finally:
        processes.stop()
    (root / "abandon.json").write_text(json.dumps(rows, indent=1) + "\n")
    line = table("stop daemon", "readers' requests", "within a second", "searches", "answered")
    for way in WAYS:
        total = lambda key: sum(row[key] for row in rows if row["way"] == way)
        line(way, total("asked"), f"{100 * total('within') / total('asked'):.0f} %", total("searches"), total("answered"))


main()

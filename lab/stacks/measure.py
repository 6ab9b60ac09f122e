"""Prints the measurements as tables for docs/how-to/stacks.md. Only `scripts/stacks` starts it."""

import os
import pathlib
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tools"))
import databases
import probe
import runtimes
from bywash_lab.places import ROOT
from bywash_lab.reports import not_tested, table

REMEDIES = {
    "PostgreSQL 0": "set it to 100ms, or use `bywash stopd`",
    "PostgreSQL 100ms": "nothing, if the application closes its connection; with a pool it does not: `bywash stopd`",
    "MariaDB": "`bywash stopd`",
}
# The advice for each hop, by a pattern for its name in the output of scripts/fronts.
REMEDIES_OF_HOPS = {
    "nginx .*, ignore_client_abort": "leave `proxy_ignore_client_abort` off",
    "nginx .*, cache": "no `proxy_cache` on pages that are rarely requested twice; or bywash in front of it",
    "HAProxy .*": "`option abortonclose`",
    "Varnish .*": "`return (pipe)`, or bywash in front of it",
}


def try_runtimes(names):
    observer = probe.Observer()
    os.environ["STACKS_OBSERVER"] = str(observer.port)
    line = table("when the client …", *probe.WAYS, "what to do")
    for name in names:
        with tempfile.TemporaryDirectory(prefix=f"bywash-{name}-") as folder:
            try:
                with runtimes.ALL[name](pathlib.Path(folder)) as (title, handlers, start):
                    for handler in handlers:
                        with start(handler) as address:
                            cells = probe.row(observer, address, handler.how, handler.in_steps)
                        line(title + (f": {handler.what}" if handler.what else ""), *cells, handler.remedy)
            except runtimes.NotTested as why:
                not_tested(f"{name}, {why}")


def try_databases():
    line = table("when its client is killed,", "a query that sleeps", "one that computes", "what to do")
    for name, cells in databases.rows():
        kind, setting = name.split()[0], re.search(r"= (\w+)", name)
        line(name, *cells, REMEDIES[f"{kind} {setting.group(1)}" if setting else kind])


def remedy(hop, closes):
    if all(after != "stays" for after in closes):
        return "nothing"
    for ending, what in REMEDIES_OF_HOPS.items():
        if re.fullmatch(ending, hop):
            return what
    return "bywash in front of it"


def closes_after(time):
    return "no" if time == "stays" else f"after {time}"


def try_proxies():
    """Measures the hops with scripts/fronts and `bywash doctor`, and prints them as a table."""
    line = table("when its client leaves,", "closes behind a GET", "behind a POST", "what to do")
    fronts = subprocess.run([ROOT / "scripts/fronts", os.environ["BYWASH"]], stdout=subprocess.PIPE, text=True, check=False)
    for text in fronts.stdout.splitlines():
        found = re.match(r"(.*?)\s+GET (stays|[\d.]+ ms)\s+POST (stays|[\d.]+ ms)", text)
        if found:
            hop, *closes = found.groups()
            line(hop, *(closes_after(one) for one in closes), remedy(hop, closes))
        else:
            not_tested(text)
    assert fronts.returncode == 0, "scripts/fronts failed"


def main():
    names = sys.argv[1:]
    if chosen := [name for name in names if name in runtimes.ALL]:
        try_runtimes(chosen)
    for name, run in [("databases", try_databases), ("proxies", try_proxies)]:
        if name in names:
            print(flush=True)
            run()


main()

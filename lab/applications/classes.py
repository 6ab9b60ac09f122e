"""Checks that `bywash init` puts the URLs that an application links to into the right classes. See scripts/applications.

A crawler follows the links of the application's pages through a gateway that observes. The gateway's log says which class
each request had. The application's module says by CLASSES which class its URLs must have."""

import argparse
import collections
import html
import http.client
import importlib
import json
import pathlib
import re
import subprocess
import sys
import urllib.parse

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tools"))
import play
from bywash_lab.processes import Processes, exit_on_sigterm
from bywash_lab.reports import table

MOST = 300  # pages
LARGEST = 1 << 20  # bytes that are read of a page
ALIKE = 12  # pages whose URLs differ only in numbers and words of a query


def shape(target):
    """Returns a URL with all numbers and values replaced. URLs of the same kind of page become equal, so that only one is
    requested."""
    return re.sub(r"=[^&]*", "=", re.sub(r"\d+", "0", target))


def crawl(front):
    """Requests the pages that links of the front page lead to, breadth first. Links to any port of its host count, because an
    application may not know the port of the gateway."""
    address = urllib.parse.urlsplit(front).netloc
    host = urllib.parse.urlsplit(front).hostname
    queue, known, shapes = collections.deque(["/"]), {"/"}, collections.Counter()
    asked = 0
    while queue and asked < MOST:
        target = queue.popleft()
        client = http.client.HTTPConnection(address, timeout=60)
        client.request("GET", target)
        answer = client.getresponse()
        text = answer.read(LARGEST).decode("utf-8", "replace")
        client.close()
        asked += 1
        links = re.findall(r'(?:href|action)="([^"]+)"', text) if "html" in answer.getheader("content-type", "") else []
        for link in [*map(html.unescape, links), answer.getheader("location", "")]:
            found = urllib.parse.urlsplit(urllib.parse.urljoin(f"{front}{target}", link))
            if found.scheme != "http" or found.hostname != host:
                continue
            path = (found.path or "/") + (f"?{found.query}" if found.query else "")
            if path not in known and path.isascii() and " " not in path and shapes[shape(path)] < ALIKE:
                known.add(path)
                shapes[shape(path)] += 1
                queue.append(path)
    return asked


def faults(entries, expected):
    """Returns descriptions of the faults: each URL with another class than expected, and each expectation that no URL has."""
    wrong, met = [], set()
    for target, got in entries:
        for pattern, wanted in expected:
            if re.search(pattern, target):
                met.add(pattern)
                if got != wanted:
                    wrong.append(f"{target} has the class {got}, not {wanted}")
                break
    return wrong + [f"no link matches {pattern}, so nothing was checked" for pattern, _ in expected if pattern not in met]


def main():
    exit_on_sigterm()
    parser = argparse.ArgumentParser(prog="scripts/applications classes", description=__doc__.split("\n")[0])
    parser.add_argument("application")
    parser.add_argument("folder", type=pathlib.Path)
    chosen = parser.parse_args()
    kind, root = importlib.import_module(chosen.application), chosen.folder.resolve()
    processes = Processes(root)
    try:
        url = kind.start(processes, root)
        config, log = root / "classes.toml", root / "bywash.out"
        subprocess.run([play.BYWASH, "init", kind.PRESET, "--upstream", url, "--out", config, "--force"], check=True,
                       stdout=sys.stderr)
        log.unlink(missing_ok=True)
        gateway, front = play.bywash(processes, config)
        # A first request shows that the gateway answers; a search is linked by a form, which a crawler does not send.
        for target in kind.FORMS:
            client = http.client.HTTPConnection(urllib.parse.urlsplit(front).netloc, timeout=60)
            client.request("GET", target)
            client.getresponse().read()
        asked = crawl(front)
        processes.end(gateway)
    finally:
        processes.stop()
    lines = (json.loads(line) for line in log.read_text().splitlines() if line.startswith("{"))
    entries = sorted({(line["target"], line["class"]) for line in lines if "class" in line and "target" in line})
    examples = collections.defaultdict(list)
    for target, name in entries:
        examples[name].append(target)
    row = table("class", "URLs", "examples")
    for name, targets in sorted(examples.items()):
        shown = {shape(target): target for target in targets}
        row(name, len(targets), " ".join(f"`{target}`" for target in list(shown.values())[:6]))
    wrong = faults(entries, kind.CLASSES)
    print(f"\n{asked} pages, {len(entries)} URLs: " + ("each has its class" if not wrong else "; ".join(wrong[:20])))
    sys.exit(bool(wrong))


main()

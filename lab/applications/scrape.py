"""Measures a site while scrapers read it: alone, behind HAProxy, and behind bywash.

Readers come all the time, with a third of what the site can do of their pages. They read popular pages (Zipf), think, and read on.
Most are scripted browsers, which fetch the styles of each page. One in twenty is a text browser, which fetches none. Headless
Chromium and Firefox read as well. After a calm time, scrapers come with twice what the site can do of theirs: one page for each
address, evenly over the long tail. A third of them is Scrapy, and the rest draws its heads from
header-generator. Headless Chromium scrapes too. A page counts as read if it came within the reader's patience. The first part of
a run is not counted: the caches fill meanwhile, and bywash learns what readers do. The site has one core, all else another."""

import argparse
import asyncio
import importlib
import json
import os
import pathlib
import resource
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tools"))
import play
import programs
import scripted
from bywash_lab import figures
from bywash_lab.processes import Processes, exit_on_sigterm
from bywash_lab.reports import fail, table
from bywash_lab.summaries import quantile

PROGRAMS = ["bare", "haproxy", "bywash"]
WARM, CALM = 60, 60  # seconds: not counted; counted without scrapers
PROBE, CLIENTS = 20, 20  # seconds; clients that ask for pages without pauses, to find what the site can do
READERS = 1 / 3  # the load of scripted readers, relative to what the site can do of their pages
SCRAPY, GENERATED = 2 / 3, 4 / 3  # the loads of scrapers, relative to what the site can do of theirs
BROWSERS, CRAWLED = 2, 1.5  # readers of each browser at a time; pages that Chromium scrapes in a second
PAGES_OF_A_VISIT, THINK, PATIENCE = 3, 5.0, 10.0  # mean pages; mean seconds; seconds
SITE, OTHERS = 0, 1  # the core of the site; the core of the clients and the proxies
START, END = 5, 15  # seconds in which browsers start, and after which clients are ended
READING = ["scripted browsers", "text browser", "chromium", "firefox"]
SCRAPING = ["scrapy", "header-generator", "chromium that scrapes"]


def plans(site, capacities, seconds, front, port):
    """Returns the plans of all clients by their names; see `programs.py`. `capacities` are how many of readers' and how many of
    scrapers' pages the site serves in a second."""
    of_readers, of_scrapers = capacities
    attack = WARM + CALM
    end = attack + seconds
    common = {"zero": time.time() + START, "port": port, "front": front, "patience": PATIENCE, "pages_of_a_visit": PAGES_OF_A_VISIT,
              "think": THINK, "end": end}
    reads = common | {"begin": 0, "paths": site.popular(), "rate": READERS * of_readers / PAGES_OF_A_VISIT, "readers": BROWSERS}
    scrapes = common | {"begin": attack, "paths": site.tail(), "scrapes": True}
    return {
        "scripted browsers": reads,
        "chromium": reads | {"network": 251, "browser": "chromium"},
        "firefox": reads | {"network": 252, "browser": "firefox"},
        "scrapy": scrapes | {"network": 253, "rate": SCRAPY * of_scrapers,
                             "user_agent": scripted.CHROME.format("Windows NT 10.0; Win64; x64", 120, "")},
        "header-generator": scrapes | {"network": 254, "rate": GENERATED * of_scrapers},
        "chromium that scrapes": scrapes | {"network": 250, "rate": CRAWLED, "browser": "chromium"}}


async def run(processes, site, url, capacities, chosen, seed):
    """Lets all clients come to the URL. Returns their pages as (begin, client, status, seconds)."""
    front = int(url.rsplit(":", 1)[1])
    async with programs.Relay(front) as relay:
        all_plans = plans(site, capacities, chosen.seconds, front, relay.port)
        readers = scripted.Readers(all_plans.pop("scripted browsers"), site.STYLES, seed)
        started = {client: programs.start(processes, client, plan) for client, plan in all_plans.items()}
        try:
            await asyncio.sleep(max(0, -readers.now()))
            await readers.arrive()
            seen = readers.seen
            for client, process in started.items():
                seen += await programs.results(processes, client, process, END)
            return seen
        finally:
            for process in set(started.values()) & set(processes.running):
                processes.end(process)


def parts(seen, seconds):
    """Returns the figures of each client in the calm time and during the attack."""
    attack = WARM + CALM
    for name, begin, end in [("calm", WARM, attack), ("attack", attack, attack + seconds)]:
        for client in READING if name == "calm" else READING + SCRAPING:
            pages = [(status, took) for at, one, status, took in seen if one == client and begin <= at < end]
            read = [took for status, took in pages if status == 200]
            yield {"part": name, "client": client, "asked": len(pages), "read": len(read),
                   "refused": sum((status or 0) >= 429 for status, _ in pages),
                   "p50_s": quantile(read, 0.5) if read else None, "p95_s": quantile(read, 0.95) if read else None}


def once(program, processes, site, url, capacities, chosen, seed):
    """Executes one run, and returns its results."""
    process, front = None, url
    if program == "bywash":
        file = processes.folder / "scrape.toml"
        file.write_text(site.configuration(url, processes.folder))
        process, front = play.bywash(processes, file)
    elif program == "haproxy":
        process, front = play.haproxy(processes, url, site.LIMIT, site.TRANSACTIONS)
    try:
        load = os.getloadavg()[0]
        seen = asyncio.run(run(processes, site, front, capacities, chosen, seed))
        common = {"program": program, "seed": seed, "load_average_before": load, "capacity_of_readers": capacities[0],
                  "capacity_of_scrapers": capacities[1]}
        return [common | part for part in parts(seen, chosen.seconds)]
    finally:
        if process:
            processes.end(process)
        play.settle(url)


def show(rows):
    line = table("program", "part", "client", "pages asked", "read", "p50 s", "p95 s", "refused")
    for row in rows:
        share = f"{100 * row['read'] / row['asked']:.1f} %" if row["asked"] else "—"
        times = ["—" if row[key] is None else f"{row[key]:.2f}" for key in ("p50_s", "p95_s")]
        line(row["program"], row["part"], row["client"], row["asked"], share, *times, row["refused"])


def main():
    exit_on_sigterm()
    parser = argparse.ArgumentParser(prog="scripts/applications scrape", description=__doc__.split("\n")[0])
    parser.add_argument("site", choices=["mediawiki", "cgit"])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--seconds", type=int, default=180, help="seconds of the attack")
    parser.add_argument("--programs", type=lambda text: text.split(","), default=PROGRAMS)
    parser.add_argument("--export", help="the name of the result file in docs/figures/results")
    chosen = parser.parse_args()
    if unknown := set(chosen.programs) - set(PROGRAMS):
        fail(f"{', '.join(unknown)}: the programs are {', '.join(PROGRAMS)}")
    if not {SITE, OTHERS} <= os.sched_getaffinity(0):
        fail(f"the cores {SITE} and {OTHERS} are needed")
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    site, root, rows = importlib.import_module(chosen.site), chosen.folder.resolve(), []
    processes = Processes(root)
    minutes = chosen.seeds * len(chosen.programs) * (WARM + CALM + chosen.seconds + 30) / 60
    print(f"this takes about {minutes:.0f} minutes", file=sys.stderr)
    try:
        os.sched_setaffinity(0, {SITE})
        url = site.start(processes, root)
        os.sched_setaffinity(0, {OTHERS})
        port = int(url.rsplit(":", 1)[1])
        # The first probe finds the caches empty.
        capacities = [[asyncio.run(scripted.capacity(port, paths, CLIENTS, PROBE, PATIENCE)) for _ in range(2)][1]
                      for paths in (site.popular(), site.tail())]
        print(f"{chosen.site} serves {capacities[0]:.1f} of readers' pages a second, or {capacities[1]:.1f} of scrapers'",
              file=sys.stderr)
        play.settle(url)
        for seed in range(1, chosen.seeds + 1):
            for program in chosen.programs:
                rows += once(program, processes, site, url, capacities, chosen, seed)
                print(json.dumps(rows[-11:]), file=sys.stderr)
    finally:
        processes.stop()
    show(rows)
    if chosen.export:
        options = f"--seeds {chosen.seeds} --seconds {chosen.seconds} --programs {','.join(chosen.programs)}"
        command = f"scripts/applications scrape {chosen.site} FOLDER {options}"
        figures.write(chosen.export, command, rows)


main()

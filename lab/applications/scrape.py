"""Measures MediaWiki while scrapers read it: alone, behind HAProxy, and behind bywash.

Readers come all the time, with a third of the load that the wiki can do. They read popular pages (Zipf), fetch the styles of
each page, think, and read on. They have the heads of five programs, and nobody returns a cookie: MediaWiki sets none for
readers. After a calm time, scrapers come with twice the load that the wiki can do: one page for each address, evenly over all
pages, in the head of an HTTP library that pretends to be a browser. Nobody tries again. A page counts as read if it came within
the reader's patience. The first part of a run is not counted: the caches fill meanwhile, and bywash learns what readers do."""

import argparse
import asyncio
import itertools
import json
import os
import pathlib
import random
import subprocess
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tools"))
import mediawiki
import play
from bywash_lab import figures
from bywash_lab.processes import Processes, exit_on_sigterm
from bywash_lab.reports import table
from bywash_lab.summaries import quantile

PROGRAMS = ["bare", "haproxy-8", "bywash"]
WARM, CALM, BEGIN = 120, 60, 120  # seconds: not counted; counted without scrapers; the beginning of the attack
PROBE, CLIENTS = 20, 20  # seconds; clients that ask for pages without pauses, to find what the wiki can do
READERS, SCRAPERS = 1 / 3, 2  # the loads, relative to what the wiki can do
PAGES_OF_A_VISIT, THINK, PATIENCE = 3, 5.0, 10.0  # mean pages; mean seconds; seconds
STYLES = "/load.php?lang=en&modules=site.styles&only=styles&skin=vector"
# What the request for the styles of a page has in place of what the request for the page has.
OF_STYLES = {"Accept": "text/css,*/*;q=0.1", "Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "style", "Sec-Fetch-Site": "same-origin"}
CHROME = "Mozilla/5.0 ({}) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/{}.0.0.0 {}Safari/537.36"
BRANDS = '"Chromium";v="{0}", "Google Chrome";v="{0}", "Not/A)Brand";v="24"'
HTML = "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8"


def chrome(system, platform, version, mobile):
    agent = CHROME.format(system, version, "Mobile " if mobile else "")
    return [("Connection", "keep-alive"), ("sec-ch-ua", BRANDS.format(version)), ("sec-ch-ua-mobile", "?1" if mobile else "?0"),
            ("sec-ch-ua-platform", f'"{platform}"'), ("Upgrade-Insecure-Requests", "1"), ("User-Agent", agent), ("Accept", HTML),
            ("Sec-Fetch-Site", "none"), ("Sec-Fetch-Mode", "navigate"), ("Sec-Fetch-User", "?1"), ("Sec-Fetch-Dest", "document"),
            ("Accept-Encoding", "gzip, deflate"), ("Accept-Language", "en-US,en;q=0.9")]


# The heads of readers' programs, and how many of a hundred readers have each.
READERS_HEADS = [
    (40, chrome("Linux; Android 10; K", "Android", 142, True)),
    (30, chrome("Windows NT 10.0; Win64; x64", "Windows", 142, False)),
    (15, [("User-Agent", "Mozilla/5.0 (iPhone; CPU iPhone OS 18_6 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) "
           "Version/26.0 Mobile/15E148 Safari/604.1"), ("Accept", HTML), ("Sec-Fetch-Dest", "document"),
          ("Accept-Language", "en-GB,en;q=0.9"), ("Sec-Fetch-Mode", "navigate"), ("Accept-Encoding", "gzip, deflate")]),
    (10, [("User-Agent", "Mozilla/5.0 (X11; Linux x86_64; rv:145.0) Gecko/20100101 Firefox/145.0"), ("Accept", HTML),
          ("Accept-Language", "en-US,en;q=0.5"), ("Accept-Encoding", "gzip, deflate"), ("Connection", "keep-alive"),
          ("Upgrade-Insecure-Requests", "1"), ("Sec-Fetch-Dest", "document"), ("Sec-Fetch-Mode", "navigate")]),
    (5, [("Accept", "text/html, text/plain, text/sgml, text/css, */*;q=0.01"), ("Accept-Encoding", "gzip, bzip2"),
         ("Accept-Language", "en"), ("User-Agent", "Lynx/2.9.2 libwww-FM/2.14 SSL-MM/1.4.1 OpenSSL/3.5.4")])]
SCRAPERS_HEAD = [("User-Agent", CHROME.format("Windows NT 10.0; Win64; x64", 120, "")), ("Accept-Encoding", "gzip, deflate"),
                 ("Accept", "*/*"), ("Connection", "keep-alive")]


class Load:
    """The clients of one run. Each answer is stored as (time, kind, status, seconds)."""

    def __init__(self, url, seed):
        self.port, self.chance, self.seen = int(url.rsplit(":", 1)[1]), random.Random(seed), []
        self.begun, self.addresses, self.open = time.monotonic(), itertools.count(1), set()
        popularity = itertools.accumulate(1 / rank for rank in range(1, mediawiki.PAGES + 1))
        self.popularity = list(popularity)

    def address(self):
        """Returns an address of loopback that no other client of the run has."""
        number = next(self.addresses)
        return f"127.{1 + number // 62500 % 250}.{number // 250 % 250}.{1 + number % 250}"

    async def get(self, address, path, head):
        """Requests a path, and returns the status of the answer; `None` if it did not come in time."""
        lines = "".join(f"{name}: {value}\r\n" for name, value in head)
        writer = None
        try:
            async with asyncio.timeout(PATIENCE):
                reader, writer = await asyncio.open_connection("127.0.0.1", self.port, local_addr=(address, 0))
                writer.write(f"GET {path} HTTP/1.0\r\nHost: 127.0.0.1\r\n{lines}\r\n".replace("keep-alive", "close").encode())
                start = await reader.readline()
                while await reader.read(65536):
                    pass
                return int(start.split()[1])
        except (OSError, TimeoutError, IndexError, ValueError):
            return None
        finally:
            if writer:
                writer.close()

    async def timed(self, kind, address, path, head):
        begun = time.monotonic()
        status = await self.get(address, path, head)
        self.seen.append((begun - self.begun, kind, status, time.monotonic() - begun))
        return status == 200

    async def reader(self):
        address, (head,) = self.address(), self.chance.choices([head for _, head in READERS_HEADS], [n for n, _ in READERS_HEADS])
        while True:
            number, = self.chance.choices(range(1, mediawiki.PAGES + 1), cum_weights=self.popularity)
            if not await self.timed("page", address, f"/index.php/Page_{number}", head):
                return
            styles = [(name, OF_STYLES.get(name, value)) for name, value in head
                      if name not in ("Upgrade-Insecure-Requests", "Sec-Fetch-User")]
            await self.timed("styles", address, STYLES, styles)
            if self.chance.random() < 1 / PAGES_OF_A_VISIT:
                return
            await asyncio.sleep(self.chance.expovariate(1 / THINK))

    async def scraper(self):
        number = self.chance.randint(1, mediawiki.PAGES)
        path = self.chance.choice([f"/index.php/Page_{number}", f"/index.php?title=Page_{number}&action=history",
                                   f"/index.php?title=Page_{number}&oldid={number * mediawiki.REVISIONS}"])
        await self.timed("scraped", self.address(), path, SCRAPERS_HEAD)

    async def arrive(self, client, rate, begin, end):
        """Lets clients arrive at random, `rate` a second, from the second `begin` to the second `end` of the run."""
        at = begin + self.chance.expovariate(rate)
        while at < end:
            await asyncio.sleep(max(0, at - (time.monotonic() - self.begun)))
            one = asyncio.ensure_future(client())
            self.open.add(one)
            one.add_done_callback(self.open.discard)
            at += self.chance.expovariate(rate)

    async def busy(self):
        """Asks for pages without pauses for `PROBE` seconds."""
        while time.monotonic() - self.begun < PROBE:
            await self.scraper()

    async def probe(self):
        """Returns how many pages the wiki can do in a second."""
        await asyncio.gather(*(self.busy() for _ in range(CLIENTS)))
        return sum(status == 200 for _, _, status, _ in self.seen) / PROBE

    async def run(self, capacity, seconds):
        visits = READERS * capacity / PAGES_OF_A_VISIT
        readers = self.arrive(self.reader, visits, 0, WARM + CALM + seconds)
        scrapers = self.arrive(self.scraper, SCRAPERS * capacity, WARM + CALM, WARM + CALM + seconds)
        await asyncio.gather(readers, scrapers)
        await asyncio.wait(set(self.open), timeout=2 * PATIENCE)
        return self.seen


def parts(seen, seconds):
    """Returns the figures of the parts of a run: the calm time, the beginning of the attack, and the rest of it."""
    attack = WARM + CALM
    for name, begin, end in [("calm", WARM, attack), ("begin", attack, attack + BEGIN), ("later", attack + BEGIN, attack + seconds)]:
        of = {kind: [(status, took) for at, one, status, took in seen if one == kind and begin <= at < end]
              for kind in ("page", "styles", "scraped")}
        read = [took for status, took in of["page"] if status == 200]
        times = {"p50_s": quantile(read, 0.5) if read else None, "p95_s": quantile(read, 0.95) if read else None}
        count = lambda kind, *wanted: sum(status in wanted for status, _ in of[kind])
        yield {"part": name, "asked": len(of["page"]), "read": len(read), "refused": count("page", 429, 503),
               "styles": len(of["styles"]), "styled": count("styles", 200), "scrapes": len(of["scraped"]),
               "scraped": count("scraped", 200), "scrapes_refused": count("scraped", 429, 503)} | times


def configuration(url, root):
    """Writes the configuration file of bywash: that of `bywash init mediawiki`, in mode enforce."""
    file = root / "scrape.toml"
    init = [play.BYWASH, "init", mediawiki.PRESET, "--upstream", url, "--out", file, "--force"]
    subprocess.run(init, check=True, stdout=subprocess.DEVNULL)
    file.write_text(file.read_text().replace('mode = "observe"', 'mode = "enforce"', 1))
    return file


def once(program, processes, url, capacity, chosen, seed):
    """Executes one run, and returns its results."""
    process, front = None, url
    if program == "bywash":
        process, front = play.bywash(processes, configuration(url, processes.folder))
    elif program != "bare":
        process, front = play.haproxy(processes, url, program.split("-")[1], mediawiki.TRANSACTIONS)
    try:
        load = os.getloadavg()[0]
        seen = asyncio.run(Load(front, seed).run(capacity, chosen.seconds))
        common = {"program": program, "seed": seed, "capacity": capacity, "load_average_before": load}
        return [common | part for part in parts(seen, chosen.seconds)]
    finally:
        if process:
            processes.end(process)
        play.settle(url)


def show(rows):
    line = table("program", "part", "pages asked", "read", "styled", "p50 s", "p95 s", "refused", "scraped", "of")
    percent = lambda part, whole: f"{100 * part / whole:.0f} %" if whole else "—"
    for row in rows:
        times = ["—" if row[key] is None else f"{row[key]:.2f}" for key in ("p50_s", "p95_s")]
        shares = percent(row["read"], row["asked"]), percent(row["styled"], row["styles"])
        line(row["program"], row["part"], row["asked"], *shares, *times, row["refused"], row["scraped"], row["scrapes"])


def main():
    exit_on_sigterm()
    parser = argparse.ArgumentParser(prog="scripts/applications scrape", description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--seconds", type=int, default=300, help="seconds of the attack")
    parser.add_argument("--programs", type=lambda text: text.split(","), default=PROGRAMS)
    parser.add_argument("--export", help="the name of the result file in docs/figures/results")
    chosen = parser.parse_args()
    root, rows = chosen.folder.resolve(), []
    processes = Processes(root)
    minutes = chosen.seeds * len(chosen.programs) * (WARM + CALM + chosen.seconds + 30) / 60
    print(f"this takes about {minutes:.0f} minutes", file=sys.stderr)
    try:
        url = mediawiki.start(processes, root)
        # The first probe finds the caches empty.
        capacity = max(asyncio.run(Load(url, seed).probe()) for seed in (1, 2))
        print(f"the wiki does {capacity:.1f} pages a second", file=sys.stderr)
        play.settle(url)
        for seed in range(1, chosen.seeds + 1):
            for program in chosen.programs:
                rows += once(program, processes, url, capacity, chosen, seed)
                print(json.dumps(rows[-3:]), file=sys.stderr)
    finally:
        processes.stop()
    show(rows)
    if chosen.export:
        figures.write(chosen.export, f"scripts/applications scrape FOLDER --seeds {chosen.seeds} --seconds {chosen.seconds}", rows)


main()

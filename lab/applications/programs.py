"""Runs the real clients of `scripts/applications scrape`: browsers, Scrapy, and a script with header-generator.

Each client reads its plan from a JSON file:

- zero: the begin of the run in seconds since 1970; begin, end: when clients come, in seconds since then
- rate: how many clients come in a second; readers: how many browsers read at a time
- paths: the paths of the site; readers choose path k as often as 1/k
- port, network: see `Relay`; front: the port of the site; patience: the time for an answer in seconds
- pages_of_a_visit, think: the mean number of pages of a visit, and the mean seconds between two pages
- browser: chromium or firefox; scrapes: whether the browser is a scraper; user_agent: the name of Scrapy's browser

A client prints a line for each page: [begin, status or null, seconds]."""

import asyncio
import json
import os
import pathlib
import time

HERE = pathlib.Path(__file__).parent / "clients"
NODE, VENV = (pathlib.Path(os.environ.get(name, "")) for name in ("APPLICATIONS_NODE", "APPLICATIONS_VENV"))


class Relay:
    """Forwards connections to a port of 127.0.0.1, from the address to which the client has connected.

    Programs cannot choose the address from which they connect. Here, they choose it by the host of the URL, such as
    `http://127.251.0.1:PORT`. The bytes are forwarded as they are."""

    def __init__(self, to):
        self.to, self.server, self.open = to, None, set()

    async def __aenter__(self):
        self.server = await asyncio.start_server(self.accept, "0.0.0.0", 0, backlog=1024)
        self.port = self.server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_):
        self.server.close()
        for task in self.open:
            task.cancel()
        await asyncio.gather(*self.open, return_exceptions=True)

    async def accept(self, reader, writer):
        task = asyncio.current_task()
        self.open.add(task)
        other = None
        try:
            address = writer.get_extra_info("sockname")[0]
            if not address.startswith("127."):
                return
            back, other = await asyncio.open_connection("127.0.0.1", self.to, local_addr=(address, 0))
            ways = [asyncio.ensure_future(copy(reader, other)), asyncio.ensure_future(copy(back, writer))]
            # If one side closes, the other is closed too: no program closes only its sending direction.
            _, rest = await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            for way in rest:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)
        except (OSError, asyncio.CancelledError):
            pass
        finally:
            self.open.discard(task)
            for one in filter(None, (writer, other)):
                one.close()


async def copy(reader, writer):
    while data := await reader.read(65536):
        writer.write(data)
        await writer.drain()


def command(client):
    """Returns the command of a client, without the file of its plan."""
    if client == "scrapy":
        return [VENV / "bin/python", HERE / "spider.py"]
    return ["node", NODE / ("generated.mjs" if client == "header-generator" else "browser.mjs")]


def start(processes, client, plan):
    """Starts a client, and returns its process."""
    name = client.replace(" ", "-")
    file = processes.folder / f"{name}.json"
    file.write_text(json.dumps(plan))
    output(processes, client).unlink(missing_ok=True)
    return processes.start(name, [*command(client), file], None)


def output(processes, client):
    """Returns the file with the output of a client."""
    return processes.folder / f"{client.replace(' ', '-')}.out"


async def results(processes, client, process, seconds):
    """Waits for the end of a client, for at most `seconds`, and returns its pages as (begin, client, status, seconds).

    A client that is still there is ended, such as Scrapy while it tries pages again. Raises `RuntimeError` if a client fails."""
    end = time.monotonic() + seconds
    while process.poll() is None and time.monotonic() < end:
        await asyncio.sleep(0.2)
    file = output(processes, client)
    if process.poll() not in (None, 0):
        raise RuntimeError(f"{client} has failed: see {file}")
    processes.end(process)
    lines = [line for line in file.read_text().splitlines() if line.startswith("[")]
    return [(begin, client, status, took) for begin, status, took in map(json.loads, lines)]

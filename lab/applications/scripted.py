"""Readers of a site whose requests a script sends, with the heads of real programs. Nobody returns a cookie."""

import asyncio
import errno
import itertools
import random
import re
import time

CHROME = "Mozilla/5.0 ({}) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/{}.0.0.0 {}Safari/537.36"
BRANDS = '"Chromium";v="{0}", "Google Chrome";v="{0}", "Not/A)Brand";v="24"'
HTML = "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8"
# What the request for the styles of a page has in place of what the request for the page has.
OF_STYLES = {"Accept": "text/css,*/*;q=0.1", "Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "style", "Sec-Fetch-Site": "same-origin"}


def chrome(system, platform, version, mobile):
    agent = CHROME.format(system, version, "Mobile " if mobile else "")
    return [("Connection", "keep-alive"), ("sec-ch-ua", BRANDS.format(version)), ("sec-ch-ua-mobile", "?1" if mobile else "?0"),
            ("sec-ch-ua-platform", f'"{platform}"'), ("Upgrade-Insecure-Requests", "1"), ("User-Agent", agent), ("Accept", HTML),
            ("Sec-Fetch-Site", "none"), ("Sec-Fetch-Mode", "navigate"), ("Sec-Fetch-User", "?1"), ("Sec-Fetch-Dest", "document"),
            ("Accept-Encoding", "gzip, deflate"), ("Accept-Language", "en-US,en;q=0.9")]


# The heads of readers' programs, and how many of a hundred readers have each.
BROWSERS = [
    (40, chrome("Linux; Android 10; K", "Android", 142, True)),
    (30, chrome("Windows NT 10.0; Win64; x64", "Windows", 142, False)),
    (15, [("User-Agent", "Mozilla/5.0 (iPhone; CPU iPhone OS 18_6 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) "
           "Version/26.0 Mobile/15E148 Safari/604.1"), ("Accept", HTML), ("Sec-Fetch-Dest", "document"),
          ("Accept-Language", "en-GB,en;q=0.9"), ("Sec-Fetch-Mode", "navigate"), ("Accept-Encoding", "gzip, deflate")]),
    (10, [("User-Agent", "Mozilla/5.0 (X11; Linux x86_64; rv:145.0) Gecko/20100101 Firefox/145.0"), ("Accept", HTML),
          ("Accept-Language", "en-US,en;q=0.5"), ("Accept-Encoding", "gzip, deflate"), ("Connection", "keep-alive"),
          ("Upgrade-Insecure-Requests", "1"), ("Sec-Fetch-Dest", "document"), ("Sec-Fetch-Mode", "navigate")])]
TEXT_BROWSER = (5, [("Accept", "text/html, text/plain, text/sgml, text/css, */*;q=0.01"), ("Accept-Encoding", "gzip, bzip2"),
                    ("Accept-Language", "en"),
                    ("User-Agent", "Lynx/2.9.2 libwww-FM/2.14 SSL-MM/1.4.1 OpenSSL/3.5.4")])


class Readers:
    """The readers of one run. `seen` has (begin, client, status, seconds) of each page. `plan` is that of `programs.py`."""

    def __init__(self, plan, styles, seed):
        self.plan, self.styles, self.chance, self.seen = plan, styles, random.Random(seed), []
        self.addresses, self.open = itertools.count(1), set()
        self.popularity = list(itertools.accumulate(1 / rank for rank in range(1, len(plan["paths"]) + 1)))

    def now(self):
        return time.time() - self.plan["zero"]

    def address(self):
        """Returns an address of loopback that no other client of the run has."""
        number = next(self.addresses)
        return f"127.{1 + number // 62500 % 240}.{number // 250 % 250}.{1 + number % 250}"

    async def get(self, address, path, head):
        """Requests a path, and returns the status of the answer; `None` if it did not come in time."""
        lines = "".join(f"{name}: {value}\r\n" for name, value in head)
        writer = None
        try:
            async with asyncio.timeout(self.plan["patience"]):
                reader, writer = await asyncio.open_connection("127.0.0.1", self.plan["front"], local_addr=(address, 0))
                writer.write(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{self.plan['front']}\r\n{lines}\r\n".encode())
                answer = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
                length = re.search(r"\r\ncontent-length: (\d+)", answer)
                if length:
                    await reader.readexactly(int(length[1]))
                elif "\r\ntransfer-encoding: chunked" in answer:
                    while size := int(await reader.readline(), 16):
                        await reader.readexactly(size + 2)
                return int(answer.split()[1])
        except OSError as error:
            if error.errno == errno.EMFILE:
                raise
            return None
        except (TimeoutError, IndexError, ValueError, EOFError, asyncio.LimitOverrunError):
            return None
        finally:
            if writer:
                writer.close()

    async def page(self, client, address, head):
        """Requests a page as readers choose it, and its styles. Returns whether both came. A page without its styles has their
        status."""
        path, = self.chance.choices(self.plan["paths"], cum_weights=self.popularity)
        begun = self.now()
        status = await self.get(address, path, head)
        if status == 200 and client != "text browser":
            styles = [(name, OF_STYLES.get(name, value)) for name, value in head
                      if name not in ("Upgrade-Insecure-Requests", "Sec-Fetch-User")]
            status = await self.get(address, self.styles, styles)
        self.seen.append((begun, client, status, self.now() - begun))
        return status == 200

    async def visit(self):
        heads = [*BROWSERS, TEXT_BROWSER]
        chosen, = self.chance.choices(heads, [one[0] for one in heads])
        address, client = self.address(), "text browser" if chosen is TEXT_BROWSER else "scripted browsers"
        while await self.page(client, address, chosen[1]):
            if self.chance.random() < 1 / self.plan["pages_of_a_visit"]:
                return
            await asyncio.sleep(self.chance.expovariate(1 / self.plan["think"]))

    async def arrive(self):
        """Lets readers come at random, `rate` a second, and waits until the last ones are gone."""
        at = self.chance.expovariate(self.plan["rate"])
        while at < self.plan["end"]:
            await asyncio.sleep(max(0, at - self.now()))
            one = asyncio.ensure_future(self.visit())
            self.open.add(one)
            one.add_done_callback(self.open.discard)
            at += self.chance.expovariate(self.plan["rate"])
        if self.open:
            await asyncio.wait(set(self.open), timeout=2 * self.plan["patience"])


async def capacity(port, paths, clients, seconds, patience):
    """Returns how many pages the site serves in a second to clients that ask for these paths without pauses."""
    end = time.time() + seconds
    readers = Readers({"front": port, "patience": patience, "paths": paths, "zero": time.time()}, "", 1)
    served = 0

    async def busy():
        nonlocal served
        while time.time() < end:
            status = await readers.get("127.0.0.1", readers.chance.choice(paths), [])
            served += status == 200 and time.time() < end

    await asyncio.gather(*(busy() for _ in range(clients)))
    return served / seconds

"""A scraper of `scripts/applications scrape`: Scrapy with the name of a browser, many requests at a time, and the readers'
patience. Otherwise it has its default settings, so it tries a refused page twice more at once."""

import asyncio
import json
import random
import sys
import time

import scrapy
from scrapy.crawler import CrawlerProcess

with open(sys.argv[1]) as file:
    PLAN = json.load(file)
SETTINGS = {"USER_AGENT": PLAN["user_agent"], "CONCURRENT_REQUESTS": 1000, "DOWNLOAD_TIMEOUT": PLAN["patience"],
            "TELNETCONSOLE_ENABLED": False, "LOG_LEVEL": "CRITICAL"}


def now():
    """Returns the seconds since the begin of the run."""
    return time.time() - PLAN["zero"]


class Spider(scrapy.Spider):
    name = "spider"

    async def start(self):
        at, client = PLAN["begin"], 0
        while (at := at + random.expovariate(PLAN["rate"])) < PLAN["end"]:
            await asyncio.sleep(max(0, at - now()))
            host = f"127.{PLAN['network']}.{client // 250 % 250}.{1 + client % 250}:{PLAN['port']}"
            client += 1
            yield scrapy.Request(f"http://{host}{random.choice(PLAN['paths'])}", self.parse, errback=self.failed, dont_filter=True,
                                 meta={"begun": now(), "handle_httpstatus_all": True})

    def parse(self, response):
        self.report(response.meta["begun"], response.status)

    def failed(self, failure):
        self.report(failure.request.meta["begun"], None)

    def report(self, begun, status):
        print(json.dumps([begun, status, now() - begun]), flush=True)


process = CrawlerProcess(SETTINGS)
process.crawl(Spider)
process.start()

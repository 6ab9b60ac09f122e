"""The sites that scripts/page-costs and scripts/elephants-live measure.

For each site: how it is started on a database of scripts/with-databases, which of its pages a
request or a template belongs to, and the requests of its visitors.
"""

import os
import re
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tools"))
import wordpress
from bywash_lab.databases import DATABASES
from bywash_lab.places import PROGRAMS
from bywash_lab.processes import announced, start, stop

FEW = 100  # a range of up to this many numbers is drawn in turns, a longer one at random


class Site:
    """A running site on one database. stop() ends it."""

    def visit(self, request):
        """Requests a page. Returns the answer's status. Ends the script if the status is 500 or above."""
        method, target = request.split(" ")
        asked = urllib.request.Request(f"http://{self.address}{target}", method=method, data=b"" if method == "POST" else None)
        try:
            with urllib.request.urlopen(asked, timeout=60) as answer:
                answer.read()
                return answer.status
        except urllib.error.HTTPError as error:
            if error.code >= 500:
                sys.exit(f"{request}: {error.code} {error.read().decode().strip()}")
            return error.code


class Auction(Site):
    """The auction of papers/5-selfman/auction."""

    databases = ["postgres", "mariadb"]
    scenario = "papers/5-selfman/scenarios/paper-5-auction.toml"
    sizes = {"users": 10000, "items": 8000, "bids": 10, "comments": 20000}
    STATIC = {"/": "Home", "/PHP/RUBiS_logo.jpg": "Logo", "/PHP/register.html": "Register", "/PHP/browse.html": "Browse",
              "/PHP/sell.html": "Sell", "/PHP/about_me.html": "AboutMeAuth"}
    # These pages share one path. Their first parameter distinguishes them.
    LISTS = {"": "BrowseCategories", "region": "BrowseCategoriesInRegion", "sell": "SelectCategoryToSellItem"}

    def __init__(self, database, sizes, at_once):
        options = [part for name, value in sizes.items() for part in (f"--{name}", str(value))]
        workers = ["--workers", str(at_once)] if at_once else []
        self.process = start(
            PROGRAMS / "bywash-auction", "--listen", "127.0.0.1:0", "--database", DATABASES[database].url("shop"), *workers, *options,
            stdout=subprocess.PIPE, env=os.environ | {"BYWASH_AUCTION_PASSWORD": "lab"})
        (self.address,) = announced("bywash-auction", self.process.stdout, r"http://(\S+?),")

    def stop(self):
        stop(self.process)

    @classmethod
    def page_of(cls, request):
        path, first = split(request)
        name = cls.STATIC.get(path) or re.sub(r".*/(\w+)\.php", r"\1", path)
        return cls.LISTS.get(first, name) if name == "BrowseCategories" else name


class WordPress(Site):
    """The distribution's WordPress (wordpress.py)."""

    databases = ["mariadb"]
    scenario = "lab/scenarios/wordpress.toml"
    sizes = {"posts": 3000}
    STATIC = {"/wp-includes/css/dist/block-library/style.min.css": "Style", "/wp-includes/js/jquery/jquery.min.js": "Script"}
    # Prefixes of paths, the most specific ones first.
    PATHS = STATIC | {"/archives/category/": "Category", "/archives/date/": "Year", "/archives/author/": "Author",
                      "/archives/": "Post", "/page/": "Older", "/feed": "Feed", "/wp-json/wp/v2/posts": "Json",
                      "/wp-login.php": "Login"}
    CHILDREN = 16

    def __init__(self, database, sizes, at_once):
        if why := wordpress.missing():
            sys.exit(f"NOT MEASURED: {why}")
        self.running = wordpress.WordPress(sizes["posts"], at_once or self.CHILDREN)
        self.address = self.running.address

    def stop(self):
        self.running.close()

    @classmethod
    def page_of(cls, request):
        path, first = split(request)
        if path == "/":
            return "Search" if first == "s" else "Home"
        return next((name for start, name in cls.PATHS.items() if path.startswith(start)), path)


SITES = {"auction": Auction, "wordpress": WordPress}


def split(request):
    """Returns the path of a request or a template, and the name of its first parameter, if any."""
    path, _, query = request.split(" ")[-1].partition("?")
    return path, re.split("[=&]", query)[0]


def pages(kind, scenario):
    """Returns each page of a site with the request by which the scenario's visitors load it."""
    requests = re.findall(r'^request = "(.+)"', Path(scenario).read_text(), re.M)
    return {kind.page_of(request): request for request in requests}


def drawn(request, number, chance):
    """Returns the n-th request of a class, with a number for each range in its text.

    The first range of up to FEW numbers takes its values in turn. Ranges that are written alike
    get the same number, as in a live run.
    """
    numbers = {}
    for blank, low, high in re.findall(r"(\{(\d+)\.\.(\d+)\})", request):
        low, many = int(low), int(high) - int(low) + 1
        is_in_turns = many <= FEW and not any(few for _, few in numbers.values())
        value = low + (number % many if is_in_turns else chance.randrange(many))
        numbers.setdefault(blank, (str(value), is_in_turns))
    for blank, (value, _) in numbers.items():
        request = request.replace(blank, value)
    return request


def there(site):
    """Returns the available databases of the site, or exits if there is none."""
    names = [name for name in SITES[site].databases if DATABASES[name].is_there()]
    return names or sys.exit(f"{site}: no database: start this by scripts/with-databases {' '.join(SITES[site].databases)} -- …")

"""Runs a private MediaWiki of the distribution behind nginx and PHP-FPM: its own database, nothing of /etc.

It is stock, with the cache that its installer offers if there is APCu. Two things that would disturb the measurement are
off: requests to other hosts, and jobs that run after pages."""

import datetime
import os
import random
import secrets
import subprocess

import stack

NAME = "mediawiki"
DATABASE = "mariadb"
PRESET = "mediawiki"
SCENARIO = "lab/scenarios/application-mediawiki.toml"
GOAL = "pages read"
TRANSACTIONS = "/index.php/Special:UserLogin"
# The URLs that `scripts/applications classes` requests in addition to links, and the classes that URLs must have.
FORMS = ["/index.php?title=Special:Search&search=word1", "/index.php?search=word1&title=Special%3ASearch&go=Go", "/index.php/Page_7"]
CLASSES = [
    (r"[?&](search|diff|oldid)=", "heavy"),
    (r"[?&]action=history", "heavy"),
    (r"Special:(RecentChanges|WhatLinksHere|Search|AllPages)", "heavy"),
    (r"[?&]action=edit|Special:UserLogin", "edit"),
    (r"^/load\.php", "load"),
    (r"^/index\.php/Page_\d+$", "other"),
]
LIMIT = 8  # requests at once that HAProxy lets through
STYLES = "/load.php?lang=en&modules=site.styles&only=styles&skin=vector"
PACKAGE = "/usr/share/mediawiki"
PAGES, REVISIONS, WORDS, LENGTH = 3000, 3, 2000, 300
SETTINGS = """
$wgServer = 'http://' . ($_SERVER['HTTP_HOST'] ?? '127.0.0.1');
$wgMainCacheType = CACHE_ACCEL;
$wgJobRunRate = 0;
$wgPingback = false;
"""


def start(processes, root):
    """Starts the wiki in the folder `root`. Returns its URL."""
    pages = root / "pages"
    stack.copy(PACKAGE, pages)
    php = lambda script, *options, **more: subprocess.run(
        ["php", pages / "maintenance" / script, *options], check=True, stdout=subprocess.DEVNULL, **more)
    password = secrets.token_hex(16)
    php("install.php", "--dbtype", "mysql", "--dbserver", os.environ["BYWASH_MARIADB"], "--dbname", "shop", "--dbuser", "shop",
        "--dbpass", "lab", "--installdbuser", "shop", "--installdbpass", "lab", "--server", "http://127.0.0.1", "--scriptpath",
        "", "--lang", "en", "--pass", password, "--confpath", pages, "A wiki of pages", "Lab")
    with open(pages / "LocalSettings.php", "a") as settings:
        settings.write(SETTINGS)
    php("importDump.php", "--quiet", "--no-updates", input=dump().encode())
    for script in ("rebuildrecentchanges.php", "rebuildtextindex.php"):
        php(script, "--quiet")
    php("initSiteStats.php", "--quiet", "--update")
    return stack.php(processes, root, pages, "        location / { try_files $uri $uri/ /index.php?$args; }\n")


def popular():
    """Returns the paths that readers read, the most popular first."""
    return [f"/index.php/Page_{number}" for number in range(1, PAGES + 1)]


def tail():
    """Returns the paths that scrapers read: each page, its history, and its former revision."""
    paths = popular()
    for number in range(1, PAGES + 1):
        paths += [f"/index.php?title=Page_{number}&action=history", f"/index.php?title=Page_{number}&oldid={number * REVISIONS}"]
    return paths


def configuration(url, root):
    """Returns the text of a configuration file for bywash: that of `bywash init mediawiki`, in mode enforce."""
    file = root / "scrape.toml"
    init = [os.environ["BYWASH"], "init", PRESET, "--upstream", url, "--out", file, "--force"]
    subprocess.run(init, check=True, stdout=subprocess.DEVNULL)
    return file.read_text().replace('mode = "observe"', 'mode = "enforce"', 1)


def dump():
    """Returns linked pages of made-up words, as an export of another wiki. Only the date changes between calls."""
    chance = random.Random(5)
    newest = datetime.datetime.now(datetime.UTC).replace(microsecond=0) - datetime.timedelta(days=1)
    parts = ['<mediawiki xmlns="http://www.mediawiki.org/xml/export-0.11/" version="0.11" xml:lang="en">']
    for number in range(1, PAGES + 1):
        parts.append(f"<page><title>Page {number}</title><ns>0</ns><id>{number + 10}</id>")
        for revision in range(REVISIONS):
            at = newest - datetime.timedelta(minutes=(REVISIONS - revision) * PAGES - number)
            text = "\n\n".join(
                f"== Section {section} ==\n" + " ".join(f"word{chance.randint(1, WORDS)}" for _ in range(LENGTH // 5))
                + f" [[Page {chance.randint(1, PAGES)}]]" for section in range(5))
            parts.append(
                f"<revision><id>{number * REVISIONS + revision}</id><timestamp>{at:%Y-%m-%dT%H:%M:%SZ}</timestamp>"
                f"<contributor><username>Writer {number % 7}</username><id>{number % 7 + 10}</id></contributor>"
                f"<comment>Revision {revision}</comment><model>wikitext</model><format>text/x-wiki</format>"
                f'<text xml:space="preserve">{text}</text></revision>')
        parts.append("</page>")
    return "".join(parts) + "</mediawiki>"

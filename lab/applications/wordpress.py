"""Runs a private WordPress of the distribution behind nginx and PHP-FPM: its own database, nothing of /etc.

Its configuration and its content are those of lab/elephants."""

import importlib.util
import os
import secrets
import shutil
import subprocess

import stack
from bywash_lab.places import ROOT

NAME = "wordpress"
DATABASE = "mariadb"
PRESET = "wordpress"
SCENARIO = "lab/scenarios/application-wordpress.toml"
GOAL = "posts read"  # in time; the first column of a table
TRANSACTIONS = "/wp-login.php /wp-comments-post.php /wp-admin/"  # paths that HAProxy puts first
# The URLs that `scripts/applications classes` requests in addition to links, and the classes that URLs must have.
FORMS = ["/?s=word1", "/?s=word1&paged=2", "/wp-json/wp/v2/posts?search=word1"]
CLASSES = [
    (r"[?&]s=", "search"),
    (r"/feed/?(\?|$)|[?&]feed=", "search"),
    (r"^/wp-json/wp/v2/.*[?&]search=", "search"),
    (r"^/xmlrpc\.php", "machine"),
    (r"^/$|^/\?(p|page_id|paged|m|cat|author|tag)=[^&]*$", "other"),
]
POSTS = int(os.environ.get("APPLICATIONS_POSTS", 12000))

_spec = importlib.util.spec_from_file_location("elephants_wordpress", ROOT / "lab/elephants/wordpress.py")
elephants = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(elephants)

# The files of examples/wordpress/README.md, by their places in wp-content.
FILES = {
    "mu-plugins/bywash/bywash.php": "native/sentry/php/bywash.php",
    "mu-plugins/bywash.php": "examples/wordpress/mu-plugin.php",
    "db.php": "examples/wordpress/db.php",
}


def start(processes, root, stopd=None):
    """Starts the blog in the folder `root`. If `stopd` is the path of a stop daemon's socket, the blog has the files that
    lease its queries there. Returns its URL."""
    pages = root / "pages"
    stack.copy(elephants.PACKAGE, pages)
    (pages / "wp-config.php").write_text(
        elephants.CONFIG.format(database=os.environ["BYWASH_MARIADB"], secret=secrets.token_hex(32)))
    subprocess.run(["php", ROOT / "lab/elephants/wordpress.php", pages, str(POSTS)], check=True,
                   stdout=subprocess.DEVNULL)
    environment = os.environ
    if stopd:
        (pages / "wp-content/mu-plugins/bywash").mkdir(parents=True)
        for place, file in FILES.items():
            shutil.copy(ROOT / file, pages / "wp-content" / place)
        environment = environment | {"BYWASH_STOPD": str(stopd)}
    return stack.php(processes, root, pages, "        location / { try_files $uri $uri/ /index.php?$args; }\n", env=environment)

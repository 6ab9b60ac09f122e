"""Runs a private WordPress of the distribution behind nginx and PHP-FPM: its own database, nothing of /etc.

Its configuration and its content are those of lab/elephants."""

import importlib.util
import os
import secrets
import subprocess

import stack

NAME = "wordpress"
DATABASE = "mariadb"
PRESET = "wordpress"
SCENARIO = "lab/scenarios/application-wordpress.toml"
GOAL = "posts read"  # in time; the first column of a table
TRANSACTIONS = "/wp-login.php /wp-comments-post.php /wp-admin/"  # paths that HAProxy puts first
POSTS = int(os.environ.get("APPLICATIONS_POSTS", 12000))

_spec = importlib.util.spec_from_file_location("elephants_wordpress", stack.ROOT / "lab/elephants/wordpress.py")
elephants = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(elephants)

# Names the request in front of each query that reads, for the stop daemon's `marks`. WordPress looks at the first word of
# a query that writes, so those stay as they are.
MARKS = """<?php
add_filter('query', function ($query) {
    $request = $_SERVER['BYWASH_REQUEST'] ?? '';
    return preg_match('/^[0-9a-f]{1,64}$/', $request) && preg_match('/^\\s*SELECT/i', $query)
        ? "/*bywash-request='$request'*/ $query" : $query;
});
"""


def start(processes, root, marks=False):
    """Starts the blog in this folder. Returns its URL."""
    pages = root / "pages"
    stack.copy(elephants.PACKAGE, pages)
    (pages / "wp-config.php").write_text(
        elephants.CONFIG.format(database=os.environ["BYWASH_MARIADB"], secret=secrets.token_hex(32)))
    if marks:
        (pages / "wp-content/mu-plugins").mkdir()
        (pages / "wp-content/mu-plugins/bywash.php").write_text(MARKS)
    subprocess.run(["php", stack.ROOT / "lab/elephants/wordpress.php", pages, str(POSTS)], check=True,
                   stdout=subprocess.DEVNULL)
    return stack.php(processes, root, pages, "        location / { try_files $uri $uri/ /index.php?$args; }\n")

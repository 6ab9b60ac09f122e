"""Runs cgit of the distribution behind nginx, with a copy of this project's repository: nothing of /etc.

It has no cache. It highlights sources with the program that its package has for this."""

import functools
import shutil
import subprocess

import stack
from bywash_lab.places import ROOT

NAME = "cgit"
TRANSACTIONS = "/none"
STYLES = "/static/cgit.css"
PACKAGE = "/usr/share/cgit"
LIMIT = 2  # requests at once, behind HAProxy and bywash: cgit computes all the time, and the site has one core
COMMITS = 400  # of which scrapers read the pages
SETTINGS = """
css=/static/cgit.css
logo=/static/cgit.png
virtual-root=/
source-filter=/usr/lib/cgit/filters/syntax-highlighting.sh
enable-blame=1
cache-size=0
repo.url=bywash
repo.path={repository}
"""
PLACES = """
        location /static/ {{ alias {package}/; }}
        location / {{
            include /etc/nginx/fastcgi_params;
            fastcgi_param SCRIPT_FILENAME /usr/lib/cgit/cgit.cgi;
            fastcgi_param PATH_INFO $uri;
            fastcgi_param CGIT_CONFIG {root}/cgitrc;
            fastcgi_pass unix:{root}/cgi.sock;
        }}
"""
CONFIGURATION = """
version = 1
mode = "enforce"

[upstream]
server = "{url}"
# fcgiwrap works on when its client has left.
departures = "unnoticed"
limit = {limit}
"""


def git(*arguments):
    return subprocess.run(["git", "-C", ROOT, *arguments], check=True, capture_output=True, text=True).stdout


def start(processes, root):
    """Starts cgit in the folder `root`. Returns its URL."""
    repository = root / "repository.git"
    shutil.rmtree(repository, ignore_errors=True)
    git("clone", "--quiet", "--bare", "--no-hardlinks", ROOT, repository)
    (root / "cgitrc").write_text(SETTINGS.format(repository=repository))
    return stack.cgi(processes, root, PLACES.format(root=root, package=PACKAGE))


def configuration(url, _):
    """Returns the text of a configuration file for bywash. It has no classes: there is no preset for cgit."""
    return CONFIGURATION.format(url=url, limit=LIMIT)


# The checkout may get more commits during a run, and the copy that cgit serves does not have them.
@functools.cache
def popular():
    """Returns the paths that readers read, the most popular first: the project, its log, folders and files."""
    files = git("ls-tree", "-r", "-t", "--name-only", "HEAD").split("\n")[:-1]
    files.sort(key=lambda path: (path.count("/"), path))
    return ["/", "/bywash/", "/bywash/log/", "/bywash/tree/", *(f"/bywash/tree/{path}" for path in files)]


@functools.cache
def tail():
    """Returns the paths that scrapers read: each commit, its tree and its difference, and files as they were then."""
    commits = git("log", f"--max-count={COMMITS}", "--format=%H").split()
    of = lambda commit: set(git("ls-tree", "-r", "--name-only", commit).split("\n"))
    files = sorted(path for path in of(commits[0]) & of(commits[-1]) if path.endswith((".rs", ".md", ".py")))
    paths = []
    for number, commit in enumerate(commits):
        paths += [f"/bywash/{page}/?id={commit}" for page in ("commit", "diff", "tree", "log")]
        for page in ("tree", "log", "blame"):
            paths.append(f"/bywash/{page}/{files[7 * number % len(files)]}?id={commit}")
    return paths

"""A private Apache (prefork, mod_php) with mod_bywash_sentry on loopback.

tests/apache, tests/lamp and scripts/stacks use it. It has a folder of its own, and a free
address of 127/8.
"""

import http.client
import os
import pathlib
import random
import shutil
import socket
import subprocess
import sys
import time

sys.dont_write_bytecode = True

HERE = pathlib.Path(__file__).resolve().parent
PHP = HERE.parent / "php/bywash.php"
MODULES = pathlib.Path("/usr/lib/apache2/modules")
PORT = 8080
PATIENCE = 30

CONFIG = """
ServerRoot {root}
ServerName test
Listen {address}:{port}
PidFile {root}/pid
DefaultRuntimeDir {root}
ErrorLog {root}/error.log
LogLevel warn
User {user}
Group {group}
LoadModule mpm_prefork_module {modules}/mod_mpm_prefork.so
LoadModule authz_core_module {modules}/mod_authz_core.so
LoadModule dir_module {modules}/mod_dir.so
LoadModule setenvif_module {modules}/mod_setenvif.so
LoadModule php_module {php}
StartServers {children}
MinSpareServers 1
MaxSpareServers 10
MaxRequestWorkers {children}
KeepAliveTimeout 300
DocumentRoot {root}/pages
DirectoryIndex index.php
<FilesMatch "[.]php$">
    SetHandler application/x-httpd-php
</FilesMatch>
{more}
"""

# The module, and the file that its README prepends to each page.
SENTRY = """
LoadModule bywash_sentry_module {out}/mod_bywash_sentry.so
BywashSentrySocket {socket}
BywashTrustedPeer 127.0.0.1
php_admin_value auto_prepend_file {prepend}
<Location />
    BywashSentry On
</Location>
<Location /off>
    BywashSentry Off
</Location>
"""

USER = "nobody"


def missing(out):
    """Return why Apache cannot be tested here; None if it can."""
    if shutil.which("apache2") is None:
        return "there is no apache2"
    if not php_module() or not (MODULES / "mod_mpm_prefork.so").exists():
        return "there is no libapache2-mod-php"
    if not (out / "mod_bywash_sentry.so").exists():
        return "it was not built: there is no apxs (apache2-dev)"
    return None


def php_module():
    return max(MODULES.glob("libphp*.so"), default=None)


def sentry(root, out, daemon):
    """Return the lines of Apache's configuration for the sentry.

    Copy the prepended PHP file to a place where Apache can read it.
    """
    shutil.copy(PHP, root)
    return SENTRY.format(out=out, socket=daemon, prepend=root / PHP.name)


class Apache:
    """A running Apache.

    `pages` has the texts of pages by path, and `more` further lines of the configuration.
    close() ends Apache.
    """

    def __init__(self, root, out, pages, more, children):
        self.root = root
        self.address = f"127.{random.randint(1, 254)}.{random.randint(0, 255)}.{random.randint(1, 254)}"
        for page, text in pages.items():
            (root / "pages" / page).parent.mkdir(parents=True, exist_ok=True)
            (root / "pages" / page).write_text(text)
        group = "nogroup" if "nogroup:" in pathlib.Path("/etc/group").read_text() else "nobody"
        (root / "httpd.conf").write_text(CONFIG.format(
            root=root, address=self.address, port=PORT, modules=MODULES, php=php_module(), children=children,
            user=USER, group=group, more=more))
        self.process = subprocess.Popen(
            ["apache2", "-DFOREGROUND", "-f", str(root / "httpd.conf")],
            env=dict(os.environ, LD_LIBRARY_PATH=str(out)),
            start_new_session=True)  # Apache ends its process group when it ends.
        try:
            self.wait(self.connects, "Apache does not listen")
            self.wait(lambda: len(self.children()) == children, "Apache has no children")
        except BaseException:
            self.close()
            raise

    def wait(self, until, what):
        end = time.monotonic() + PATIENCE
        while not until():
            assert self.process.poll() is None, (self.root / "error.log").read_text()
            assert time.monotonic() < end, what
            time.sleep(0.01)

    def connects(self):
        try:
            socket.create_connection((self.address, PORT)).close()
            return True
        except ConnectionRefusedError:
            return False

    def children(self):
        return sorted(pathlib.Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split())

    def descriptors(self):
        return {child: len(os.listdir(f"/proc/{child}/fd")) for child in self.children()}

    def connect(self, source="127.0.0.1"):
        return socket.create_connection((self.address, PORT), timeout=PATIENCE, source_address=(source, 0))

    def log(self):
        return (self.root / "error.log").read_text()

    def close(self):
        self.process.terminate()
        self.process.wait()


def answer(client):
    """Return the body and the status of an answer, which has a length or chunks."""
    got = http.client.HTTPResponse(client)
    got.begin()
    return got.read().decode(), got.status

"""A private WordPress of the distribution's package, behind a private Apache with mod_php.

It runs on the MariaDB of scripts/with-databases, with its own folder and its own database, and uses
nothing in /etc. It is stock except for two settings. It does not look for updates, because these
requests would leave this machine. Its timed jobs do not run, because they would disturb the
measurement.
"""

import os
import pathlib
import secrets
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "native/sentry/tests"))
import httpd

PACKAGE = pathlib.Path("/usr/share/wordpress")
CONFIG = """<?php
define('DB_NAME', 'shop');
define('DB_USER', 'shop');
define('DB_PASSWORD', 'lab');
define('DB_HOST', '{database}');
define('DB_CHARSET', 'utf8mb4');
define('DB_COLLATE', '');
foreach (['AUTH', 'SECURE_AUTH', 'LOGGED_IN', 'NONCE'] as $of) {{
    define($of . '_KEY', '{secret}');
    define($of . '_SALT', '{secret}');
}}
define('WP_HOME', 'http://' . $_SERVER['HTTP_HOST']);
define('WP_SITEURL', 'http://' . $_SERVER['HTTP_HOST']);
define('WP_HTTP_BLOCK_EXTERNAL', true);
define('DISABLE_WP_CRON', true);
$table_prefix = 'wp_';
defined('ABSPATH') || define('ABSPATH', __DIR__ . '/');
require ABSPATH . 'wp-settings.php';
"""
MORE = """
KeepAliveTimeout 5
<Directory {root}/pages>
    FallbackResource /index.php
</Directory>
"""


def missing():
    """Returns the first missing requirement as a text, or None."""
    if not (PACKAGE / "wp-settings.php").exists():
        return "WordPress is not installed (apt: wordpress)"
    if not shutil.which("apache2") or not httpd.php_module():
        return "Apache with PHP is not installed (apt: libapache2-mod-php)"
    if not shutil.which("php") or subprocess.run(["php", "-r", "exit((int)!extension_loaded('mysqli'));"]).returncode:
        return "PHP with MySQL is not installed (apt: php-cli php-mysql)"
    return None


class WordPress:
    """A WordPress with this many posts, which serves `children` requests at a time. close() ends
    it.
    """

    def __init__(self, posts, children):
        self.folder = tempfile.TemporaryDirectory()
        root = pathlib.Path(self.folder.name)
        root.chmod(0o755)
        try:
            pages = root / "pages"
            # Its links lead to files of other packages.
            shutil.copytree(PACKAGE, pages, ignore_dangling_symlinks=True)
            (pages / "wp-config.php").write_text(
                CONFIG.format(database=os.environ["BYWASH_MARIADB"], secret=secrets.token_hex(32)))
            setup = ["php", ROOT / "lab/elephants/wordpress.php", pages, str(posts)]
            subprocess.run(setup, check=True, stdout=subprocess.DEVNULL)
            self.apache = httpd.Apache(root, root, {}, MORE.format(root=root), children)
        except BaseException:
            self.folder.cleanup()
            raise
        self.address = f"{self.apache.address}:{httpd.PORT}"

    def close(self):
        self.apache.close()
        self.folder.cleanup()

"""The databases of tests/lamp: one adapter class for each kind of database.

A class has the SQL statements, the PHP code and the error code of its database. It also runs
queries through the database's command line client.

Each search is a join of three sets of `books` titles, which counts the matches. It waits for
nothing, and its run time grows with the cube of `books`, although the table has only a thousand
rows.
"""

import os
import subprocess

ROWS = 1000
# The search text contains the name of the request, or `-`, so the database shows whose query it is.
QUERY = ("SELECT COUNT(DISTINCT a.id) FROM book a CROSS JOIN book b CROSS JOIN book c"
         " WHERE a.id <= $books AND b.id <= $books AND c.id <= $books"
         " AND CONCAT(a.title, b.title, c.title) NOT LIKE '%search-$name%'")
CHANGE = f"UPDATE book SET title = '$name' WHERE id = {ROWS} AND ({QUERY}) = $books"


class MariaDB:
    NAME = "MariaDB"
    CANCELLED = "1317"
    RUNNING = "select count(*) from information_schema.processlist where id <> connection_id() and info like"
    SEARCH = f'function work($shop, $name, $books) {{ return $shop->query("{QUERY}")->fetch_row()[0]; }}'
    WRITE = f'function work($shop, $name, $books) {{ $shop->query("{CHANGE}"); return $shop->affected_rows; }}'
    FILL = f"insert into book select seq, concat('The book of ', seq) from seq_1_to_{ROWS}"

    def __init__(self, at):
        self.host, self.port = at.split(":")

    def php(self):
        return f"""<?php
function shop() {{ return new mysqli('p:{self.host}', 'shop', 'lab', 'shop', {self.port}); }}
function number($shop) {{ return $shop->thread_id; }}
"""

    def server(self, user):
        return f"mysql://{user}@{self.host}:{self.port}/shop"

    def ask(self, query):
        return run(["mariadb", "--no-defaults", "--batch", "--skip-column-names", "-h", self.host, "-P", self.port,
                    "-u", "shop", "shop", "-e", query], MYSQL_PWD="lab")


class PostgreSQL:
    NAME = "PostgreSQL"
    CANCELLED = "57014"
    RUNNING = "select count(*) from pg_stat_activity where state = 'active' and pid <> pg_backend_pid() and query like"
    SEARCH = f'function work($shop, $name, $books) {{ return $shop->query("{QUERY}")->fetchColumn(); }}'
    WRITE = f'function work($shop, $name, $books) {{ return $shop->exec("{CHANGE}"); }}'
    FILL = f"insert into book select n, 'The book of ' || n from generate_series(1, {ROWS}) n"

    def __init__(self, at):
        self.host, self.port = at.split(":")

    def php(self):
        return f"""<?php
function shop()
{{
    return new PDO('pgsql:host={self.host};port={self.port};dbname=shop', 'shop', 'lab', [PDO::ATTR_PERSISTENT => true]);
}}
function number($shop) {{ return $shop->pgsqlGetPid(); }}
"""

    def server(self, user):
        return f"postgres://{user}@{self.host}:{self.port}/shop"

    def ask(self, query):
        return run(["psql", "-qAtX", "-h", self.host, "-p", self.port, "-U", "shop", "-d", "shop", "-c", query],
                   PGPASSWORD="lab")


def run(command, **environment):
    done = subprocess.run(command, env=dict(os.environ, **environment), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def installed():
    """Return the databases that scripts/with-databases has started, and why if there are none.

    Each database gets a table `book`.
    """
    found = [kind(os.environ[name]) for kind, name in [(MariaDB, "BYWASH_MARIADB"), (PostgreSQL, "BYWASH_POSTGRES")]
             if name in os.environ]
    for database in found:
        database.ask("create table if not exists book (id integer primary key, title varchar(200) not null)")
        database.ask("delete from book")
        database.ask(database.FILL)
    return found, None if found else "there is no database: scripts/with-databases"

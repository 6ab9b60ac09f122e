"""Measures how long a query continues after its client was killed. The database reports its queries."""

import os
import statistics
import subprocess

from bywash_lab.waiting import seconds_until

ROUNDS = 3
# The time in seconds after which a query that still runs counts as one that runs to its end.
LONGEST = 8
SLEEP = 60


class PostgreSQL:
    COMPUTES = "select count(*) from generate_series(1, 100000) a, generate_series(1, 100000) b where a + b < 0"
    SLEEPS = f"select pg_sleep({SLEEP})"

    def __init__(self, interval):
        self.host, self.port = os.environ["BYWASH_POSTGRES"].split(":")
        self.interval = interval
        self.name = f"PostgreSQL {self.ask('show server_version').split()[0]}, `client_connection_check_interval = {interval}`"

    def client(self, query):
        return ["psql", "-qAtX", "-h", self.host, "-p", self.port, "-U", "shop", "-d", "shop", "-c", query], {
            "PGPASSWORD": "lab", "PGOPTIONS": f"-c client_connection_check_interval={self.interval}"}

    def ask(self, query):
        return said(*self.client(query))

    def runs(self, mark):
        return self.ask("select count(*) from pg_stat_activity where state = 'active' and pid <> pg_backend_pid()"
                        f" and query like '%{mark}%'") != "0"

    def stop(self, mark):
        self.ask("select pg_terminate_backend(pid) from pg_stat_activity where pid <> pg_backend_pid()"
                 f" and query like '%{mark}%'")


class MariaDB:
    COMPUTES = "select count(*) from seq_1_to_100000 a, seq_1_to_100000 b where a.seq + b.seq < 0"
    SLEEPS = f"select sleep({SLEEP})"

    def __init__(self):
        self.host, self.port = os.environ["BYWASH_MARIADB"].split(":")
        self.name = f"MariaDB {self.ask('select version()').split('-')[0]}"

    def client(self, query):
        return ["mariadb", "--no-defaults", "--comments", "-BN", "-h", self.host, "-P", self.port, "-u", "shop", "shop", "-e", query], {
            "MYSQL_PWD": "lab"}

    def ask(self, query):
        return said(*self.client(query))

    def runs(self, mark):
        return self.ask("select count(*) from information_schema.processlist where id <> connection_id()"
                        f" and info like '%{mark}%'") != "0"

    def stop(self, mark):
        found = self.ask("select id from information_schema.processlist where id <> connection_id()"
                         f" and info like '%{mark}%'")
        if found:
            self.ask(f"kill {found}")


def said(command, environment):
    return subprocess.run(command, env=dict(os.environ, **environment), capture_output=True, text=True, check=True).stdout.strip()


def closes(database, query, number):
    """Returns the seconds for which a query continues after its client is killed, or None if it
    runs to its end.
    """
    mark = f"stacks {number} "
    command, environment = database.client(query.replace("select", f"select /* {mark}*/", 1))
    client = subprocess.Popen(command, env=dict(os.environ, **environment), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        assert seconds_until(lambda: database.runs(mark), 20) is not None, "the query does not begin"
        client.kill()
        return seconds_until(lambda: not database.runs(mark), LONGEST)
    finally:
        client.kill()
        client.wait()
        database.stop(mark)


def cell(endings):
    if None not in endings:
        return f"ends within {1000 * statistics.median(endings):.0f} ms"
    return "runs on" if set(endings) == {None} else f"runs on {endings.count(None)} of {len(endings)}"


def rows():
    databases = []
    if "BYWASH_POSTGRES" in os.environ:
        databases += [PostgreSQL("0"), PostgreSQL("100ms")]
    if "BYWASH_MARIADB" in os.environ:
        databases.append(MariaDB())
    for database in databases:
        kinds = [database.SLEEPS, database.COMPUTES]
        yield database.name, [cell([closes(database, query, number) for number in range(ROUNDS)]) for query in kinds]

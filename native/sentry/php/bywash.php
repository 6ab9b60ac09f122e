<?php
/* For PHP behind Apache with mod_bywash_sentry (auto_prepend_file): says to the stop daemon which connection to a
 * database works for this request, so that the query ends when the client leaves, and nobody else's.
 *
 *   $rows = Bywash\leased($mysqli, 'shop', fn ($shop) => $shop->query('SELECT ...')->fetch_all());
 *
 * `shop` is the database's name in the daemon's configuration. A query that is cancelled fails with the database's
 * own error. If the request has been stopped already, the script ends with status 503 in place of the query.
 *
 * The rule of the daemon: a cancellation of a connection is under way only while it is leased. So a lease that was
 * asked for must be given back, and if the daemon does not say that it was, the connection is killed: a cancellation
 * that comes late must not hit whoever has it next (connections may be persistent). This request itself may go on
 * with it until it ends, so that a daemon that dies or dawdles breaks no page: in PostgreSQL and MariaDB the daemon
 * aims at the statement that it has seen. In MySQL it can aim at a connection only, so there it is killed at once. If
 * there is no daemon, or this is no request that is watched, the work runs as ever.
 *
 * Environment: BYWASH_SENTRY_SOCKET (the module sets it; else /run/bywash/sentry.sock), BYWASH_SENTRY_PATIENCE (100:
 * milliseconds). */
declare(strict_types=1);

namespace Bywash;

/** How long the daemon may take for an answer, in milliseconds. */
function patience(): int
{
    return (int) (getenv('BYWASH_SENTRY_PATIENCE') ?: 100);
}

/** Runs $work($connection) while the connection is leased to this request, and gives what it returns. */
function leased(\mysqli|\PDO|\PgSql\Connection $connection, string $database, callable $work): mixed
{
    static $running;
    $running ??= new \WeakMap();
    $desk = Desk::of_this_request();
    if ($desk === null || isset($running[$connection])) {
        return $work($connection);
    }
    $lease = "{$desk->request} $database " . number_of($connection);
    $desk->lease($lease, $connection);
    $running[$connection] = true;
    try {
        return $work($connection);
    } finally {
        unset($running[$connection]);
        $desk->release($lease);
    }
}

/** The number that the database has for the connection. */
function number_of(\mysqli|\PDO|\PgSql\Connection $connection): int
{
    static $numbers;
    $numbers ??= new \WeakMap();
    if ($connection instanceof \mysqli) {
        return $connection->thread_id;
    }
    if ($connection instanceof \PgSql\Connection) {
        return pg_get_pid($connection);
    }
    // A question to the database, once for each connection.
    return $numbers[$connection] ??= match ($connection->getAttribute(\PDO::ATTR_DRIVER_NAME)) {
        'mysql' => (int) $connection->query('SELECT CONNECTION_ID()')->fetchColumn(),
        'pgsql' => $connection->pgsqlGetPid(),
    };
}

/** Ends a connection on its server's side: closing one that is persistent would lend it to the next. What is on
 * its way may hit this very statement; so it is repeated until the connection fails. */
function kill(\mysqli|\PDO|\PgSql\Connection $connection): void
{
    if (is_closed($connection)) {
        return;
    }
    for ($attempt = 0; $attempt < 3; $attempt++) {
        try {
            if (!ask_for_its_end($connection)) {
                return;
            }
        } catch (\mysqli_sql_exception | \PDOException) {
            // Killed, or cancelled in this statement: the next attempt shows which.
        }
    }
    if ($connection instanceof \mysqli) {
        @$connection->close();
    }
}

/** Whether it is still there, as far as can be told. */
function ask_for_its_end(\mysqli|\PDO|\PgSql\Connection $connection): bool
{
    $terminate = 'SELECT pg_terminate_backend(pg_backend_pid())';
    if ($connection instanceof \PgSql\Connection) {
        @pg_query($connection, $terminate);
        return pg_connection_status($connection) === PGSQL_CONNECTION_OK;
    }
    $is_postgresql = $connection instanceof \PDO && $connection->getAttribute(\PDO::ATTR_DRIVER_NAME) === 'pgsql';
    @$connection->query($is_postgresql ? $terminate : 'KILL ' . number_of($connection));
    return true;
}

/** Whether its page has closed it: there is no way left to its server's side. */
function is_closed(\mysqli|\PDO|\PgSql\Connection $connection): bool
{
    try {
        number_of($connection);
        return false;
    } catch (\mysqli_sql_exception | \PDOException) {
        return false;
    } catch (\Error) {
        return true;
    }
}

/** Whether a cancellation that is on its way can hit a later statement of the connection. */
function knows_connections_only(\mysqli|\PDO|\PgSql\Connection $connection): bool
{
    $server = match (true) {
        $connection instanceof \mysqli => $connection->server_info,
        $connection instanceof \PDO && $connection->getAttribute(\PDO::ATTR_DRIVER_NAME) === 'mysql' =>
            $connection->getAttribute(\PDO::ATTR_SERVER_VERSION),
        default => null,
    };
    return $server !== null && !str_contains($server, 'MariaDB');
}

/** The stop daemon, as this request talks to it. */
final class Desk
{
    private int $number = 0;
    private string $unread = '';
    /** Connections by lease. */
    private array $held = [];
    /** Connections of which nobody says that nothing is on its way to them. Held, so that nobody else gets them. */
    private \SplObjectStorage $doubtful;

    private function __construct(public readonly string $request, private mixed $line)
    {
        $this->doubtful = new \SplObjectStorage();
    }

    /** Null: the request is not watched, or there is no daemon. */
    public static function of_this_request(): ?self
    {
        static $desk = null, $asked = false;
        if (!$asked) {
            $asked = true;
            $request = $_SERVER['BYWASH_REQUEST'] ?? '';
            $path = getenv('BYWASH_SENTRY_SOCKET') ?: '/run/bywash/sentry.sock';
            $line = $request === '' ? false : @stream_socket_client("unix://$path", timeout: patience() / 1000);
            if ($line !== false) {
                stream_set_blocking($line, false);
                $desk = new self($request, $line);
                register_shutdown_function($desk->end(...));
            }
        }
        return $desk;
    }

    public function lease(string $lease, \mysqli|\PDO|\PgSql\Connection $connection): void
    {
        if ($this->line === null) {
            return;
        }
        $answer = $this->ask("LEASE $lease");
        if (str_starts_with($answer ?? '', 'STOPPED')) {
            stopped();
        }
        if (str_starts_with($answer ?? '', 'ERR taken')) {
            kill($connection);
            throw new \RuntimeException('bywash: the connection was leased to another request, and is closed');
        }
        // It is held, or nobody knows: it has to be given back.
        if ($answer === null || $answer === 'OK') {
            $this->held[$lease] = $connection;
        }
    }

    /** Gives back what is held. Nothing that is aimed at the connection is under way then, or nobody else gets it. */
    public function release(string $lease): void
    {
        if (!isset($this->held[$lease])) {
            return;
        }
        $answer = $this->line === null ? null : $this->ask("RELEASE $lease");
        if ($answer !== 'OK' && !str_starts_with($answer ?? '', 'ERR not_leased')) {
            $this->doubt($this->held[$lease]);
        }
        unset($this->held[$lease]);
    }

    private function doubt(\mysqli|\PDO|\PgSql\Connection $connection): void
    {
        if (!is_closed($connection) && knows_connections_only($connection)) {
            kill($connection);
        } else {
            $this->doubtful->attach($connection);
        }
    }

    /** A script that ends within its work (exit, an error, a time limit) unwinds nothing. */
    public function end(): void
    {
        foreach (array_keys($this->held) as $lease) {
            $this->release($lease);
        }
        foreach ($this->doubtful as $connection) {
            kill($connection);
        }
    }

    /** Null: no answer in time. Nothing is asked any more then. */
    private function ask(string $order): ?string
    {
        $number = ++$this->number;
        $text = "$number $order\n";
        if (@fwrite($this->line, $text) === strlen($text)) {
            $until = hrtime(true) + patience() * 1_000_000;
            while (($answer = $this->next_line($until)) !== null) {
                if (str_starts_with($answer, "$number ")) {
                    return substr($answer, strlen("$number "));
                }
            }
        }
        $this->line = null;
        return null;
    }

    private function next_line(int $until): ?string
    {
        while (($end = strpos($this->unread, "\n")) === false) {
            $left = max(0, intdiv($until - hrtime(true), 1000));
            $readable = [$this->line];
            $none = null;
            if (@stream_select($readable, $none, $none, 0, $left) !== 1) {
                return null;
            }
            $part = fread($this->line, 4096);
            if ($part === false || $part === '') {
                return null;
            }
            $this->unread .= $part;
        }
        $line = substr($this->unread, 0, $end);
        $this->unread = substr($this->unread, $end + 1);
        return $line;
    }
}

/** Nobody waits for the answer: 503, should somebody read it all the same. */
function stopped(): never
{
    if (!headers_sent()) {
        http_response_code(503);
    }
    exit;
}

<?php
/* For PHP behind Apache with mod_bywash_sentry, or behind a gateway (auto_prepend_file): says to the stop daemon which
 * connection to a database works for this request, so that the query ends when the client leaves, and nobody else's.
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
 * there is no daemon, the request has no name, or nobody knows the connection's number, the work runs as ever.
 *
 * Environment: BYWASH_REQUEST, the request's name (the module sets it, or the server that passes the gateway's header
 * on: `fastcgi_param BYWASH_REQUEST $http_bywash_request;`), BYWASH_SENTRY (the module sets it; else
 * /run/bywash-sentry/sentry.sock), BYWASH_SENTRY_PATIENCE (100: milliseconds). */
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
    $number = $desk === null || isset($running[$connection]) ? null : number_if_known($connection);
    if ($number === null) {
        return $work($connection);
    }
    $lease = "{$desk->request} $database $number";
    $desk->lease($lease, $connection);
    $running[$connection] = true;
    try {
        return $work($connection);
    } finally {
        unset($running[$connection]);
        $desk->release($lease);
    }
}

/** What is wrong with a connection, the work finds out. */
function number_if_known(\mysqli|\PDO|\PgSql\Connection $connection): ?int
{
    try {
        return number_of($connection);
    } catch (\mysqli_sql_exception | \PDOException | \Error) {
        return null;
    }
}

/** The number that the database has for the connection. Null: it does not say, or is one that has none. */
function number_of(\mysqli|\PDO|\PgSql\Connection $connection): ?int
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
        'mysql' => ($answer = $connection->query('SELECT CONNECTION_ID()')) ? (int) $answer->fetchColumn() : null,
        'pgsql' => $connection->pgsqlGetPid(),
        default => null,
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
    // In a transaction that has failed, nothing is done before its end.
    $terminate = 'ROLLBACK; SELECT pg_terminate_backend(pg_backend_pid())';
    if ($connection instanceof \PgSql\Connection) {
        @pg_query($connection, $terminate);
        return pg_connection_status($connection) === PGSQL_CONNECTION_OK;
    }
    if ($connection instanceof \PDO && $connection->getAttribute(\PDO::ATTR_DRIVER_NAME) === 'pgsql') {
        // exec: two statements, prepared by nobody.
        @$connection->exec($terminate);
    } else {
        @$connection->query('KILL ' . number_of($connection));
    }
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
    private static ?self $desk = null;
    private static bool $is_asked = false;
    private int $number = 0;
    /** The script is over: nothing is leased any more, so nothing has to be given back. */
    private bool $is_over = false;
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
        if (!self::$is_asked) {
            self::$is_asked = true;
            $request = $_SERVER['BYWASH_REQUEST'] ?? '';
            $path = getenv('BYWASH_SENTRY') ?: '/run/bywash-sentry/sentry.sock';
            $is_name = preg_match('/\A[A-Za-z0-9._:-]{1,128}\z/', $request) === 1;
            $line = $is_name ? @stream_socket_client("unix://$path", timeout: patience() / 1000) : false;
            if ($line !== false) {
                self::$desk = new self($request, $line);
            }
        }
        return self::$desk;
    }

    public function lease(string $lease, \mysqli|\PDO|\PgSql\Connection $connection): void
    {
        if ($this->line === null || $this->is_over) {
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
        if ($this->is_over || !is_closed($connection) && knows_connections_only($connection)) {
            kill($connection);
        } else {
            $this->doubtful->attach($connection);
        }
    }

    /** A script that ends within its work (exit, an error, a time limit) unwinds nothing. This is its first shutdown
     * function if this file is prepended: one that is called before may call exit, and then the others are not. */
    public static function script_is_over(): void
    {
        self::$desk?->end();
    }

    /** After all of those, also if one has called exit; but not after a fatal error. */
    public function __destruct()
    {
        $this->end();
    }

    private function end(): void
    {
        $this->is_over = true;
        foreach (array_keys($this->held) as $lease) {
            $this->release($lease);
        }
        foreach ($this->doubtful as $connection) {
            kill($connection);
        }
        $this->doubtful = new \SplObjectStorage();
    }

    /** Null: no answer in time. Nothing is asked any more then. */
    private function ask(string $order): ?string
    {
        $number = ++$this->number;
        $text = "$number $order\n";
        $until = hrtime(true) + patience() * 1_000_000;
        if ($this->wait_until($until) && @fwrite($this->line, $text) === strlen($text)) {
            while ($this->wait_until($until) && str_ends_with($answer = @fgets($this->line) ?: '', "\n")) {
                if (str_starts_with($answer, "$number ")) {
                    return substr($answer, strlen("$number "), -1);
                }
            }
        }
        $this->line = null;
        return null;
    }

    /** The next word or line may take until then: a time of the stream's own, as stream_select() does not know
     * descriptors from 1024 on. False: it is later already. */
    private function wait_until(int $until): bool
    {
        $left = intdiv($until - hrtime(true), 1000);
        return $left > 0 && stream_set_timeout($this->line, intdiv($left, 1_000_000), $left % 1_000_000);
    }
}

/** Nobody waits for the answer: 503, should somebody read it all the same. */
function stopped(): never
{
    if (!headers_sent()) {
        // In place of a status line that the application has set, which http_response_code() leaves as it is.
        header('HTTP/1.1 503 Service Unavailable', true, 503);
    }
    exit;
}

register_shutdown_function(Desk::script_is_over(...));

<?php
/* For PHP behind Apache with mod_bywash_sentry, or behind a gateway (auto_prepend_file): tells the
 * stop daemon which database connection works for this request, so that only the query of this
 * request ends when the client leaves.
 *
 *   $rows = Bywash\leased($mysqli, 'shop', fn ($shop) => $shop->query('SELECT ...')->fetch_all());
 *
 * `shop` is the database's name in the daemon's configuration. If the request was stopped before
 * its query or during it, the script ends with status 503: the client has left, and nobody reads an
 * error. A query that fails for another reason, or that another program has cancelled, fails with
 * the database's own error.
 *
 * The daemon's rule: a cancellation of a connection is under way only while the connection is
 * leased. So a lease must be released, and if the daemon does not confirm that, the connection is
 * killed: a late cancellation must not hit its next user (connections may be persistent). This
 * request itself may go on with the connection until it ends, so that a dead or slow daemon breaks
 * no page: in PostgreSQL and MariaDB the daemon aims at the statement that it has seen. In MySQL it
 * can only aim at a connection, so there the connection is killed at once. If there is no daemon,
 * the request has no name, or the connection's number is unknown, the work runs as before. PHP's
 * error log says once in each process that a request has no name, or that the daemon refuses leases.
 *
 * Environment: BYWASH_REQUEST is the request's name. The module sets it, or the server that passes
 * the gateway's header on: `fastcgi_param BYWASH_REQUEST $http_bywash_request;`. BYWASH_STOPD is
 * the daemon's socket. The module sets it; the default is /run/bywash-stopd/stopd.sock.
 * BYWASH_STOPD_PATIENCE is the time limit for an answer in milliseconds; the default is 100. */
declare(strict_types=1);

namespace Bywash;

/** Returns the time in milliseconds within which the daemon must answer. */
function patience(): int
{
    return (int) (getenv('BYWASH_STOPD_PATIENCE') ?: 100);
}

/**
 * Runs $work($connection) while the connection is leased to this request, and returns its result.
 */
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
    } catch (\Throwable $error) {
        if (is_of_cancelled_query($error)) {
            $desk->end_if_stopped($lease, $connection);
        }
        throw $error;
    } finally {
        unset($running[$connection]);
        $desk->release($lease);
    }
}

/** Returns whether an error, or one that it wraps, says that a query was cancelled. */
function is_of_cancelled_query(\Throwable $error): bool
{
    for ($each = $error; $each !== null; $each = $each->getPrevious()) {
        // PostgreSQL's query_canceled, and ER_QUERY_INTERRUPTED of MariaDB and MySQL.
        $is_cancelled = match (true) {
            $each instanceof \mysqli_sql_exception => $each->getCode() === 1317,
            $each instanceof \PDOException =>
                ($each->errorInfo[0] ?? '') === '57014' || ($each->errorInfo[1] ?? 0) === 1317,
            default => false,
        };
        if ($is_cancelled) {
            return true;
        }
    }
    return false;
}

/**
 * Logs a message, unless this process has logged one of this kind. PHP forgets its variables at the
 * end of each request, but keeps persistent streams for the process. So the mark is a persistent
 * socket that does not block. It sends nothing. Where there is no such socket, nothing is logged.
 */
function log_once(string $kind, string $message): void
{
    $flags = STREAM_CLIENT_CONNECT | STREAM_CLIENT_PERSISTENT;
    $mark = @stream_socket_client("udp://127.0.0.1:9/bywash-$kind", flags: $flags);
    if ($mark !== false && stream_get_meta_data($mark)['blocked']) {
        stream_set_blocking($mark, false);
        error_log("bywash: $message");
    }
}

/**
 * Returns the database's number of the connection. Returns null after an error of the connection,
 * which the work will meet itself.
 */
function number_if_known(\mysqli|\PDO|\PgSql\Connection $connection): ?int
{
    try {
        return number_of($connection);
    } catch (\mysqli_sql_exception | \PDOException | \Error) {
        return null;
    }
}

/** Returns the database's number of the connection; null if it does not return one, or has none. */
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
    // This is a query to the database, so it runs once for each connection.
    return $numbers[$connection] ??= match ($connection->getAttribute(\PDO::ATTR_DRIVER_NAME)) {
        'mysql' => ($answer = $connection->query('SELECT CONNECTION_ID()')) ? (int) $answer->fetchColumn() : null,
        'pgsql' => $connection->pgsqlGetPid(),
        default => null,
    };
}

/**
 * Ends a connection on the server's side. To close a persistent connection would only return it for
 * its next user. A cancellation that is under way may hit the statement that ends the connection,
 * so that statement is repeated until the connection fails.
 */
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
            // The connection was killed, or this statement was cancelled: the next attempt shows
            // which.
        }
    }
    if ($connection instanceof \mysqli) {
        @$connection->close();
    }
}

/**
 * Asks the server to end the connection. Returns whether the connection is still there, as far as
 * is known.
 */
function ask_for_its_end(\mysqli|\PDO|\PgSql\Connection $connection): bool
{
    // A failed transaction refuses all statements before its end.
    $terminate = 'ROLLBACK; SELECT pg_terminate_backend(pg_backend_pid())';
    if ($connection instanceof \PgSql\Connection) {
        @pg_query($connection, $terminate);
        return pg_connection_status($connection) === PGSQL_CONNECTION_OK;
    }
    if ($connection instanceof \PDO && $connection->getAttribute(\PDO::ATTR_DRIVER_NAME) === 'pgsql') {
        // exec runs two statements, without preparing them.
        @$connection->exec($terminate);
    } else {
        @$connection->query('KILL ' . number_of($connection));
    }
    return true;
}

/**
 * Returns whether the page has closed the connection, so that its server cannot be reached by it
 * any more.
 */
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

/** Returns whether a cancellation that is under way can hit a later statement of the connection. */
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

/** The stop daemon's client in this request. */
final class Desk
{
    private static ?self $desk = null;
    private static bool $is_asked = false;
    private int $number = 0;
    /** Whether the script is over: nothing is leased any more, so nothing has to be released. */
    private bool $is_over = false;
    /** The connections under a lease, by the name of the lease. */
    private array $held = [];
    /**
     * Connections at which a cancellation may be aimed. They are kept, so that no other request
     * gets them.
     */
    private \SplObjectStorage $doubtful;

    private function __construct(public readonly string $request, private mixed $line)
    {
        $this->doubtful = new \SplObjectStorage();
    }

    /** Returns the client; null if the request has no name, or there is no daemon. */
    public static function of_this_request(): ?self
    {
        if (!self::$is_asked) {
            self::$is_asked = true;
            $request = $_SERVER['BYWASH_REQUEST'] ?? '';
            $path = getenv('BYWASH_STOPD') ?: '/run/bywash-stopd/stopd.sock';
            $is_name = preg_match('/\A[A-Za-z0-9._:-]{1,128}\z/', $request) === 1;
            // A script of the command line answers no request.
            if (!$is_name && PHP_SAPI !== 'cli') {
                $fault = $request === '' ? 'is missing' : 'is not a valid name';
                log_once('name', "the variable BYWASH_REQUEST $fault, so queries of this request are not leased "
                    . 'and run to their end: let mod_bywash_sentry or the web server set it');
            }
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
            throw new \RuntimeException('bywash: another request has leased the connection, which is closed now');
        }
        if (str_starts_with($answer ?? '', 'ERR ')) {
            // A line of another program at this socket may have any length and any bytes.
            $text = preg_replace('/[^ -~]/', '?', substr($answer, 0, 1024));
            log_once('refusal', "the stop daemon refuses a lease, so the query runs to its end: $text");
        }
        // The connection is leased, or may be: it has to be released.
        if ($answer === null || $answer === 'OK') {
            $this->held[$lease] = $connection;
        }
    }

    /**
     * Ends the script if its request was stopped. Only a lease learns that, so the lease is released
     * and taken again. It holds afterwards, unless the daemon has refused it.
     */
    public function end_if_stopped(string $lease, \mysqli|\PDO|\PgSql\Connection $connection): void
    {
        if ($this->release($lease)) {
            $this->lease($lease, $connection);
        }
    }

    /**
     * Releases a lease. Afterwards no cancellation is aimed at the connection, or no other request
     * gets it. Returns whether the daemon has confirmed that.
     */
    public function release(string $lease): bool
    {
        if (!isset($this->held[$lease])) {
            return false;
        }
        $answer = $this->line === null ? null : $this->ask("RELEASE $lease");
        $is_confirmed = $answer === 'OK' || str_starts_with($answer ?? '', 'ERR not_leased');
        if (!$is_confirmed) {
            $this->doubt($this->held[$lease]);
        }
        unset($this->held[$lease]);
        return $is_confirmed;
    }

    private function doubt(\mysqli|\PDO|\PgSql\Connection $connection): void
    {
        if ($this->is_over || !is_closed($connection) && knows_connections_only($connection)) {
            kill($connection);
        } else {
            $this->doubtful->attach($connection);
        }
    }

    /**
     * Ends the leases of a script that ends within its work (exit, an error, a time limit), which
     * unwinds nothing. This is the script's first shutdown function if this file is prepended. A
     * shutdown function that is called earlier may call exit, and then the later ones are not
     * called.
     */
    public static function script_is_over(): void
    {
        self::$desk?->end();
    }

    /**
     * Runs after all shutdown functions, also if one of them has called exit; but not after a fatal
     * error.
     */
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

    /**
     * Sends a line and returns the answer. Returns null if there is no answer in time; afterwards
     * no further line is sent.
     */
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

    /**
     * Sets the stream's timeout so that the next operation ends at $until. stream_select() does not
     * support descriptors from 1024 on. Returns false if $until has passed.
     */
    private function wait_until(int $until): bool
    {
        $left = intdiv($until - hrtime(true), 1000);
        return $left > 0 && stream_set_timeout($this->line, intdiv($left, 1_000_000), $left % 1_000_000);
    }
}

/** Ends the script, whose client has left: with 503, in case the answer is read all the same. */
function stopped(): never
{
    if (!headers_sent()) {
        // This replaces a status line that the application has set, which http_response_code()
        // would keep.
        header('HTTP/1.1 503 Service Unavailable', true, 503);
    }
    exit;
}

register_shutdown_function(Desk::script_is_over(...));

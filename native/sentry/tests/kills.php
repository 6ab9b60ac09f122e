<?php
/* Tests of php/bywash.php on real databases: the number of a connection is the database's own, and
 * a killed connection is gone, also for its next user if it is persistent. The error of a cancelled
 * query is recognised.
 *
 *   scripts/with-databases postgres mariadb -- php native/sentry/tests/kills.php */
declare(strict_types=1);
require __DIR__ . '/../php/bywash.php';

function check(bool $so, string $what): void
{
    if (!$so) {
        fwrite(STDERR, "not so: $what\n");
        exit(1);
    }
}

function fails(callable $query): bool
{
    try {
        return @$query() === false;
    } catch (Throwable) {
        return true;
    }
}

/** Checks a kill in a failed transaction, which refuses all statements but its end. */
function try_in_a_failed_transaction(string $what, callable $connect, callable $ask, callable $do): void
{
    $connection = $connect();
    $number = (int) $ask($connection);
    $do($connection, 'BEGIN');
    check(fails(fn () => $do($connection, 'SELECT 1 / 0')), "$what: a statement that fails");
    check(fails(fn () => $ask($connection)), "$what: the transaction has failed");
    Bywash\kill($connection);
    unset($connection);
    check((int) $ask($connect()) !== $number, "$what: nobody gets it again");
    echo "ok     a connection is killed also in a failed transaction: $what\n";
}

/**
 * Checks a kill. $connect returns a connection, $ask its number according to the database itself.
 */
function try_on(string $what, callable $connect, callable $ask): void
{
    $connection = $connect();
    $number = (int) $ask($connection);
    check(Bywash\number_of($connection) === $number, "$what: its number");
    check((int) $ask($connect()) > 0, "$what: others work");
    Bywash\kill($connection);
    check(fails(fn () => $ask($connection)), "$what: it is gone");
    unset($connection);
    check((int) $ask($connect()) !== $number, "$what: nobody gets it again");
    $closed = $connect();
    match (true) {
        $closed instanceof mysqli => $closed->close(),
        $closed instanceof PgSql\Connection => pg_close($closed),
        default => null,
    };
    Bywash\kill($closed);
    echo "ok     a connection that is killed is gone: $what\n";
}

/** Checks that the error of a cancelled query is recognised. $cancel cancels its own query. */
function try_cancelled(string $what, object $connection, string $cancel): void
{
    foreach ([$cancel => true, 'SELECT nothing FROM nowhere' => false] as $text => $is_cancelled) {
        try {
            $connection->query($text);
            check(false, "$what: $text fails");
        } catch (mysqli_sql_exception | PDOException $error) {
            check(Bywash\is_of_cancelled_query($error) === $is_cancelled, "$what: $text: {$error->getMessage()}");
        }
    }
    echo "ok     the error of a cancelled query is recognised: $what\n";
}

if ($at = getenv('BYWASH_MARIADB')) {
    [$host, $port] = explode(':', $at);
    $mysqli = fn ($prefix) => fn () => new mysqli("$prefix$host", 'shop', 'lab', 'shop', (int) $port);
    $number = fn ($shop) => $shop->query('SELECT CONNECTION_ID()')->fetch_row()[0];
    try_on('mysqli', $mysqli(''), $number);
    try_on('mysqli, persistent', $mysqli('p:'), $number);
    $cancel = 'KILL QUERY CONNECTION_ID()';
    try_cancelled('mysqli', $mysqli('')(), $cancel);
    try_cancelled('PDO on MariaDB', new PDO("mysql:host=$host;port=$port;dbname=shop", 'shop', 'lab'), $cancel);
    foreach ([false, true] as $persistent) {
        $pdo = fn () => new PDO("mysql:host=$host;port=$port;dbname=shop", 'shop', 'lab', [PDO::ATTR_PERSISTENT => $persistent]);
        try_on('PDO on MariaDB' . ($persistent ? ', persistent' : ''), $pdo, fn ($shop) => $shop->query('SELECT CONNECTION_ID()')->fetchColumn());
    }
}
if ($at = getenv('BYWASH_POSTGRES')) {
    [$host, $port] = explode(':', $at);
    foreach ([false, true] as $persistent) {
        $pdo = fn () => new PDO("pgsql:host=$host;port=$port;dbname=shop", 'shop', 'lab', [PDO::ATTR_PERSISTENT => $persistent]);
        $ask = fn ($shop) => $shop->query('SELECT pg_backend_pid()')->fetchColumn();
        try_on('PDO on PostgreSQL' . ($persistent ? ', persistent' : ''), $pdo, $ask);
        try_cancelled('PDO on PostgreSQL' . ($persistent ? ', persistent' : ''), $pdo(), 'SELECT pg_cancel_backend(pg_backend_pid()), pg_sleep(60)');
        try_in_a_failed_transaction('PDO' . ($persistent ? ', persistent' : ''), $pdo, $ask, fn ($shop, $text) => $shop->exec($text));
        $open = $persistent ? pg_pconnect(...) : pg_connect(...);
        $pg = fn () => $open("host=$host port=$port dbname=shop user=shop password=lab" . ($persistent ? '' : ' application_name=' . random_int(0, PHP_INT_MAX)));
        $ask = fn ($shop) => ($rows = pg_query($shop, 'SELECT pg_backend_pid()')) ? pg_fetch_result($rows, 0, 0) : false;
        try_on('pgsql' . ($persistent ? ', persistent' : ''), $pg, $ask);
        try_in_a_failed_transaction('pgsql' . ($persistent ? ', persistent' : ''), $pg, $ask, pg_query(...));
    }
}
foreach (['BYWASH_MARIADB' => 'MariaDB', 'BYWASH_POSTGRES' => 'PostgreSQL'] as $variable => $database) {
    if (!getenv($variable)) {
        fwrite(STDERR, "NOT TESTED: php/bywash.php on $database, there is none: scripts/with-databases\n");
    }
}

<?php
/*
 * For `stacks`: a page that waits for PostgreSQL. The query is leased to its request if
 * mod_bywash_sentry has named it.
 */
declare(strict_types=1);

[, , , $name] = explode('/', $_SERVER['REQUEST_URI']);
$observer = stream_socket_client('udp://127.0.0.1:' . getenv('STACKS_OBSERVER'));
[$host, $port] = explode(':', getenv('BYWASH_POSTGRES'));
$shop = new PDO("pgsql:host=$host;port=$port;dbname=shop", 'shop', 'lab', [PDO::ATTR_PERSISTENT => true]);
fwrite($observer, "$name step");
Bywash\leased($shop, 'shop', function ($shop) use ($observer, $name) {
    try {
        $shop->query('SELECT pg_sleep(0.8)')->fetchColumn();
    } catch (PDOException $error) {
        // PostgreSQL's code for a cancelled query. Any other error is a failure of the page.
        if ($error->getCode() === '57014') {
            fwrite($observer, "$name told");
        }
        throw $error;
    }
});
fwrite($observer, "$name done");
echo 'done';

<?php
/* A drop-in for WordPress (wp-content/db.php): queries of pages that only read end when their visitor leaves.
 *
 * It does nothing unless the gateway has named the request (`Bywash-Request`: 16 hexadecimal digits), bywash.php is there
 * and PHP is 8.1 or later. Then $wpdb is a wpdb that leases its connection to the stop daemon while it runs a SELECT.
 *
 * - Which pages: those of which the must-use plugin (mu-plugin.php) says that they only read. Until it has said so, and
 *   from a page's first query that may write, nothing is leased: what has begun to change something is finished.
 * - A lease adds nothing to the text of a query, and no query of its own. So `$wpdb->insert_id` (WordPress looks for INSERT
 *   at the beginning of the text), `rows_affected` and FOUND_ROWS() are what they are without it.
 * - A query that was cancelled gives WordPress an empty result, and a plugin may store that. So the page ends there, with
 *   status 503, as soon as the daemon has said that its request was stopped.
 *
 * Constants for wp-config.php: BYWASH_DATABASE, the name of [database.NAME] ("wordpress"), BYWASH_PHP, where
 * native/sentry/php/bywash.php was put (wp-content/mu-plugins/bywash/bywash.php). */

defined('ABSPATH') || exit;
defined('BYWASH_DATABASE') || define('BYWASH_DATABASE', 'wordpress');
defined('BYWASH_PHP') || define('BYWASH_PHP', WP_CONTENT_DIR . '/mu-plugins/bywash/bywash.php');

$bywash_request = $_SERVER['HTTP_BYWASH_REQUEST'] ?? '';
if (PHP_VERSION_ID >= 80100 && preg_match('/\A[0-9a-f]{16}\z/', $bywash_request) && is_readable(BYWASH_PHP)) {
    $_SERVER['BYWASH_REQUEST'] = $bywash_request;
    require_once BYWASH_PHP;

    class Bywash_Wpdb extends wpdb
    {
        /** Whether a SELECT of this page may be cancelled. The must-use plugin sets it. */
        public $bywash_reads = false;
        private $bywash_has_written = false;
        private $bywash_is_leased = false;

        public function query($query)
        {
            $reads = preg_match('/^[\s(]*SELECT\b/i', $query) === 1;
            if (!$reads && preg_match('/^\s*(?:SHOW|DESCRIBE|DESC|EXPLAIN)\b/i', $query) !== 1) {
                $this->bywash_reads = false;
                $this->bywash_has_written = true;
            }
            if (!$reads || !$this->bywash_reads || $this->bywash_has_written || $this->bywash_is_leased || !$this->dbh instanceof mysqli) {
                return parent::query($query);
            }
            $this->bywash_is_leased = true;
            try {
                $result = Bywash\leased($this->dbh, BYWASH_DATABASE, function () use ($query) {
                    return parent::query($query);
                });
            } catch (RuntimeException $error) {
                // The daemon has closed the connection: go on with another one, and without leases.
                $this->bywash_reads = false;
                $this->dbh = null;
                $this->db_connect(false);
                return parent::query($query);
            } finally {
                $this->bywash_is_leased = false;
            }
            if ($result === false && $this->bywash_is_cancelled()) {
                // The page ends here if the daemon says that it was stopped. Else somebody else has cancelled the query.
                Bywash\leased($this->dbh, BYWASH_DATABASE, function () {
                });
                $this->print_error($this->last_error);
            }
            return $result;
        }

        /** A query that was cancelled is reported once it is known that the page goes on. */
        public function print_error($str = '')
        {
            return $this->bywash_is_leased && $this->bywash_is_cancelled() ? false : parent::print_error($str);
        }

        private function bywash_is_cancelled()
        {
            return $this->dbh instanceof mysqli && mysqli_errno($this->dbh) === 1317;
        }
    }

    // Plugins that cache pages do not keep half of one.
    register_shutdown_function(function () {
        if (http_response_code() === 503 && !defined('DONOTCACHEPAGE')) {
            define('DONOTCACHEPAGE', true);
        }
    });

    $wpdb = new Bywash_Wpdb(DB_USER, DB_PASSWORD, DB_NAME, DB_HOST);
}
unset($bywash_request);

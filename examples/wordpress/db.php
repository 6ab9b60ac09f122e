<?php
/* A drop-in for WordPress (wp-content/db.php): the queries of pages that only read end when their
 * visitor leaves.
 *
 * It does nothing unless the gateway has named the request (`Bywash-Request`: 16 hexadecimal
 * digits), bywash.php is installed, and PHP is 8.1 or later. Then $wpdb is a wpdb that leases its
 * connection to the stop daemon while it runs a SELECT.
 *
 * - It applies to pages of which the must-use plugin (mu-plugin.php) says that they only read.
 *   Before the plugin has said so, and after a page's first query that may write, no query is
 *   leased. So a page that has begun to change something always finishes.
 * - A lease changes no query's text and adds no query. So `$wpdb->insert_id` (for which WordPress
 *   looks for INSERT at the beginning of the text), `rows_affected` and FOUND_ROWS() have their
 *   usual values.
 * - A cancelled query gives WordPress an empty result, which a plugin might store. So the page ends
 *   there, with status 503, as soon as the daemon has said that its request was stopped.
 *
 * Constants for wp-config.php: BYWASH_DATABASE is the name of [database.NAME] ("wordpress").
 * BYWASH_PHP is the path of bywash.php (default: wp-content/mu-plugins/bywash/bywash.php). */

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
                // The daemon has closed the connection. Go on with a new connection, and without
                // leases.
                $this->bywash_reads = false;
                $this->dbh = null;
                $this->db_connect(false);
                return parent::query($query);
            } finally {
                $this->bywash_is_leased = false;
            }
            if ($result === false && $this->bywash_is_cancelled()) {
                // If the daemon has stopped the request, this ends the page. Otherwise another
                // program has cancelled the query.
                Bywash\leased($this->dbh, BYWASH_DATABASE, function () {
                });
                $this->print_error($this->last_error);
            }
            return $result;
        }

        /**
         * Reports an error; that of a cancelled query only once it is known that the page goes on.
         */
        public function print_error($str = '')
        {
            return $this->bywash_is_leased && $this->bywash_is_cancelled() ? false : parent::print_error($str);
        }

        private function bywash_is_cancelled()
        {
            return $this->dbh instanceof mysqli && mysqli_errno($this->dbh) === 1317;
        }
    }

    // Plugins that cache pages must not store an incomplete one.
    register_shutdown_function(function () {
        if (http_response_code() === 503 && !defined('DONOTCACHEPAGE')) {
            define('DONOTCACHEPAGE', true);
        }
    });

    $wpdb = new Bywash_Wpdb(DB_USER, DB_PASSWORD, DB_NAME, DB_HOST);
}
unset($bywash_request);

<?php
/*
 * Plugin Name: bywash
 * Description: Ends queries of read-only pages when the visitor leaves. Reports orders' values.
 *
 * Install it as wp-content/mu-plugins/bywash.php. The first part is for db.php. The second part is
 * for WooCommerce and `revenue_header = "Order-Total"`. */

defined('ABSPATH') || exit;

/* Searches, archives, feeds and single posts or products only read. Pages do not, because cart,
 * checkout and account are pages. Use the filter `bywash_only_reads` if your site differs. */
add_action('pre_get_posts', function ($query) {
    global $wpdb;
    if (!$query->is_main_query() || !property_exists($wpdb, 'bywash_reads')) {
        return;
    }
    $gets = in_array($_SERVER['REQUEST_METHOD'] ?? '', ['GET', 'HEAD'], true) && !is_admin() && !isset($_GET['wc-api']);
    $lists = $query->is_search() || $query->is_archive() || $query->is_home() || $query->is_feed();
    $wpdb->bywash_reads = (bool) apply_filters('bywash_only_reads', $gets && ($lists || $query->is_single()), $query);
}, PHP_INT_MAX);

/* For an hour, the order-received page reports the order's value if the request has the order's key
 * and the order is paid or waits for a bank transfer (on-hold). An order that waits for another
 * payment, has failed or was cancelled has no value. Later visits only view the order. The gateway
 * removes the field. */
add_action('template_redirect', function () {
    if (headers_sent() || !function_exists('is_order_received_page') || !is_order_received_page()) {
        return;
    }
    $order = wc_get_order(absint(get_query_var('order-received')));
    $key = isset($_GET['key']) && is_string($_GET['key']) ? wp_unslash($_GET['key']) : '';
    if (!$order || !hash_equals($order->get_order_key(), $key) || !($order->is_paid() || $order->has_status('on-hold'))) {
        return;
    }
    $created = $order->get_date_created();
    if ($created && time() - $created->getTimestamp() < HOUR_IN_SECONDS) {
        header('Order-Total: ' . number_format((float) $order->get_total(), 2, '.', ''));
    }
});

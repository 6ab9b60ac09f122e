<?php
/* Installs the WordPress in the folder of its argument, which already has a wp-config.php. Fills it
   with categories, comments, and posts of made-up words, most of which occur in few posts. The
   content is the same each time. If the database already has a WordPress, it stays. */

const CATEGORIES = 20, WORDS = 20000, LENGTH = 400, COMMENTS = 4, AT_ONCE = 50;

[, $folder, $posts] = $argv;
define('WP_INSTALLING', true);
$_SERVER += ['HTTP_HOST' => '127.0.0.1', 'REQUEST_URI' => '/', 'REQUEST_METHOD' => 'GET'];

/* Replaces a function of the installation that would send an e-mail. */
function wp_new_blog_notification($title, $url, $user, $password) {}

require "$folder/wp-load.php";
require ABSPATH . 'wp-admin/includes/upgrade.php';
if (is_blog_installed()) {
    exit(0);
}
wp_install('A site of posts', 'lab', 'lab@example.org', true, '', 'lab');

mt_srand(5);
$insert = function (string $table, array $columns, array $rows) use ($wpdb) {
    foreach (array_chunk($rows, AT_ONCE) as $some) {
        $values = array_map(fn($row) => $wpdb->prepare('(' . implode(',', array_fill(0, count($row), '%s')) . ')', $row), $some);
        if ($wpdb->query("INSERT INTO $table (" . implode(',', $columns) . ') VALUES ' . implode(',', $values)) === false) {
            fwrite(STDERR, "wordpress: $wpdb->last_error\n");
            exit(1);
        }
    }
};

$categories = [];
for ($number = 1; $number <= CATEGORIES; $number++) {
    $categories[] = wp_insert_term("Category $number", 'category', ['slug' => "category-$number"])['term_taxonomy_id'];
}

$articles = $places = $remarks = [];
for ($number = 10; $number < 10 + $posts; $number++) {
    $text = '';
    for ($word = 0; $word < LENGTH; $word++) {
        $text .= 'word' . mt_rand(1, WORDS) . ($word % 80 == 79 ? ".\n\n" : ' ');
    }
    $at = sprintf('%d-%02d-%02d 12:00:00', 2020 + $number % 5, 1 + $number % 12, 1 + $number % 28);
    $articles[] = [$number, 1, $at, $at, $text, "Post $number", "Of post $number.", "post-$number", $at, $at, '', '', '', COMMENTS];
    $places[] = [$number, $categories[mt_rand(0, CATEGORIES - 1)]];
    for ($remark = 0; $remark < COMMENTS; $remark++) {
        $remarks[] = [$number, "Reader $remark", 'reader@example.org', $at, $at, 'word' . mt_rand(1, WORDS), ''];
    }
}
$insert($wpdb->posts, ['ID', 'post_author', 'post_date', 'post_date_gmt', 'post_content', 'post_title', 'post_excerpt',
    'post_name', 'post_modified', 'post_modified_gmt', 'to_ping', 'pinged', 'post_content_filtered', 'comment_count'], $articles);
$insert($wpdb->term_relationships, ['object_id', 'term_taxonomy_id'], $places);
$insert($wpdb->comments, ['comment_post_ID', 'comment_author', 'comment_author_email', 'comment_date', 'comment_date_gmt',
    'comment_content', 'comment_agent'], $remarks);
wp_update_term_count_now($categories, 'category');
/* WordPress calls this setting "Numeric". */
$wp_rewrite->set_permalink_structure('/archives/%post_id%');
create_initial_taxonomies();
flush_rewrite_rules(false);

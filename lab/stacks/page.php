<?php
/*
 * For `stacks`: a page that works in small steps. `how` is plain, or ask, which writes at each
 * step.
 */
declare(strict_types=1);

[, $how, $name] = explode('/', $_SERVER['REQUEST_URI']);
$observer = stream_socket_client('udp://127.0.0.1:' . getenv('STACKS_OBSERVER'));
for ($step = 0; $step < 40; $step++) {
    fwrite($observer, "$name step");
    usleep(20000);
    if ($how === 'ask') {
        echo ' ';
        // Distributions set output_buffering, and flush() alone does not empty that buffer.
        if (ob_get_level() > 0) {
            ob_flush();
        }
        flush();
    }
}
fwrite($observer, "$name done");
echo 'done';

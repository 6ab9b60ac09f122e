/* Apache httpd module: it tells the stop daemon when the client of a running request leaves.
 *
 *   LoadModule bywash_sentry_module /usr/lib/apache2/modules/mod_bywash_sentry.so
 *   BywashSentrySocket /run/bywash-stopd/stopd.sock
 *   BywashTrustedPeer 192.0.2.7
 *   <Location /shop>
 *       BywashSentry On
 *   </Location>
 *
 * The path is that of `apxs -q LIBEXECDIR`. On Debian, `a2enmod bywash_sentry` writes this first
 * line.
 *
 * Each request has a name. It is that of the header Bywash-Request, if a trusted peer (a gateway)
 * has sent it, else sixteen random hexadecimal digits. No peer is trusted unless BywashTrustedPeer
 * names it: behind a local TLS terminator or a tunnel, every client would have a local address. The
 * application reads the name from the same header or from the variable BYWASH_REQUEST, and sends it
 * to the daemon with each database connection that it uses (php/bywash.php). The variable
 * BYWASH_STOPD has the path of the daemon's socket.
 *
 * The component that assigns the name also decides when to stop. Applications make several calls
 * for one request under the same name, so the end of one connection says nothing about the name.
 * Therefore a client is only watched if its request's name was made here. For peers that name
 * requests but do not send stops, there is BywashSentryStopsFor all.
 *
 * The client is watched from the moment at which the request's configuration is known until the
 * last byte of its answer has been produced (not: sent). The daemon decides what follows from a
 * departure; Apache itself goes on as before. If there is no daemon, one line of the error log says
 * so, and nothing else changes: no call here blocks.
 *
 * Paper 4, section 4.1: "Each Apache process that receives a registered signal notifies a stop
 * daemon". This module uses a callback in place of the signal: in a child with mod_php a handler
 * must not jump, and the main thread need not be interrupted. Streams of HTTP/2 have no socket of
 * their own and are not watched. */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "bywash/sentry.h"

#include "httpd.h"
#include "http_config.h"
#include "http_connection.h"
#include "http_core.h"
#include "http_log.h"
#include "http_main.h"
#include "http_protocol.h"
#include "http_request.h"
#include "apr_general.h"
#include "apr_network_io.h"
#include "apr_portable.h"
#include "apr_strings.h"
#include "util_filter.h"

module AP_MODULE_DECLARE_DATA bywash_sentry_module;
APLOG_USE_MODULE(bywash_sentry);

#define HEADER "Bywash-Request"
#define VARIABLE "BYWASH_REQUEST"
#define VARIABLE_OF_SOCKET "BYWASH_STOPD"
#define FILTER "BYWASH_SENTRY"
#define LONGEST_NAME 128

/* The state of a request that has a name. It lives in the request's pool. */
struct watched {
    char name[LONGEST_NAME + 1];
    int is_own; /* whether the name was made here */
    int fd;
    int is_watched;
};

/* -1 means: not set. */
struct per_location {
    int on;
    int stops_for_all;
};

/* --- The stop daemon: one connection of the process, made when it is needed. --- */

static struct {
    pthread_mutex_t lock; /* held for calls that do not block */
    int fd;
    unsigned long number; /* of the last line */
    int is_silent;        /* whether it was logged that the daemon cannot be reached */
} daemon_line = {.lock = PTHREAD_MUTEX_INITIALIZER, .fd = -1};
#define USUAL_PATH "/run/bywash-stopd/stopd.sock"
static char daemon_path[sizeof((struct sockaddr_un *)0)->sun_path];

static void hang_up(void) {
    if (daemon_line.fd >= 0) {
        close(daemon_line.fd);
        daemon_line.fd = -1;
    }
}

/* Reads and drops the daemon's answers, so that they do not fill the socket's buffers. Returns
 * whether the daemon is still connected. */
static int swallow_answers(void) {
    char answers[4096];
    ssize_t length;
    while ((length = recv(daemon_line.fd, answers, sizeof answers, MSG_DONTWAIT)) > 0) {
    }
    return length < 0 && (errno == EAGAIN || errno == EINTR);
}

static int dial(void) {
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    apr_cpystrn(at.sun_path, daemon_path, sizeof at.sun_path);
    daemon_line.fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    /* With a full backlog, connect() fails with EAGAIN and does not block. */
    if (daemon_line.fd >= 0 && connect(daemon_line.fd, (struct sockaddr *)&at, sizeof at) == 0) {
        return 1;
    }
    int error = errno;
    hang_up();
    errno = error;
    return 0;
}

/* Sends a line whole, or ends the connection: after a part of a line, the connection is useless.
 * Returns whether the line was sent. */
static int send_line(const char *line, size_t length) {
    ssize_t sent = send(daemon_line.fd, line, length, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent == (ssize_t)length) {
        return 1;
    }
    int error = sent < 0 ? errno : EAGAIN;
    hang_up();
    errno = error;
    return 0;
}

static void say_once(int sent, int error) {
    if (!sent && !daemon_line.is_silent) {
        ap_log_error(APLOG_MARK, APLOG_WARNING, APR_FROM_OS_ERROR(error), ap_server_conf,
                     "bywash: no stop daemon listens on %s: queries of clients that leave run on", daemon_path);
    }
    daemon_line.is_silent = !sent;
}

static void stop(const char *name) {
    char line[LONGEST_NAME + 64];
    pthread_mutex_lock(&daemon_line.lock);
    int length = snprintf(line, sizeof line, "%lu STOP %s client_left\n", ++daemon_line.number, name);
    if (daemon_line.fd >= 0 && !swallow_answers()) {
        hang_up();
    }
    int sent = (daemon_line.fd >= 0 || dial()) && send_line(line, (size_t)length);
    say_once(sent, errno);
    pthread_mutex_unlock(&daemon_line.lock);
}

/* --- A request --- */

/* Called on the sentry's thread. The request waits in unwatch() until this has returned. */
static void client_left(uint64_t cookie, int why) {
    (void)why;
    stop(((struct watched *)(uintptr_t)cookie)->name);
}

static void unwatch(struct watched *watched) {
    if (watched->is_watched) {
        watched->is_watched = 0;
        socket_unwatch(watched->fd);
    }
}

static apr_status_t request_is_over(void *watched) {
    unwatch(watched);
    return APR_SUCCESS;
}

static void watch(request_rec *r, struct watched *watched) {
    struct socket_watch_opts opts = {.size = sizeof opts, .cookie = (uintptr_t)watched, .cb = client_left};
    apr_socket_t *socket = ap_get_conn_socket(r->connection);
    if (r->connection->master != NULL || socket == NULL || apr_os_sock_get(&watched->fd, socket) != APR_SUCCESS) {
        return;
    }
    if (socket_watch_ex(watched->fd, &opts) == 0) {
        watched->is_watched = 1;
    } else if (errno == ESHUTDOWN || errno == ECONNRESET) {
        stop(watched->name);
    } else {
        ap_log_rerror(APLOG_MARK, APLOG_WARNING, APR_FROM_OS_ERROR(errno), r, "bywash: cannot watch the client of this request");
    }
}

/* Returns whether the whole answer has been produced. A bucket without a known length (a pipe) is
 * still being produced, even if the end-of-stream bucket follows it. */
static int is_produced(apr_bucket_brigade *answer) {
    for (apr_bucket *at = APR_BRIGADE_FIRST(answer); at != APR_BRIGADE_SENTINEL(answer); at = APR_BUCKET_NEXT(at)) {
        if (at->length == (apr_size_t)-1) {
            return 0;
        }
        if (APR_BUCKET_IS_EOS(at)) {
            return 1;
        }
    }
    return 0;
}

/* Ends the watch when the answer's end has been produced: a client that leaves later leaves no work
 * to stop. The filter stands behind the filters of a resource, which an internal redirect removes,
 * and behind the one that reads buckets of unknown length. */
static apr_status_t see_the_end(ap_filter_t *filter, apr_bucket_brigade *answer) {
    struct watched *watched = filter->ctx;
    if (watched->is_watched && is_produced(answer)) {
        unwatch(watched);
    }
    return ap_pass_brigade(filter->next, answer);
}

static int is_name(const char *text) {
    size_t length = strlen(text);
    return length > 0 && length <= LONGEST_NAME
        && strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._:-") == length;
}

static apr_array_header_t *trusted_peers;

static int is_trusted(apr_sockaddr_t *peer) {
    for (int i = 0; i < trusted_peers->nelts; i++) {
        if (apr_ipsubnet_test(APR_ARRAY_IDX(trusted_peers, i, apr_ipsubnet_t *), peer)) {
            return 1;
        }
    }
    return 0;
}

static int give_name(request_rec *r, struct watched *watched) {
    const char *given = apr_table_get(r->headers_in, HEADER);
    unsigned char random[8];
    if (given != NULL && is_name(given) && is_trusted(r->connection->client_addr)) {
        apr_cpystrn(watched->name, given, sizeof watched->name);
        return 1;
    }
    if (apr_generate_random_bytes(random, sizeof random) != APR_SUCCESS) {
        return 0;
    }
    ap_bin2hex(random, sizeof random, watched->name);
    watched->is_own = 1;
    return 1;
}

/* Returns the state of the request that this one is a part of, or follows. */
static struct watched *watched_before(request_rec *r) {
    for (; r != NULL; r = r->main != NULL ? r->main : r->prev) {
        struct watched *watched = ap_get_module_config(r->request_config, &bywash_sentry_module);
        if (watched != NULL) {
            return watched;
        }
    }
    return NULL;
}

static int begin(request_rec *r) {
    struct per_location *location = ap_get_module_config(r->per_dir_config, &bywash_sentry_module);
    struct watched *watched = watched_before(r);
    if (watched == NULL) {
        request_rec *first = r;
        while (first->main != NULL) {
            first = first->main;
        }
        if (location->on != 1) {
            return DECLINED;
        }
        watched = apr_pcalloc(first->pool, sizeof *watched);
        if (!give_name(r, watched)) {
            return DECLINED;
        }
        ap_set_module_config(first->request_config, &bywash_sentry_module, watched);
        if (watched->is_own || location->stops_for_all == 1) {
            apr_pool_cleanup_register(first->pool, watched, request_is_over, apr_pool_cleanup_null);
            ap_add_output_filter(FILTER, watched, first, first->connection);
            watch(first, watched);
        }
    }
    apr_table_setn(r->headers_in, HEADER, watched->name);
    apr_table_setn(r->subprocess_env, VARIABLE, watched->name);
    apr_table_setn(r->subprocess_env, VARIABLE_OF_SOCKET, daemon_path);
    return DECLINED;
}

/* --- Configuration --- */

static void *new_location(apr_pool_t *pool, char *path) {
    struct per_location *location = apr_pcalloc(pool, sizeof *location);
    (void)path;
    location->on = location->stops_for_all = -1;
    return location;
}

static void *merge_locations(apr_pool_t *pool, void *outer, void *nested) {
    struct per_location *location = apr_pmemdup(pool, nested, sizeof *location);
    if (location->on == -1) {
        location->on = ((struct per_location *)outer)->on;
    }
    if (location->stops_for_all == -1) {
        location->stops_for_all = ((struct per_location *)outer)->stops_for_all;
    }
    return location;
}

static const char *set_stops_for(cmd_parms *command, void *location, const char *whom) {
    (void)command;
    if (strcasecmp(whom, "own") != 0 && strcasecmp(whom, "all") != 0) {
        return "BywashSentryStopsFor takes own or all";
    }
    ((struct per_location *)location)->stops_for_all = strcasecmp(whom, "all") == 0;
    return NULL;
}

static const char *set_socket(cmd_parms *command, void *location, const char *path) {
    const char *error = ap_check_cmd_context(command, GLOBAL_ONLY);
    (void)location;
    if (error != NULL) {
        return error;
    }
    if (path[0] != '/' || strlen(path) >= sizeof daemon_path) {
        return "BywashSentrySocket takes an absolute path of at most 107 bytes";
    }
    apr_cpystrn(daemon_path, path, sizeof daemon_path);
    return NULL;
}

static const char *trust(apr_pool_t *pool, const char *network) {
    char *address = apr_pstrdup(pool, network), *bits = strchr(address, '/');
    if (bits != NULL) {
        *bits++ = '\0';
    }
    apr_ipsubnet_t **subnet = apr_array_push(trusted_peers);
    if (apr_ipsubnet_create(subnet, address, bits, pool) != APR_SUCCESS) {
        return apr_pstrcat(pool, "BywashTrustedPeer takes an IP address or a network, and not ", network, NULL);
    }
    return NULL;
}

static const char *set_trusted(cmd_parms *command, void *location, const char *network) {
    const char *error = ap_check_cmd_context(command, GLOBAL_ONLY);
    (void)location;
    if (error != NULL) {
        return error;
    }
    return strcasecmp(network, "none") == 0 ? NULL : trust(command->pool, network);
}

/* Runs before each reading of the configuration. */
static int new_configuration(apr_pool_t *pool, apr_pool_t *log, apr_pool_t *temporary) {
    (void)log, (void)temporary;
    trusted_peers = apr_array_make(pool, 4, sizeof(apr_ipsubnet_t *));
    apr_cpystrn(daemon_path, USUAL_PATH, sizeof daemon_path);
    return OK;
}

static const command_rec commands[] = {
    AP_INIT_FLAG("BywashSentry", ap_set_flag_slot, (void *)APR_OFFSETOF(struct per_location, on), OR_OPTIONS,
                 "On or Off: watch clients while their requests run"),
    AP_INIT_TAKE1("BywashSentryStopsFor", set_stops_for, NULL, RSRC_CONF | ACCESS_CONF,
                  "report departures for own (requests that this server named) or all (also requests that a peer named)"),
    AP_INIT_TAKE1("BywashSentrySocket", set_socket, NULL, RSRC_CONF, "the UNIX socket of the stop daemon: " USUAL_PATH),
    AP_INIT_ITERATE("BywashTrustedPeer", set_trusted, NULL, RSRC_CONF,
                    "the addresses and networks of peers that may name requests; default: none"),
    {NULL},
};

static void register_hooks(apr_pool_t *pool) {
    (void)pool;
    ap_hook_pre_config(new_configuration, NULL, NULL, APR_HOOK_MIDDLE);
    ap_hook_fixups(begin, NULL, NULL, APR_HOOK_FIRST);
    ap_register_output_filter(FILTER, see_the_end, NULL, AP_FTYPE_TRANSCODE);
}

module AP_MODULE_DECLARE_DATA bywash_sentry_module = {
    STANDARD20_MODULE_STUFF, new_location, merge_locations, NULL, NULL, commands, register_hooks,
#ifdef AP_MODULE_FLAG_NONE
    AP_MODULE_FLAG_NONE,
#endif
};

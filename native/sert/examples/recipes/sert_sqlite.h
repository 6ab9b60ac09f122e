/* Ends SQLite's statements when their request is stopped.
 *
 *     sert_sqlite_watch(db, 5000);                            // once, after sqlite3_open
 *
 *     SERT_mask();                                            // in a request
 *     int rc = SERT_UNACCOUNTED(sqlite3_prepare_v2(db, sql, -1, &statement, NULL));
 *     while ((rc = SERT_UNACCOUNTED(sqlite3_step(statement))) == SQLITE_ROW)
 *         add_row(statement);
 *     SERT_UNACCOUNTED(sqlite3_finalize(statement));
 *     sert_sqlite_leave(db);
 *     SERT_unmask();                                          // a due stop happens here
 *
 * The progress handler returns an error, because only SQLite can release its locks and pages: a
 * due sqlite3_step returns SQLITE_INTERRUPT. The program then finalizes its statements as after any
 * error. A connection outlives requests, so its memory and files are not the request's.
 *
 * SQLITE_INTERRUPT rolls back a statement that writes. If that statement is in a transaction of
 * BEGIN, SQLite rolls back the whole transaction. A statement that reads leaves the transaction
 * open, so sert_sqlite_leave rolls it back. */
#ifndef SERT_SQLITE_H
#define SERT_SQLITE_H

#include <sqlite3.h>
#include <stdint.h>
#include <time.h>

#include "sert_calls.h"

/* Instructions of SQLite's virtual machine between two checks. They take some microseconds. */
#define SERT_SQLITE_INSTRUCTIONS 1000

static int sert_sqlite_is_over(void *unused) {
    (void)unused;
    return sert_is_over() != 0;
}

/* Waits a millisecond for a lock of the file. It returns 0 to give up. */
static int sert_sqlite_wait(void *most_ms, int waits) {
    struct timespec millisecond = {0, 1000000};
    if (waits >= (intptr_t)most_ms || sert_is_over() != 0) {
        return 0;
    }
    nanosleep(&millisecond, NULL);
    return 1;
}

/* Installs both handlers. `most_ms` replaces the time of sqlite3_busy_timeout, which is not
 * interrupted. */
static inline void sert_sqlite_watch(sqlite3 *db, int most_ms) {
    sqlite3_progress_handler(db, SERT_SQLITE_INSTRUCTIONS, sert_sqlite_is_over, NULL);
    sqlite3_busy_handler(db, sert_sqlite_wait, (void *)(intptr_t)most_ms);
}

/* Rolls back the transaction that a request has left open. */
static inline void sert_sqlite_leave(sqlite3 *db) {
    if (!sqlite3_get_autocommit(db)) {
        SERT_UNACCOUNTED(sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL));
    }
}

#endif

// The recipe for SQLite, on a database in a file.
#include "recipes.h"

#include "sert_sqlite.h"

using namespace recipes;

namespace {

const char *const ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n";
const char *const MANY_ROWS = "SELECT a.text || b.text || c.text FROM words a, words b, words c, words d";
// SQLite sorts these rows in a temporary file.
const char *const SORTED_ROWS = "SELECT a.text || b.text || c.text AS x FROM words a, words b, words c, words d ORDER BY x";
const char *const MANY_INSERTS =
    "INSERT INTO words WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n";
const char *const THREE_MILLION =
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3000000) SELECT count(*) FROM n";

void run(sqlite3 *db, const char *sql) { CHECK(sqlite3_exec(db, sql, nullptr, nullptr, nullptr) == SQLITE_OK); }

std::string file() {
    static std::string path = "/tmp/sert-recipe-" + std::to_string(getpid()) + ".db";
    return path;
}

sqlite3 *open_database() {
    sqlite3 *db;
    CHECK(sqlite3_open(file().c_str(), &db) == SQLITE_OK);
    return db;
}

sqlite3 *make_database() {
    unlink(file().c_str());
    sqlite3 *db = open_database();
    run(db, "PRAGMA temp_store = file; PRAGMA cache_size = 20; CREATE TABLE words(text);"
            "INSERT INTO words WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100)"
            "SELECT 'word ' || i FROM n");
    return db;
}

// Reads the first number of the result. Called outside of requests.
long number(sqlite3 *db, const char *sql) {
    sqlite3_stmt *statement;
    CHECK(sqlite3_prepare_v2(db, sql, -1, &statement, nullptr) == SQLITE_OK);
    CHECK(sqlite3_step(statement) == SQLITE_ROW);
    long is = sqlite3_column_int64(statement, 0);
    sqlite3_finalize(statement);
    return is;
}

// Runs a statement as sert_sqlite.h describes, and keeps the rows. Returns SQLite's last result.
int handle(sqlite3 *db, const char *sql) {
    std::vector<std::string> rows;
    sqlite3_stmt *statement;
    SERT_mask();
    int rc = SERT_UNACCOUNTED(sqlite3_prepare_v2(db, sql, -1, &statement, nullptr));
    CHECK(rc == SQLITE_OK);
    while ((rc = SERT_UNACCOUNTED(sqlite3_step(statement))) == SQLITE_ROW) {
        rows.emplace_back(reinterpret_cast<const char *>(sqlite3_column_text(statement, 0)));
    }
    SERT_UNACCOUNTED(sqlite3_finalize(statement));
    sert_sqlite_leave(db);
    SERT_unmask();
    return rc;
}

void is_whole(sqlite3 *db) {
    CHECK(sqlite3_next_stmt(db, nullptr) == nullptr);
    CHECK(sqlite3_get_autocommit(db) == 1);
    CHECK(number(db, "SELECT count(*) FROM words") == 100);
    CHECK(number(db, "SELECT quick_check = 'ok' FROM pragma_quick_check") == 1);
    next_request([db] { CHECK(handle(db, "SELECT text FROM words") == SQLITE_DONE); });
    CHECK(sqlite3_close(db) == SQLITE_OK);
    unlink(file().c_str());
}

void without_the_hook_a_stop_waits_for_the_statement() {
    sqlite3 *db = make_database();
    start_library(granted(5, 5));
    static volatile long counted = 0;
    CHECK(request([db] {
              counted = number(db, THREE_MILLION);
              for_ever();
          }) == SERT_RAN_TOO_LONG);
    CHECK(counted == 3000000);
    CHECK(stats().gated + stats().locked > 0);
    unlink(file().c_str());
}

volatile int last;

void stopped_statements_leave_a_whole_database() {
    sqlite3 *db = make_database();
    sert_sqlite_watch(db, 5000);
    start_library(granted(10, 10));
    const char *const statements[] = {ENDLESS, MANY_ROWS, SORTED_ROWS};
    int which = 0;
    stops_leave_nothing([&] {
        const char *sql = statements[which++ % 3];
        SERT_MASKED(last = handle(db, sql));
    });
    CHECK(last == SQLITE_INTERRUPT);
    is_whole(db);
}

void a_stop_rolls_back_a_transaction() {
    sqlite3 *db = make_database();
    sert_sqlite_watch(db, 5000);
    start_library(granted(20, 20));
    static int open_after_read = -1;
    CHECK(request([db] {
              CHECK(SERT_UNACCOUNTED(sqlite3_exec(db, "BEGIN; DELETE FROM words", nullptr, nullptr, nullptr)) == SQLITE_OK);
              SERT_mask();
              CHECK(SERT_UNACCOUNTED(sqlite3_exec(db, ENDLESS, nullptr, nullptr, nullptr)) == SQLITE_INTERRUPT);
              open_after_read = !sqlite3_get_autocommit(db);
              sert_sqlite_leave(db);
              SERT_unmask();
          }) == SERT_RAN_TOO_LONG);
    CHECK(open_after_read == 1);
    CHECK(number(db, "SELECT count(*) FROM words") == 100);
    static int open_after_write = -1;
    CHECK(request([db] {
              SERT_mask();
              CHECK(SERT_UNACCOUNTED(sqlite3_exec(db, "BEGIN; DELETE FROM words", nullptr, nullptr, nullptr)) == SQLITE_OK);
              CHECK(SERT_UNACCOUNTED(sqlite3_exec(db, MANY_INSERTS, nullptr, nullptr, nullptr)) == SQLITE_INTERRUPT);
              open_after_write = !sqlite3_get_autocommit(db);
              SERT_unmask();
          }) == SERT_RAN_TOO_LONG);
    CHECK(open_after_write == 0);
    is_whole(db);
}

void a_wait_for_the_files_lock_ends() {
    sqlite3 *db = make_database(), *other = open_database();
    sert_sqlite_watch(db, 3600 * 1000);
    start_library(granted(20, 20));
    run(other, "BEGIN EXCLUSIVE");
    CHECK(request([db] { SERT_MASKED(last = handle(db, "SELECT text FROM words")); }) == SERT_RAN_TOO_LONG);
    CHECK(last == SQLITE_BUSY);
    run(other, "ROLLBACK");
    sqlite3_close(other);
    is_whole(db);
}

void an_ordered_stop_ends_a_statement() {
    sqlite3 *db = make_database();
    sert_sqlite_watch(db, 5000);
    start_library(granted(3600 * 1000, 3600 * 1000));
    {
        Order order;
        CHECK(request([&] { order.await(), handle(db, ENDLESS); }) == SERT_CLIENT_GONE);
    }
    is_whole(db);
}

}  // namespace

int main(int argc, char **argv) {
    return main_of(argc, argv,
                   {TEST("waits", without_the_hook_a_stop_waits_for_the_statement),
                    TEST("whole", stopped_statements_leave_a_whole_database),
                    TEST("transaction", a_stop_rolls_back_a_transaction), TEST("busy", a_wait_for_the_files_lock_ends),
                    TEST("ordered", an_ordered_stop_ends_a_statement)});
}

// [paper 2.12] The cost of libsert for requests that use libraries: the same program with and
// without it, in one run.
//
//   libraries            a table: processor time of a request without, with, and the median ratio of
//                        15 pairs of runs, with the lowest and the highest
//   libraries measure    the measurements of one process: name, microseconds on each line
//   libraries run NAME   runs one of them, for a profiler
//
// The program is started again with LD_PRELOAD and without it.
#define SERT_WEAK
#include <libxml/parser.h>
#include <libxml/xpath.h>
#include <setjmp.h>
#include <sqlite3.h>
#include <time.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "sert.h"

namespace {

constexpr int PAIRS = 15;

double processor_us() {
    timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) * 1e6 + static_cast<double>(now.tv_nsec) / 1e3;
}

// Parses a document of 500 elements, and counts some of them.
std::string text;
void prepare_xml() {
    text = "<list>";
    for (int i = 0; i < 500; i++) {
        text += "<item n='" + std::to_string(i) + "'><name>name " + std::to_string(i % 50) + "</name></item>";
    }
    text += "</list>";
    xmlInitParser();
}
void parse_xml() {
    xmlDocPtr document = xmlReadMemory(text.data(), static_cast<int>(text.size()), nullptr, nullptr, 0);
    xmlXPathContextPtr context = xmlXPathNewContext(document);
    xmlXPathObjectPtr found = xmlXPathEval(BAD_CAST "//item[name='name 7']", context);
    if (!found || found->nodesetval->nodeNr != 10) abort();
    xmlXPathFreeObject(found);
    xmlXPathFreeContext(context);
    xmlFreeDoc(document);
}

// Prepares a statement over 2,000 rows, reads its result, and finalizes it. The connection is older
// than the request.
sqlite3 *db;
void prepare_sqlite() {
    if (sqlite3_open(":memory:", &db) != SQLITE_OK) abort();
    sqlite3_exec(db, "CREATE TABLE words(text, number); INSERT INTO words WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL "
                     "SELECT i + 1 FROM n WHERE i < 2000) SELECT 'word ' || (i % 40), i FROM n", nullptr, nullptr, nullptr);
}
void query_sqlite() {
    if (SERT_PRESENT) SERT_unaccounted_begin();
    sqlite3_stmt *statement;
    sqlite3_prepare_v2(db, "SELECT text, sum(number) FROM words GROUP BY text ORDER BY 2", -1, &statement, nullptr);
    int rows = 0;
    while (sqlite3_step(statement) == SQLITE_ROW) rows++;
    sqlite3_finalize(statement);
    if (rows != 40) abort();
    if (SERT_PRESENT) SERT_unaccounted_end();
}

// 200 times: three blocks, and their end.
void *volatile escape;
void nothing() {}
void use_memory() {
    for (int i = 0; i < 200; i++) {
        void *one = escape = malloc(64), *two = escape = strdup("some text of the request"), *three = escape = malloc(500);
        free(one), free(two), free(three);
    }
}

struct Work {
    const char *name;
    int times;
    void (*prepare)(), (*request)();
};
const std::vector<Work> works = {
    {"libxml2: parse and XPath", 600, prepare_xml, parse_xml},
    {"SQLite: a query", 600, prepare_sqlite, query_sqlite},
    {"200 x 3 blocks of memory", 20000, nothing, use_memory},
};

sigjmp_buf point;
void serve(const Work &work) {
    if (!SERT_PRESENT) return work.request();
    if (sigsetjmp(point, 0)) abort();
    SERT_register_rollbackpoint(&point);
    SERT_start();
    work.request();
    SERT_end();
}

void start_library() {
    sert_arg arg = {};
    arg.size = sizeof arg;
    arg.lb_ms = arg.ub_ms = 60000;
    if (SERT_PRESENT && (SERT_init_timer(SIGRTMIN + 4) || SERT_set_args(&arg))) abort();
}

double measure(const Work &work) {
    work.prepare();
    for (int i = 0; i < work.times / 10; i++) serve(work);
    double began = processor_us();
    for (int i = 0; i < work.times; i++) serve(work);
    return (processor_us() - began) / work.times;
}

std::vector<double> run(const std::string &program, const std::string &library) {
    std::string command = (library.empty() ? "" : "LD_PRELOAD='" + library + "' ") + program + " measure";
    FILE *pipe = popen(command.c_str(), "r");
    std::vector<double> all;
    for (double us; pipe && fscanf(pipe, "%*[^,],%lf\n", &us) == 1;) all.push_back(us);
    if (!pipe || pclose(pipe) != 0 || all.size() != works.size()) {
        fprintf(stderr, "cannot measure: %s\n", command.c_str());
        exit(1);
    }
    return all;
}

double median(std::vector<double> all) {
    std::sort(all.begin(), all.end());
    return all[all.size() / 2];
}

void compare(const std::string &program, const std::string &library) {
    std::vector<std::vector<double>> without(works.size()), with(works.size()), ratios(works.size());
    for (int pair = 0; pair < PAIRS; pair++) {
        std::vector<double> a = run(program, ""), b = run(program, library);
        for (size_t i = 0; i < works.size(); i++) {
            without[i].push_back(a[i]), with[i].push_back(b[i]), ratios[i].push_back(b[i] / a[i]);
        }
    }
    printf("| a request | without libsert, µs | with libsert, µs | ratio | lowest | highest |\n|---|---|---|---|---|---|\n");
    for (size_t i = 0; i < works.size(); i++) {
        auto ends = std::minmax_element(ratios[i].begin(), ratios[i].end());
        printf("| %s | %.1f | %.1f | %.3f | %.3f | %.3f |\n", works[i].name, median(without[i]), median(with[i]),
               median(ratios[i]), *ends.first, *ends.second);
    }
}

}  // namespace

int main(int argc, char **argv) {
    std::string program = argv[0], how = argc > 1 ? argv[1] : "";
    if (argc == 1) {
        compare(program, program.substr(0, program.find_last_of('/') + 1) + "libsert.so.1");
        return 0;
    }
    start_library();
    if (argc == 3 && how == "run") {
        for (const Work &work : works) {
            if (std::string(work.name).rfind(argv[2], 0) == 0) return measure(work) > 0 ? 0 : 1;
        }
    }
    if (argc == 2 && how == "measure") {
        for (const Work &work : works) printf("%s,%f\n", work.name, measure(work));
        return 0;
    }
    fprintf(stderr, "libraries [measure | run NAME]\n");
    return 2;
}

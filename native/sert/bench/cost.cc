// [paper 2.12] The cost of libsert: the same program with and without it, in one run.
//
//   cost            a table: nanoseconds without, with, and their ratio (medians of 9 turns,
//                   taken by turns)
//   cost measure    the measurements of one process: name, nanoseconds on each line (for the table)
//
// The program is started again with LD_PRELOAD and without it, so "without" is the same program and
// no library. If there is a second allocator, it is compared too:
// COST_ALLOCATOR=/path/to/libmimalloc.so.
#define SERT_WEAK
#include <pthread.h>
#include <setjmp.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <map>
#include <string>
#include <vector>

#include "sert.h"

namespace {

constexpr int TURNS = 9;

double now_ns() {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

void *volatile escape;
sigjmp_buf point;

void in_request(bool begin) {
    if (!SERT_PRESENT) return;
    if (begin) SERT_start();
    else SERT_end();
}

void pair_of_malloc() {
    escape = malloc(64);
    free(escape);
}
pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
void pair_of_mutex() {
    pthread_mutex_lock(&mutex);
    pthread_mutex_unlock(&mutex);
}
void *blocks[1000];
void many_blocks() {
    uint32_t r = 1;
    for (auto &block : blocks) block = malloc((r = r * 1664525 + 1013904223) >> 22);
    for (auto &block : blocks) free(block);
}

// The same as in a worker: each request sets the rollback point again. A program without
// terminations has none.
volatile uint32_t work_of = 0;
void empty_request() {
    if (SERT_PRESENT) {
        if (sigsetjmp(point, 0)) abort();
        SERT_register_rollbackpoint(&point);
    }
    in_request(true);
    work_of = work_of + 1;
    in_request(false);
}
void request_with_blocks() {
    if (SERT_PRESENT) {
        if (sigsetjmp(point, 0)) abort();
        SERT_register_rollbackpoint(&point);
    }
    in_request(true);
    uint32_t r = 1;
    for (int i = 0; i < 100; i++) {
        blocks[i] = malloc((r = r * 1664525 + 1013904223) >> 22);
        *static_cast<char *>(blocks[i]) = 1;
    }
    for (int i = 0; i < 100; i++) free(blocks[i]);
    in_request(false);
}

double per_call(void (*call)(), int times) {
    for (int i = 0; i < times / 10; i++) call();
    double began = now_ns();
    for (int i = 0; i < times; i++) call();
    return (now_ns() - began) / times;
}

int measure() {
    if (SERT_PRESENT) {
        sert_arg arg = {};
        arg.size = sizeof arg;
        arg.lb_ms = arg.ub_ms = 60000;
        if (SERT_init_timer(SIGRTMIN + 4) || SERT_set_args(&arg) || sigsetjmp(point, 0) || SERT_register_rollbackpoint(&point)) return 1;
    }
    printf("malloc and free outside a request,%f\n", per_call(pair_of_malloc, 2000000));
    in_request(true);
    printf("malloc and free of 64 bytes,%f\n", per_call(pair_of_malloc, 2000000));
    printf("1000 blocks of many sizes and their free,%f\n", per_call(many_blocks, 2000));
    printf("mutex lock and unlock,%f\n", per_call(pair_of_mutex, 2000000));
    in_request(false);
    printf("an empty request,%f\n", per_call(empty_request, 1000000));
    printf("a request with 100 blocks,%f\n", per_call(request_with_blocks, 20000));
    return 0;
}

using Rows = std::vector<std::pair<std::string, double>>;

Rows run(const char *program, const std::string &preload) {
    std::string command = (preload.empty() ? "" : "LD_PRELOAD='" + preload + "' ") + std::string(program) + " measure";
    FILE *pipe = popen(command.c_str(), "r");
    Rows rows;
    char line[256];
    while (pipe && fgets(line, sizeof line, pipe)) {
        char *comma = strchr(line, ',');
        if (comma) rows.emplace_back(std::string(line, comma), atof(comma + 1));
    }
    if (!pipe || pclose(pipe) != 0 || rows.empty()) {
        fprintf(stderr, "cannot measure: %s\n", command.c_str());
        exit(1);
    }
    return rows;
}

double median(std::vector<double> all) {
    std::sort(all.begin(), all.end());
    return all[all.size() / 2];
}

int compare(const char *program, const std::string &library) {
    const char *other = getenv("COST_ALLOCATOR");
    std::vector<std::string> kinds = {"", library};
    if (other) kinds.insert(kinds.end(), {other, library + " " + other});
    std::vector<std::map<std::string, std::vector<double>>> seen(kinds.size());
    Rows order;
    for (int turn = 0; turn < TURNS; turn++) {
        for (size_t i = 0; i < kinds.size(); i++) {
            order = run(program, kinds[i]);
            for (auto &row : order) seen[i][row.first].push_back(row.second);
        }
    }
    printf("| nanoseconds | without | with libsert | ratio |%s\n", other ? " other allocator | libsert over it | ratio to it | ratio to glibc's |" : "");
    printf("|---|---|---|---|%s\n", other ? "---|---|---|---|" : "");
    for (auto &row : order) {
        std::vector<double> is;
        for (auto &kind : seen) is.push_back(median(kind[row.first]));
        printf("| %s | %.1f | %.1f | %.2f |", row.first.c_str(), is[0], is[1], is[1] / is[0]);
        if (other) printf(" %.1f | %.1f | %.2f | %.2f |", is[2], is[3], is[3] / is[2], is[3] / is[0]);
        printf("\n");
    }
    return 0;
}

}  // namespace

int main(int argc, char **argv) {
    if (argc == 2 && std::string(argv[1]) == "measure") return measure();
    if (argc != 1) {
        fprintf(stderr, "cost [measure]\n");
        return 2;
    }
    std::string program = argv[0], folder = program.substr(0, program.find_last_of('/') + 1);
    return compare(argv[0], folder + "libsert.so.1");
}

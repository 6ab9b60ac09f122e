// A worker of a service, in C++. Memory that a request has in containers is released too, and no
// destructor runs.
//
// SERT_defer registers what the program itself must undo: here, the number of requests that look at
// the index.
#include <setjmp.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "sert.h"

namespace {

std::atomic<int> next{0}, answered{0}, stopped{0}, looking{0};
constexpr int REQUESTS = 60;

void stop_looking(void *) { looking--; }

std::size_t search(int number) {
    SERT_mask();
    looking++;
    SERT_defer(stop_looking, nullptr);
    SERT_unmask();
    std::map<std::string, std::vector<int>> found;
    // Every tenth request finds far too much.
    for (long i = 0; i < (number % 10 == 9 ? 1L << 40 : 3000L); i++) {
        found["the word number " + std::to_string(i % 500)].push_back(static_cast<int>(i));
        if (i % 4096 == 0) found.clear();
    }
    SERT_mask();
    SERT_undefer(stop_looking, nullptr);
    looking--;
    SERT_unmask();
    return found.size();
}

void serve() {
    sigjmp_buf point;
    // No object with a destructor lives in this frame while a request runs.
    for (volatile int number; (number = next++) < REQUESTS;) {
        if (sigsetjmp(point, 0) != 0) {
            stopped++;
            continue;
        }
        SERT_register_rollbackpoint(&point);
        SERT_start();
        search(number);
        SERT_end();
        answered++;
    }
}

}  // namespace

int main() {
    sert_arg searches = {};
    searches.size = sizeof searches;
    searches.lb_ms = 50;
    searches.ub_ms = 200;
    searches.flags = SERT_NO_WARM_UP;  // nothing here is initialised at its first use
    if (SERT_init_timer(SIGRTMIN) != 0) std::puts("runs without terminations");
    SERT_set_args(&searches);
    std::thread one(serve), two(serve);
    one.join();
    two.join();
    std::printf("%d answered, %d stopped, %d still looking\n", answered.load(), stopped.load(), looking.load());
    return answered + stopped == REQUESTS && stopped == REQUESTS / 10 && looking == 0 ? 0 : 1;
}

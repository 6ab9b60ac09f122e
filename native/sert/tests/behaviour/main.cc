// Tests of the promises of libsert, one for each promise. `behaviour` runs each in a process of its
// own, `behaviour WORD` runs one.
#include "harness.h"

using namespace behaviour;

namespace {

// Runs a test in a process of its own, which has a minute.
bool passes(const Test &test) {
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        alarm(60);
        execl("/proc/self/exe", "behaviour", test.word, nullptr);
        _exit(127);
    }
    int status;
    waitpid(child, &status, 0);
    printf("%s %s\n", status == 0 ? "ok    " : "FAILED", test.name);
    return status == 0;
}

}  // namespace

int main(int argc, char **argv) {
    size_t all = 0, failed = 0;
    for (const auto *tests : {&interface_tests, &when_tests, &waits_tests, &never_tests, &stays_tests, &keeps_tests, &limits_tests}) {
        for (const Test &test : *tests) {
            all++;
            if (argc < 2) {
                failed += !passes(test);
            } else if (std::string(argv[1]) == test.word) {
                test.run();
                return 0;
            }
        }
    }
    if (argc > 1) {
        fprintf(stderr, "no test %s\n", argv[1]);
        return 2;
    }
    printf("%zu tests, %zu failed\n", all, failed);
    return failed != 0;
}

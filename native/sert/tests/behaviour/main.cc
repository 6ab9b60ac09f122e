// Tests of the promises of libsert, one for each promise. `behaviour` runs each in a process of its
// own, `behaviour WORD` runs one.
#include "harness.h"

using namespace behaviour;

namespace {

// Set by tests/emulated.
const bool is_emulated = getenv("SERT_EMULATED");

// Returns whether the emulator cannot run a test: qemu-user 7.2 aborts if the child of a process with
// threads starts a thread, also without libsert.
bool is_left_out(const std::string &word) {
    return is_emulated && (word == "fork" || word == "fork-token");
}

// Runs a test in a process of its own, which has a minute.
bool passes_once(const Test &test) {
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        alarm(is_emulated ? 600 : 60);
        execl("/proc/self/exe", "behaviour", test.word, nullptr);
        _exit(127);
    }
    int status;
    waitpid(child, &status, 0);
    return status == 0;
}

// The thresholds of the tests are in real time, so an emulator on a busy machine may be too slow for a
// test. Such a test has two more attempts.
bool passes(const Test &test) {
    if (is_left_out(test.word)) {
        printf("NOT TESTED: %s, because the emulator cannot run it\n", test.name);
        return true;
    }
    bool passed = passes_once(test);
    for (int again = 0; is_emulated && !passed && again < 2; again++) {
        printf("again  %s\n", test.name);
        passed = passes_once(test);
    }
    printf("%s %s\n", passed ? "ok    " : "FAILED", test.name);
    return passed;
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

// The parts that all recipes and worker loops share.
#include "recipes.h"

#include <regex>

#include "../../examples/workers/sert_worker.h"
#include "sert_calls.h"

using namespace recipes;

namespace {

// Some of these requests see that they are due before their signal comes.
void a_due_request_is_stopped_at_the_end_of_its_mask() {
    start_library(granted(1, 1));
    for (int i = 0; i < 1000; i++) {
        CHECK(request([] {
                  SERT_mask();
                  while (!sert_is_over()) {}
                  SERT_unmask();
              }) == SERT_RAN_TOO_LONG);
    }
}

void an_exception_of_a_handler_ends_its_request() {
    CHECK(sert_begin(0, 3600 * 1000, 3600 * 1000) == 0);
    bool caught = false;
    try {
        sert_run(0, [] { throw std::runtime_error("bad input"); });
    } catch (const std::runtime_error &) {
        caught = true;
    }
    CHECK(caught);
    CHECK(SERT_token() == 0);
}

void a_stopped_handler_gives_its_reason() {
    CHECK(sert_begin(3, 5, 5) == 0);
    sert_arg other = granted(3600 * 1000, 3600 * 1000, SERT_NO_WARM_UP, 4);
    CHECK(SERT_set_args(&other) == 0);
    CHECK(sert_run(3, for_ever) == SERT_RAN_TOO_LONG);
    CHECK(stats(3).terminated == 1);
}

// std::regex is a template, so its code is the program's. It needs no recipe.
void a_stopped_regex_leaves_nothing() {
    std::regex backtracking("^(a+)+$");
    std::string text = std::string(60, 'a') + "!";
    start_library(granted(5, 5));
    stops_leave_nothing([&] { sink = std::regex_match(text, backtracking); });
}

}  // namespace

int main(int argc, char **argv) {
    return main_of(argc, argv,
                   {TEST("mask", a_due_request_is_stopped_at_the_end_of_its_mask),
                    TEST("exception", an_exception_of_a_handler_ends_its_request),
                    TEST("reason", a_stopped_handler_gives_its_reason), TEST("regex", a_stopped_regex_leaves_nothing)});
}

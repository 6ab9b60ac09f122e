// The recipe for PCRE2, with and without its compiler for patterns.
#include "recipes.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include "sert_pcre2.h"

using namespace recipes;

namespace {

// Tries each way to divide the text: twice the time for each byte more.
const char *const BACKTRACKING = "^(a+)+$";

const unsigned char *bytes(const char *text) { return reinterpret_cast<const unsigned char *>(text); }
const unsigned char *bytes(const std::string &text) { return bytes(text.data()); }

struct Matcher {
    pcre2_code *code;
    pcre2_match_context *context;
    Matcher(const char *pattern, uint32_t options, bool jit) {
        int error;
        size_t at;
        code = pcre2_compile(bytes(pattern), strlen(pattern), options, &error, &at, nullptr);
        CHECK(code && (!jit || pcre2_jit_compile(code, PCRE2_JIT_COMPLETE) == 0));
        context = pcre2_match_context_create(nullptr);
        pcre2_set_match_limit(context, UINT32_MAX);
    }
    // Runs a match as sert_pcre2.h describes. Returns PCRE2's result.
    int match(const std::string &text) const {
        pcre2_match_data *data = pcre2_match_data_create_from_pattern(code, nullptr);
        int rc = SERT_MASKED(pcre2_match(code, bytes(text), text.size(), 0, 0, data, context));
        pcre2_match_data_free(data);
        return rc;
    }
};

volatile int last;

void without_the_hook_a_stop_waits_for_the_match() {
    Matcher matcher(BACKTRACKING, 0, false);
    std::string text = std::string(24, 'a') + "!";
    start_library(granted(2, 2));
    CHECK(request([&] {
              pcre2_match_data *data = pcre2_match_data_create_from_pattern(matcher.code, nullptr);
              last = pcre2_match(matcher.code, bytes(text), text.size(), 0, 0, data, matcher.context);
              for_ever();
          }) == SERT_RAN_TOO_LONG);
    CHECK(last == PCRE2_ERROR_NOMATCH);
    CHECK(stats().gated > 0);
}

void check_stops(bool jit) {
    Matcher matcher(BACKTRACKING, PCRE2_AUTO_CALLOUT, jit);
    sert_pcre2_watch(matcher.context);
    std::string text = std::string(60, 'a') + "!", fitting(60, 'a');
    start_library(granted(5, 5));
    stops_leave_nothing([&] { SERT_MASKED(last = matcher.match(text)); });
    CHECK(last == PCRE2_ERROR_CALLOUT);
    next_request([&] { CHECK(matcher.match(fitting) == 2); });
}
void a_stopped_match_leaves_nothing() { check_stops(false); }
void a_stopped_compiled_match_leaves_nothing() { check_stops(true); }

void an_ordered_stop_ends_a_match() {
    Matcher matcher(BACKTRACKING, PCRE2_AUTO_CALLOUT, false);
    sert_pcre2_watch(matcher.context);
    std::string text = std::string(60, 'a') + "!";
    start_library(granted(3600 * 1000, 3600 * 1000));
    Order order;
    CHECK(request([&] { order.await(), matcher.match(text); }) == SERT_CLIENT_GONE);
}

void a_callout_of_the_pattern_is_enough() {
    Matcher matcher("^(a+(?C))+$", 0, false);
    sert_pcre2_watch(matcher.context);
    std::string text = std::string(60, 'a') + "!";
    start_library(granted(5, 5));
    CHECK(request([&] { matcher.match(text); }) == SERT_RAN_TOO_LONG);
}

// The alternative: the match ends itself, whatever the time.
void the_limits_end_a_match_without_a_callout() {
    Matcher matcher(BACKTRACKING, 0, false);
    std::string text = std::string(60, 'a') + "!";
    start_library(granted(3600 * 1000, 3600 * 1000));
    pcre2_set_match_limit(matcher.context, 100000);
    CHECK(request([&] { last = matcher.match(text); }) == 0);
    CHECK(last == PCRE2_ERROR_MATCHLIMIT);
    Matcher deep("^(.)*$", 0, false);
    pcre2_set_heap_limit(deep.context, 1000);
    std::string subject(1000000, 'a');
    CHECK(request([&] { last = deep.match(subject); }) == 0);
    CHECK(last == PCRE2_ERROR_HEAPLIMIT);
}

}  // namespace

int main(int argc, char **argv) {
    return main_of(argc, argv,
                   {TEST("waits", without_the_hook_a_stop_waits_for_the_match), TEST("nothing", a_stopped_match_leaves_nothing),
                    TEST("compiled", a_stopped_compiled_match_leaves_nothing), TEST("ordered", an_ordered_stop_ends_a_match),
                    TEST("own", a_callout_of_the_pattern_is_enough), TEST("limits", the_limits_end_a_match_without_a_callout)});
}

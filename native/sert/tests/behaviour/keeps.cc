// Tests of libc calls that leave something behind: a stop releases it, or the request is not
// stopped any more.
#include <argz.h>
#include <envz.h>
#include <execinfo.h>
#include <fts.h>
#include <iconv.h>
#include <ifaddrs.h>
#include <mqueue.h>
#include <net/if.h>
#include <nl_types.h>
#include <obstack.h>
#include <pty.h>
#include <regex.h>
#include <search.h>
#include <sys/fanotify.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <wordexp.h>

#include "harness.h"

#define obstack_chunk_alloc malloc
#define obstack_chunk_free free

extern "C" int getpt(void);
extern "C" int pidfd_open(pid_t process, unsigned flags);

namespace behaviour {

namespace {

enum Fate { GIVEN_BACK, UNSTOPPABLE };

// `make` calls the function within a request, and `release` frees the result. A call that the
// kernel refuses here (`make` returns false) is not tested.
struct Call {
    const char *name;
    Fate fate;
    std::function<bool()> make;
    std::function<void()> release;
};

size_t lines_of(const char *path) {
    std::ifstream file(path);
    size_t count = 0;
    for (std::string line; std::getline(file, line);) count++;
    return count;
}

size_t descriptors() {
    size_t count = 0;
    DIR *all = opendir("/proc/self/fd");
    while (readdir(all)) count++;
    closedir(all);
    return count;
}

// Counts of descriptors, lines on timers, mappings, keys and bytes.
struct Left {
    size_t descriptors, timers, mappings;
    unsigned key;
    long bytes;
};

Left left_now() {
    pthread_key_t key;
    CHECK(pthread_key_create(&key, nullptr) == 0 && pthread_key_delete(key) == 0);
    size_t fds = descriptors(), timers = lines_of("/proc/self/timers"), mappings = lines_of("/proc/self/maps");
    return {fds, timers, mappings, key, heap()};
}

// Runs until the request is stopped, or until nothing can stop it any more.
void run_on() {
    while (SERT_left() != INT64_MAX) burn();
}

bool is_possible(const Call &call) {
    bool is_made = false;
    request([&] {
        SERT_cancel();
        is_made = call.make();
        if (is_made) call.release();
    });
    return is_made;
}

const int TIMES = 120;

void leaves_nothing(const Call &call) {
    if (!is_possible(call)) {
        printf("NOT TESTED: %s: %s\n", call.name, strerror(errno));
        return;
    }
    // Run it once: libc's own memory of its first calls must exist already.
    auto once = [&] {
        return request([&] {
            CHECK(call.make());
            run_on();
            call.release();
        });
    };
    for (int i = 0; i < 5; i++) once(), left_now();
    uint64_t stopped_before = stats().terminated;
    Left before = left_now();
    for (int i = 0; i < TIMES; i++) once();
    Left after = left_now();
    uint64_t stopped = stats().terminated - stopped_before;
    bool is_clean = after.descriptors == before.descriptors && after.timers == before.timers && after.mappings == before.mappings
        && after.key == before.key && after.bytes <= before.bytes;
    if (!is_clean || stopped != (call.fate == GIVEN_BACK ? TIMES : 0)) {
        fprintf(stderr, "%s: %zu stopped; descriptors %+zd, timers %+zd, mappings %+zd, keys %+d, bytes %+ld\n", call.name, size_t(stopped),
                after.descriptors - before.descriptors, after.timers - before.timers, after.mappings - before.mappings,
                int(after.key - before.key), after.bytes - before.bytes);
        _exit(1);
    }
}

// The state of the calls. It is static, because one request runs at a time.
static regex_t expression;
static regmatch_t found[4];
static iconv_t conversion;
static FTS *tree;
static FTS64 *tree64;
static obstack stack;
static hsearch_data table;
static ifaddrs *interfaces;
static struct if_nameindex *names;
static void *root;
static int items[20];
static wordexp_t words;
static char *list;
static size_t size;
static FILE *stream;
static int fds[2];
static timer_t timer;
static void *segment_at;
static char **symbols;
static locale_t other;
static posix_spawn_file_actions_t actions;
static pthread_attr_t attributes;
static pthread_key_t key;
static tss_t tss;
static char first[] = "a", second[] = "b";
static char *arguments[] = {first, second, nullptr};
static char here[] = "/proc/self/fdinfo";
static char *folders[] = {here, nullptr};

int compare(const void *a, const void *b) {
    return static_cast<int>(static_cast<const int *>(a) - static_cast<const int *>(b));
}

int new_segment() {
    static int id = shmget(IPC_PRIVATE, 4096, IPC_CREAT | 0600);
    return id;
}

void close_stream() { fclose(stream); }
void free_list() { free(list), list = nullptr, size = 0; }
void destroy_actions() { posix_spawn_file_actions_destroy(&actions); }
void destroy_attributes() { pthread_attr_destroy(&attributes); }
void close_first() { close(fds[0]); }

const std::vector<Call> calls = {
    {"regexec", GIVEN_BACK, [] {
        CHECK(regcomp(&expression, "(a|b)*c(d|e)*\\1", REG_EXTENDED) == 0);
        return regexec(&expression, "abababcdedede", 4, found, 0) <= REG_NOMATCH;
    }, [] { regfree(&expression); }},
    {"backtrace_symbols", GIVEN_BACK, [] {
        void *frames[8];
        return (symbols = backtrace_symbols(frames, backtrace(frames, 8))) != nullptr;
    }, [] { free(symbols); }},
    {"getifaddrs", GIVEN_BACK, [] { return getifaddrs(&interfaces) == 0; }, [] { freeifaddrs(interfaces); }},
    {"if_nameindex", GIVEN_BACK, [] { return (names = if_nameindex()) != nullptr; }, [] { if_freenameindex(names); }},
    {"getpt", GIVEN_BACK, [] { return (fds[0] = getpt()) >= 0; }, [] { close_first(); }},
    {"openpty", GIVEN_BACK, [] { return openpty(&fds[0], &fds[1], nullptr, nullptr, nullptr) == 0; }, [] { close_first(), close(fds[1]); }},
    {"pidfd_open", GIVEN_BACK, [] { return (fds[0] = pidfd_open(getpid(), 0)) >= 0; }, [] { close_first(); }},
    {"fanotify_init", GIVEN_BACK, [] { return (fds[0] = fanotify_init(FAN_CLASS_NOTIF | FAN_REPORT_FID, O_RDONLY)) >= 0; }, [] { close_first(); }},
    {"mq_open", GIVEN_BACK, [] { return (fds[0] = mq_open("/bywash-sert-test", O_RDWR | O_CREAT, 0600, nullptr)) >= 0; },
         [] { mq_close(fds[0]), mq_unlink("/bywash-sert-test"); }},
    {"syscall", UNSTOPPABLE, [] { return (fds[0] = int(syscall(SYS_openat, AT_FDCWD, "/dev/null", O_RDONLY, 0, 0, 0))) >= 0; }, [] { close_first(); }},
    {"iconv_open", UNSTOPPABLE, [] { return (conversion = iconv_open("UTF-16", "UTF-8")) != iconv_t(-1); }, [] { iconv_close(conversion); }},
    {"fts_open", UNSTOPPABLE, [] { return (tree = fts_open(folders, FTS_PHYSICAL, nullptr)) != nullptr && fts_read(tree); }, [] { fts_close(tree); }},
    {"fts64_open", UNSTOPPABLE, [] { return (tree64 = fts64_open(folders, FTS_PHYSICAL, nullptr)) != nullptr; }, [] { fts64_close(tree64); }},
    {"obstack", UNSTOPPABLE, [] {
        obstack_init(&stack);
        return obstack_alloc(&stack, 5000) != nullptr && obstack_printf(&stack, "%d", 1) == 1;
    }, [] { obstack_free(&stack, nullptr); }},
    {"hcreate_r", UNSTOPPABLE, [] { return table = {}, hcreate_r(20, &table) != 0; }, [] { hdestroy_r(&table); }},
    {"hcreate", UNSTOPPABLE, [] { return hcreate(20) != 0; }, [] { hdestroy(); }},
    {"tsearch", UNSTOPPABLE, [] {
        for (int &item : items) CHECK(tsearch(&item, &root, compare) != nullptr);
        return true;
    }, [] { tdestroy(root, [](void *) {}), root = nullptr; }},
    {"wordexp", UNSTOPPABLE, [] { return wordexp("a b $HOME", &words, 0) == 0; }, [] { wordfree(&words); }},
    {"argz_create", UNSTOPPABLE, [] { return argz_create(arguments, &list, &size) == 0; }, [] { free_list(); }},
    {"argz_create_sep", UNSTOPPABLE, [] { return argz_create_sep("a:b", ':', &list, &size) == 0; }, [] { free_list(); }},
    {"argz_append", UNSTOPPABLE, [] { return argz_append(&list, &size, "x", 2) == 0; }, [] { free_list(); }},
    {"argz_add", UNSTOPPABLE, [] { return argz_add(&list, &size, "c") == 0; }, [] { free_list(); }},
    {"argz_add_sep", UNSTOPPABLE, [] { return argz_add_sep(&list, &size, "c:d", ':') == 0; }, [] { free_list(); }},
    {"argz_insert", UNSTOPPABLE, [] { return argz_insert(&list, &size, nullptr, "x") == 0; }, [] { free_list(); }},
    {"argz_replace", UNSTOPPABLE, [] { return argz_create_sep("a:b", ':', &list, &size) == 0 && argz_replace(&list, &size, "a", "long", nullptr) == 0; }, [] { free_list(); }},
    {"envz_add", UNSTOPPABLE, [] { return envz_add(&list, &size, "a", "1") == 0; }, [] { free_list(); }},
    {"envz_merge", UNSTOPPABLE, [] { return envz_merge(&list, &size, "a=1", 4, 1) == 0; }, [] { free_list(); }},
    {"fopencookie", UNSTOPPABLE, [] { return (stream = fopencookie(nullptr, "r", {})) != nullptr; }, [] { close_stream(); }},
    {"timer_create", UNSTOPPABLE, [] {
        sigevent nothing = {};
        nothing.sigev_notify = SIGEV_NONE;
        return timer_create(CLOCK_MONOTONIC, &nothing, &timer) == 0;
    }, [] { timer_delete(timer); }},
    {"shmat", UNSTOPPABLE, [] { return (segment_at = shmat(new_segment(), nullptr, 0)) != reinterpret_cast<void *>(-1); }, [] { shmdt(segment_at); }},
    {"newlocale", UNSTOPPABLE, [] { return (other = newlocale(LC_ALL_MASK, "C.UTF-8", locale_t())) != locale_t(); }, [] { freelocale(other); }},
    {"duplocale", UNSTOPPABLE, [] { return (other = duplocale(LC_GLOBAL_LOCALE)) != locale_t(); }, [] { freelocale(other); }},
    {"pthread_key_create", UNSTOPPABLE, [] { return pthread_key_create(&key, nullptr) == 0; }, [] { pthread_key_delete(key); }},
    {"tss_create", UNSTOPPABLE, [] { return tss_create(&tss, nullptr) == thrd_success; }, [] { tss_delete(tss); }},
    {"pthread_getattr_np", UNSTOPPABLE, [] { return pthread_getattr_np(pthread_self(), &attributes) == 0; }, [] { destroy_attributes(); }},
    {"pthread_attr_setaffinity_np", UNSTOPPABLE, [] {
        cpu_set_t set;
        CPU_ZERO(&set);
        CPU_SET(0, &set);
        return pthread_attr_init(&attributes) == 0 && pthread_attr_setaffinity_np(&attributes, sizeof set, &set) == 0;
    }, [] { destroy_attributes(); }},
    {"pthread_attr_setsigmask_np", UNSTOPPABLE, [] {
        sigset_t none;
        sigemptyset(&none);
        return pthread_attr_init(&attributes) == 0 && pthread_attr_setsigmask_np(&attributes, &none) == 0;
    }, [] { destroy_attributes(); }},
    {"addopen", UNSTOPPABLE, [] {
        return posix_spawn_file_actions_init(&actions) == 0 && posix_spawn_file_actions_addopen(&actions, 3, "/dev/null", O_RDONLY, 0) == 0;
    }, [] { destroy_actions(); }},
    {"addclose", UNSTOPPABLE, [] { return posix_spawn_file_actions_init(&actions) == 0 && posix_spawn_file_actions_addclose(&actions, 9) == 0; }, [] { destroy_actions(); }},
    {"adddup2", UNSTOPPABLE, [] { return posix_spawn_file_actions_init(&actions) == 0 && posix_spawn_file_actions_adddup2(&actions, 1, 9) == 0; }, [] { destroy_actions(); }},
    {"addchdir_np", UNSTOPPABLE, [] { return posix_spawn_file_actions_init(&actions) == 0 && posix_spawn_file_actions_addchdir_np(&actions, "/") == 0; }, [] { destroy_actions(); }},
    {"addfchdir_np", UNSTOPPABLE, [] { return posix_spawn_file_actions_init(&actions) == 0 && posix_spawn_file_actions_addfchdir_np(&actions, 9) == 0; }, [] { destroy_actions(); }},
};

void what_libc_keeps_for_a_request_is_not_left_behind() {
    // A block in a thread's cache counts as allocated: without the cache, the heap's size is exact.
    if (getenv("GLIBC_TUNABLES") == nullptr) {
        setenv("GLIBC_TUNABLES", "glibc.malloc.tcache_count=0", 1);
        execl("/proc/self/exe", "behaviour", "keeps", nullptr);
    }
    start_library(granted(0.3, 0.3));
    for (const Call &call : calls) leaves_nothing(call);
    shmctl(new_segment(), IPC_RMID, nullptr);
}

// An expression that is older than the request keeps the memory that a search adds, and the request
// can be stopped.
void an_older_expression_stays_whole() {
    start_library(granted(0.3, 0.3));
    CHECK(regcomp(&expression, "(a|b)*c(d|e)*", REG_EXTENDED) == 0);
    for (int i = 0; i < 100; i++) {
        CHECK(request([i] {
            std::string text(size_t(i) + 1, 'a');
            text += "bcde";
            CHECK(regexec(&expression, text.c_str(), 4, found, 0) == 0);
            for_ever();
        }) == SERT_RAN_TOO_LONG);
    }
    CHECK(regexec(&expression, "aabbcde", 4, found, 0) == 0);
    regfree(&expression);
}

// System calls by number that leave nothing behind do not make a request unstoppable, and get all
// of their arguments.
void a_system_call_by_number_gets_its_arguments() {
    start_library();
    CHECK(request([] {
        CHECK(syscall(SYS_gettid) == gettid());
        struct statx is;
        CHECK(syscall(SYS_statx, AT_FDCWD, "/dev/null", 0, STATX_TYPE, &is) == 0 && S_ISCHR(is.stx_mode));
        for_ever();
    }) == SERT_RAN_TOO_LONG);
    CHECK(request([] {
        // There are six arguments, the last one from the stack.
        int file = memfd_create("six", 0);
        CHECK(ftruncate(file, 8192) == 0 && pwrite(file, "x", 1, 4096) == 1);
        long at = syscall(SYS_mmap, nullptr, 4096L, long(PROT_READ), long(MAP_SHARED), long(file), 4096L);
        CHECK(at > 0 && *reinterpret_cast<char *>(at) == 'x');
        munmap(reinterpret_cast<void *>(at), 4096);
        CHECK(SERT_left() == INT64_MAX);
    }) == 0);
    CHECK(syscall(-1L) == -1 && errno == ENOSYS);
}

}  // namespace

const std::vector<Test> keeps_tests = {
    TEST("keeps", what_libc_keeps_for_a_request_is_not_left_behind),
    TEST("older-expression", an_older_expression_stays_whole),
    TEST("by-number", a_system_call_by_number_gets_its_arguments),
};

}  // namespace behaviour

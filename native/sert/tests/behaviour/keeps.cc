// Tests of libc calls that leave something behind: a stop releases it, or the request is not
// stopped any more.
#include <aio.h>
#include <argz.h>
#include <envz.h>
#include <execinfo.h>
#include <fts.h>
#include <glob.h>
#include <iconv.h>
#include <ifaddrs.h>
#include <mntent.h>
#include <mqueue.h>
#include <net/if.h>
#include <netdb.h>
#include <nl_types.h>
#include <obstack.h>
#include <pty.h>
#include <regex.h>
#include <resolv.h>
#include <search.h>
#include <sys/eventfd.h>
#include <sys/fanotify.h>
#include <sys/inotify.h>
#include <sys/mount.h>
#include <sys/profil.h>
#include <sys/shm.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <syslog.h>
#include <wordexp.h>

#include <locale>

#include "harness.h"

#define obstack_chunk_alloc malloc
#define obstack_chunk_free free

extern "C" {
int getpt(void);
int pidfd_open(pid_t process, unsigned flags);
// Other names of libc for functions above.
int __open(const char *path, int flags, ...);
int __open64(const char *path, int flags, ...);
int __pipe(int fds[2]);
int __dup2(int from, int to);
int __fcntl(int fd, int command, ...);
FILE *_IO_fopen(const char *path, const char *mode);
FILE *_IO_fdopen(int fd, const char *mode);
FILE *_IO_popen(const char *command, const char *mode);
FILE *__setmntent(const char *path, const char *mode);
char *__strndup(const char *text, size_t most);
int __asprintf(char **text, const char *format, ...);
char **__backtrace_symbols(void *const *addresses, int count);
int __pthread_key_create(pthread_key_t *key, void (*destroy)(void *));
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *at, size_t size);
void *__libc_memalign(size_t alignment, size_t size);
void *__libc_valloc(size_t size);
void *__libc_pvalloc(size_t size);
void __libc_free(void *at);
locale_t __newlocale(int categories, const char *name, locale_t base);
locale_t __duplocale(locale_t from);
int __clone(int (*run)(void *), void *stack, int flags, void *arg, ...);
char *re_comp(const char *text);
int re_exec(const char *text);
}

namespace behaviour {

namespace {

// WITH_THREADS: unstoppable, and libc starts threads, whose stacks and heaps are not counted.
enum Fate { GIVEN_BACK, UNSTOPPABLE, WITH_THREADS };

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
    // On a busy machine a request may be stopped before its call. Such requests do not count.
    volatile bool has_called;
    int called = 0, stopped = 0;
    auto once = [&] {
        has_called = false;
        int reason = request([&] {
            CHECK(call.make());
            has_called = true;
            run_on();
            call.release();
        });
        called += has_called;
        stopped += has_called && reason;
    };
    // Run it before: libc's own memory of its first calls must exist already.
    for (int i = 0; i < 5; i++) once(), left_now();
    Left before = left_now();
    called = stopped = 0;
    for (int i = 0; called < TIMES && i < 100 * TIMES; i++) once();
    Left after = left_now();
    bool is_clean = after.descriptors == before.descriptors && after.timers == before.timers && after.mappings == before.mappings
        && after.key == before.key && after.bytes <= before.bytes;
    if ((!is_clean && call.fate != WITH_THREADS) || called != TIMES || stopped != (call.fate == GIVEN_BACK ? TIMES : 0)) {
        fprintf(stderr, "%s: %d called, %d stopped; descriptors %+zd, timers %+zd, mappings %+zd, keys %+d, bytes %+ld\n", call.name, called, stopped,
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

// Objects that are older than every request, which prepare() makes.
static void *foreign;
static FILE *older;
static mqd_t queue;
static int source[2], sink[2];
static re_pattern_buffer pattern;
static re_registers registers;

static aiocb order;
static aiocb64 order64;
static aiocb *orders[] = {&order};
static aiocb64 *orders64[] = {&order64};
static gaicb name;
static gaicb *all_names[] = {&name};
static addrinfo *addresses;
static glob_t matches;
static dirent **entries;
static DIR *folder;
static void *library, *block;
static std::locale *named;
static struct __res_state resolver;
static pid_t child;
static sem_t *semaphore;
static int protection;
static wchar_t *wide;
static char space[16], state[64], setting[] = "SERT_TEST=1";
static char *state_before;
static unsigned short counts[64], *volatile no_counts;
static prof part;
static char child_stack[16384], signal_stack[16384];

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
void close_both() { close(fds[0]), close(fds[1]); }
void free_block() { free(block); }
void wait_for_child() { waitpid(child, nullptr, 0); }
void drain() { CHECK(read(sink[0], space, 1) == 1); }

void prepare() {
    foreign = mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    older = fopen("/dev/null", "r");
    queue = mq_open("/bywash-sert-notify", O_RDWR | O_CREAT, 0600, nullptr);
    mq_unlink("/bywash-sert-notify");
    CHECK(pipe(source) == 0 && pipe(sink) == 0 && write(source[1], "x", 1) == 1);
    CHECK(re_compile_pattern("a*b", 3, &pattern) == nullptr && re_comp("a*b") == nullptr);
    state_before = initstate(1, state, sizeof state);
    setstate(state_before);
    order.aio_fildes = order64.aio_fildes = open("/dev/null", O_RDWR);
    order.aio_buf = order64.aio_buf = space;
    order.aio_nbytes = order64.aio_nbytes = 1;
    order.aio_lio_opcode = order64.aio_lio_opcode = LIO_READ;
    name.ar_name = "127.0.0.1";
}

// Waits for the end of an order of aio_*.
void finish() {
    while (aio_error(&order) == EINPROGRESS) usleep(100);
    aio_return(&order);
}
void finish64() {
    while (aio_error64(&order64) == EINPROGRESS) usleep(100);
    aio_return64(&order64);
}

// Sends a descriptor over a pair of sockets, and receives it by recvmmsg.
bool receives_descriptor() {
    CHECK(socketpair(AF_UNIX, SOCK_DGRAM, 0, fds) == 0);
    char room[CMSG_SPACE(sizeof(int))] = {};
    iovec piece = {space, 1};
    mmsghdr message = {};
    message.msg_hdr.msg_iov = &piece, message.msg_hdr.msg_iovlen = 1;
    message.msg_hdr.msg_control = room, message.msg_hdr.msg_controllen = sizeof room;
    cmsghdr *rights = CMSG_FIRSTHDR(&message.msg_hdr);
    rights->cmsg_level = SOL_SOCKET, rights->cmsg_type = SCM_RIGHTS, rights->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(rights), &fds[1], sizeof(int));
    CHECK(sendmsg(fds[0], &message.msg_hdr, 0) == 1);
    CHECK(recvmmsg(fds[1], &message, 1, 0, nullptr) == 1);
    rights = CMSG_FIRSTHDR(&message.msg_hdr);
    CHECK(rights != nullptr && rights->cmsg_type == SCM_RIGHTS);
    memcpy(&protection, CMSG_DATA(rights), sizeof(int));
    return true;
}

bool opens_by_handle() {
    char room[sizeof(file_handle) + MAX_HANDLE_SZ];
    file_handle *handle = reinterpret_cast<file_handle *>(room);
    handle->handle_bytes = MAX_HANDLE_SZ;
    int mount;
    return name_to_handle_at(AT_FDCWD, "/dev/shm", handle, &mount, 0) == 0
        && (fds[1] = open("/dev/shm", O_RDONLY)) >= 0 && (fds[0] = open_by_handle_at(fds[1], handle, O_RDONLY)) >= 0;
}

int in_child(void *) { _exit(0); }

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
    {"regcomp", GIVEN_BACK, [] { return regcomp(&expression, "(a|b)*c", REG_EXTENDED) == 0; }, [] { regfree(&expression); }},
    {"glob", GIVEN_BACK, [] { return glob("/usr/*", 0, nullptr, &matches) == 0; }, [] { globfree(&matches); }},
    {"scandir", GIVEN_BACK, [] { return (fds[0] = scandir("/usr", &entries, nullptr, alphasort)) > 0; }, [] {
        for (int i = 0; i < fds[0]; i++) free(entries[i]);
        free(entries);
    }},
    {"getdelim", GIVEN_BACK, [] {
        list = nullptr, size = 0;
        return (stream = fopen("/proc/self/stat", "r")) != nullptr && getdelim(&list, &size, ' ', stream) > 0;
    }, [] { free_list(), close_stream(); }},
    {"strndup", GIVEN_BACK, [] { return (block = strndup(setting, 4)) != nullptr; }, [] { free_block(); }},
    {"wcsdup", GIVEN_BACK, [] { return (wide = wcsdup(L"wide")) != nullptr; }, [] { free(wide); }},
    {"tempnam", GIVEN_BACK, [] { return (block = tempnam(nullptr, "sert")) != nullptr; }, [] { free_block(); }},
    {"get_current_dir_name", GIVEN_BACK, [] { return (block = get_current_dir_name()) != nullptr; }, [] { free_block(); }},
    {"canonicalize_file_name", GIVEN_BACK, [] { return (block = canonicalize_file_name("/usr/..")) != nullptr; }, [] { free_block(); }},
    {"getcwd", GIVEN_BACK, [] { return (block = getcwd(nullptr, 0)) != nullptr; }, [] { free_block(); }},
    {"getaddrinfo", GIVEN_BACK, [] { return getaddrinfo("127.0.0.1", "80", nullptr, &addresses) == 0; }, [] { freeaddrinfo(addresses); }},
    {"fmemopen", GIVEN_BACK, [] { return (stream = fmemopen(nullptr, 100, "w+")) != nullptr; }, [] { close_stream(); }},
    {"freopen of its own", GIVEN_BACK, [] { return (stream = freopen("/dev/zero", "r", fopen("/dev/null", "r"))) != nullptr; }, [] { close_stream(); }},
    {"shm_open", GIVEN_BACK, [] { return (fds[0] = shm_open("/bywash-sert-test", O_RDWR | O_CREAT, 0600)) >= 0 && shm_unlink("/bywash-sert-test") == 0; },
         [] { close_first(); }},
    {"signalfd", GIVEN_BACK, [] {
        sigset_t none;
        sigemptyset(&none);
        return (fds[0] = signalfd(-1, &none, 0)) >= 0;
    }, [] { close_first(); }},
    {"timerfd_create", GIVEN_BACK, [] { return (fds[0] = timerfd_create(CLOCK_MONOTONIC, 0)) >= 0; }, [] { close_first(); }},
    {"eventfd", GIVEN_BACK, [] { return (fds[0] = eventfd(0, 0)) >= 0; }, [] { close_first(); }},
    {"inotify_init", GIVEN_BACK, [] { return (fds[0] = inotify_init()) >= 0; }, [] { close_first(); }},
    {"inotify_init1", GIVEN_BACK, [] { return (fds[0] = inotify_init1(0)) >= 0; }, [] { close_first(); }},
    {"mkostemp", GIVEN_BACK, [] {
        char path[] = "/tmp/sert-XXXXXX";
        return (fds[0] = mkostemp(path, 0)) >= 0 && unlink(path) == 0;
    }, [] { close_first(); }},
    {"posix_openpt", GIVEN_BACK, [] { return (fds[0] = posix_openpt(O_RDWR | O_NOCTTY)) >= 0; }, [] { close_first(); }},
    {"fdopendir", GIVEN_BACK, [] { return (folder = fdopendir(open("/proc/self", O_RDONLY))) != nullptr; }, [] { closedir(folder); }},
    {"dup2 onto its own", GIVEN_BACK, [] { return (fds[0] = open("/dev/null", O_RDONLY)) >= 0 && dup2(2, fds[0]) == fds[0]; }, [] { close_first(); }},
    {"recvmmsg", GIVEN_BACK, [] { return receives_descriptor(); }, [] { close_both(), close(protection); }},
    {"open_by_handle_at", GIVEN_BACK, [] { return opens_by_handle(); }, [] { close_both(); }},
    {"fsopen", GIVEN_BACK, [] { return (fds[0] = fsopen("tmpfs", 0)) >= 0; }, [] { close_first(); }},
    {"fsmount", GIVEN_BACK, [] {
        return (fds[0] = fsopen("tmpfs", 0)) >= 0 && fsconfig(fds[0], FSCONFIG_CMD_CREATE, nullptr, nullptr, 0) == 0 && (fds[1] = fsmount(fds[0], 0, 0)) >= 0;
    }, [] { close_both(); }},
    {"fspick", GIVEN_BACK, [] { return (fds[0] = fspick(AT_FDCWD, "/", 0)) >= 0; }, [] { close_first(); }},
    {"open_tree", GIVEN_BACK, [] { return (fds[0] = open_tree(AT_FDCWD, "/", 0)) >= 0; }, [] { close_first(); }},
    {"__open", GIVEN_BACK, [] { return (fds[0] = __open("/dev/null", O_RDONLY)) >= 0; }, [] { close_first(); }},
    {"__open64", GIVEN_BACK, [] { return (fds[0] = __open64("/dev/null", O_RDONLY)) >= 0; }, [] { close_first(); }},
    {"__pipe", GIVEN_BACK, [] { return __pipe(fds) == 0; }, [] { close_both(); }},
    {"__fcntl", GIVEN_BACK, [] { return (fds[0] = __fcntl(2, F_DUPFD, 3)) >= 0; }, [] { close_first(); }},
    {"_IO_fopen", GIVEN_BACK, [] { return (stream = _IO_fopen("/dev/null", "r")) != nullptr; }, [] { close_stream(); }},
    {"_IO_fdopen", GIVEN_BACK, [] { return (stream = _IO_fdopen(open("/dev/null", O_RDONLY), "r")) != nullptr; }, [] { close_stream(); }},
    {"__setmntent", GIVEN_BACK, [] { return (stream = __setmntent("/proc/self/mounts", "r")) != nullptr; }, [] { endmntent(stream); }},
    {"__strndup", GIVEN_BACK, [] { return (block = __strndup(setting, 4)) != nullptr; }, [] { free_block(); }},
    {"__asprintf", GIVEN_BACK, [] { return __asprintf(&list, "%d", 1) == 1; }, [] { free_list(); }},
    {"__backtrace_symbols", GIVEN_BACK, [] {
        void *frames[8];
        return (symbols = __backtrace_symbols(frames, backtrace(frames, 8))) != nullptr;
    }, [] { free(symbols); }},
    {"__libc_malloc", GIVEN_BACK, [] { return (block = __libc_malloc(100)) != nullptr; }, [] { free_block(); }},
    {"__libc_calloc", GIVEN_BACK, [] { return (block = __libc_calloc(10, 10)) != nullptr; }, [] { free_block(); }},
    {"__libc_realloc", GIVEN_BACK, [] { return (block = __libc_realloc(malloc(10), 5000)) != nullptr; }, [] { free_block(); }},
    {"__libc_memalign", GIVEN_BACK, [] { return (block = __libc_memalign(64, 100)) != nullptr; }, [] { free_block(); }},
    {"__libc_valloc", GIVEN_BACK, [] { return (block = __libc_valloc(100)) != nullptr; }, [] { free_block(); }},
    {"__libc_pvalloc", GIVEN_BACK, [] { return (block = __libc_pvalloc(100)) != nullptr; }, [] { free_block(); }},
    {"__libc_free", GIVEN_BACK, [] { return __libc_free(malloc(100)), true; }, [] {}},

    {"profil", UNSTOPPABLE, [] { return profil(counts, sizeof counts, 0, 65536) == 0; }, [] { profil(no_counts, 0, 0, 0); }},
    {"sprofil", UNSTOPPABLE, [] { return sprofil(&part, 0, nullptr, 0) == 0; }, [] {}},
    {"sigaltstack", UNSTOPPABLE, [] {
        stack_t own = {};
        own.ss_sp = signal_stack, own.ss_size = sizeof signal_stack;
        return sigaltstack(&own, nullptr) == 0;
    }, [] {
        stack_t none = {};
        none.ss_flags = SS_DISABLE;
        sigaltstack(&none, nullptr);
    }},
    {"initstate", UNSTOPPABLE, [] { return (state_before = initstate(1, state, sizeof state)) != nullptr; }, [] { setstate(state_before); }},
    {"setstate", UNSTOPPABLE, [] { return (state_before = setstate(state)) != nullptr; }, [] { setstate(state_before); }},
    {"putenv", UNSTOPPABLE, [] { return putenv(setting) == 0; }, [] {}},
    {"openlog", UNSTOPPABLE, [] { return openlog("sert", 0, LOG_USER), true; }, [] { closelog(); }},
    {"mq_notify", UNSTOPPABLE, [] { return mq_notify(queue, nullptr) == 0; }, [] {}},
    {"setlocale", UNSTOPPABLE, [] { return setlocale(LC_ALL, "C.UTF-8") != nullptr; }, [] { setlocale(LC_ALL, "C"); }},
    {"__newlocale", UNSTOPPABLE, [] { return (other = __newlocale(LC_ALL_MASK, "C.UTF-8", locale_t())) != locale_t(); }, [] { freelocale(other); }},
    {"__duplocale", UNSTOPPABLE, [] { return (other = __duplocale(LC_GLOBAL_LOCALE)) != locale_t(); }, [] { freelocale(other); }},
    {"std::locale", UNSTOPPABLE, [] { return (named = new std::locale("C.UTF-8")) != nullptr; }, [] { delete named; }},
    {"catopen", UNSTOPPABLE, [] { return catopen("/no/such/file", 0) == nl_catd(-1); }, [] {}},
    {"open_memstream", UNSTOPPABLE, [] { return (stream = open_memstream(&list, &size)) != nullptr; }, [] { close_stream(), free_list(); }},
    {"open_wmemstream", UNSTOPPABLE, [] { return (stream = open_wmemstream(&wide, &size)) != nullptr; }, [] { close_stream(), free(wide); }},
    {"popen", UNSTOPPABLE, [] { return (stream = popen("true", "r")) != nullptr; }, [] { pclose(stream); }},
    {"_IO_popen", UNSTOPPABLE, [] { return (stream = _IO_popen("true", "r")) != nullptr; }, [] { pclose(stream); }},
    {"_Fork", UNSTOPPABLE, [] { return (child = _Fork()) == 0 ? _exit(0), true : child > 0; }, [] { wait_for_child(); }},
    {"clone", UNSTOPPABLE, [] { return (child = clone(in_child, child_stack + sizeof child_stack, SIGCHLD, nullptr)) > 0; }, [] { wait_for_child(); }},
    {"__clone", UNSTOPPABLE, [] { return (child = __clone(in_child, child_stack + sizeof child_stack, SIGCHLD, nullptr)) > 0; }, [] { wait_for_child(); }},
    {"dup2", UNSTOPPABLE, [] { return (fds[0] = dup2(2, 200)) == 200; }, [] { close_first(); }},
    {"__dup2", UNSTOPPABLE, [] { return (fds[0] = __dup2(2, 200)) == 200; }, [] { close_first(); }},
    {"dup3", UNSTOPPABLE, [] { return (fds[0] = dup3(2, 200, 0)) == 200; }, [] { close_first(); }},
    {"close_range", UNSTOPPABLE, [] { return close_range(1000, 1001, 0) == 0; }, [] {}},
    {"closefrom", UNSTOPPABLE, [] { return closefrom(1000), true; }, [] {}},
    {"freopen", UNSTOPPABLE, [] { return (older = freopen("/dev/null", "r", older)) != nullptr; }, [] {}},
    {"mremap", UNSTOPPABLE, [] { return (foreign = mremap(foreign, 4096, 8192, MREMAP_MAYMOVE)) != MAP_FAILED; },
         [] { foreign = mremap(foreign, 8192, 4096, 0); }},
    {"obstack_begin_1", UNSTOPPABLE, [] {
        obstack_specify_allocation_with_arg(&stack, 0, 0, [](void *, long length) { return malloc(size_t(length)); }, [](void *, void *at) { free(at); }, nullptr);
        return true;
    }, [] { obstack_free(&stack, nullptr); }},
    {"dlopen", UNSTOPPABLE, [] { return (library = dlopen("libc.so.6", RTLD_LAZY)) != nullptr; }, [] { dlclose(library); }},
    {"dlmopen", UNSTOPPABLE, [] { return (library = dlmopen(LM_ID_BASE, "libc.so.6", RTLD_LAZY)) != nullptr; }, [] { dlclose(library); }},
    {"tee", UNSTOPPABLE, [] { return tee(source[0], sink[1], 1, 0) == 1; }, [] { drain(); }},
    {"pwritev2", UNSTOPPABLE, [] {
        iovec piece = {setting, 1};
        return pwritev2(sink[1], &piece, 1, -1, 0) == 1;
    }, [] { drain(); }},
    {"pwritev64v2", UNSTOPPABLE, [] {
        iovec piece = {setting, 1};
        return pwritev64v2(sink[1], &piece, 1, -1, 0) == 1;
    }, [] { drain(); }},
    {"re_compile_pattern", UNSTOPPABLE, [] {
        static re_pattern_buffer own;
        return own = {}, re_compile_pattern("a*b", 3, &own) == nullptr && (expression = own, true);
    }, [] { regfree(&expression); }},
    {"re_search", UNSTOPPABLE, [] { return re_search(&pattern, "aab", 3, 0, 3, nullptr) == 0; }, [] {}},
    {"re_search_2", UNSTOPPABLE, [] { return re_search_2(&pattern, "a", 1, "ab", 2, 0, 3, &registers, 3) == 0; }, [] {}},
    {"re_match", UNSTOPPABLE, [] { return re_match(&pattern, "aab", 3, 0, nullptr) == 3; }, [] {}},
    {"re_match_2", UNSTOPPABLE, [] { return re_match_2(&pattern, "a", 1, "ab", 2, 0, &registers, 3) == 3; }, [] {}},
    {"re_comp", UNSTOPPABLE, [] { return re_comp("a*b") == nullptr; }, [] {}},
    {"re_exec", UNSTOPPABLE, [] { return re_exec("aab") == 1; }, [] {}},
    {"res_ninit", UNSTOPPABLE, [] { return resolver = {}, res_ninit(&resolver) == 0; }, [] { res_nclose(&resolver); }},
    {"__pthread_key_create", UNSTOPPABLE, [] { return __pthread_key_create(&key, nullptr) == 0; }, [] { pthread_key_delete(key); }},
    {"pthread_getattr_default_np", UNSTOPPABLE, [] { return pthread_getattr_default_np(&attributes) == 0; }, [] { destroy_attributes(); }},
    {"pkey_alloc", UNSTOPPABLE, [] { return (protection = pkey_alloc(0, 0)) >= 0; }, [] { pkey_free(protection); }},
    {"sem_open", UNSTOPPABLE, [] { return (semaphore = sem_open("/bywash-sert-test", O_CREAT, 0600, 1)) != SEM_FAILED; },
         [] { sem_close(semaphore), sem_unlink("/bywash-sert-test"); }},
    // These are last, because their threads end some time later.
    {"aio_read", WITH_THREADS, [] { return aio_read(&order) == 0; }, [] { finish(); }},
    {"aio_read64", WITH_THREADS, [] { return aio_read64(&order64) == 0; }, [] { finish64(); }},
    {"aio_write", WITH_THREADS, [] { return aio_write(&order) == 0; }, [] { finish(); }},
    {"aio_write64", WITH_THREADS, [] { return aio_write64(&order64) == 0; }, [] { finish64(); }},
    {"aio_fsync", WITH_THREADS, [] { return aio_fsync(O_SYNC, &order) == 0; }, [] { finish(); }},
    {"aio_fsync64", WITH_THREADS, [] { return aio_fsync64(O_SYNC, &order64) == 0; }, [] { finish64(); }},
    {"lio_listio", WITH_THREADS, [] { return lio_listio(LIO_NOWAIT, orders, 1, nullptr) == 0; }, [] { finish(); }},
    {"lio_listio64", WITH_THREADS, [] { return lio_listio64(LIO_NOWAIT, orders64, 1, nullptr) == 0; }, [] { finish64(); }},
    {"getaddrinfo_a", WITH_THREADS, [] { return getaddrinfo_a(GAI_NOWAIT, all_names, 1, nullptr) == 0; }, [] {
        while (gai_error(&name) == EAI_INPROGRESS) usleep(100);
        freeaddrinfo(name.ar_result);
    }},
};

void what_libc_keeps_for_a_request_is_not_left_behind() {
    // A block in a thread's cache counts as allocated: without the cache, the heap's size is exact.
    if (getenv("GLIBC_TUNABLES") == nullptr) {
        setenv("GLIBC_TUNABLES", "glibc.malloc.tcache_count=0", 1);
        execl("/proc/self/exe", "behaviour", "keeps", nullptr);
    }
    start_library(granted(0.3, 0.3));
    prepare();
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

// Stops requests of one kind at random places until the given number is reached; then everything
// must be as before.
//
//   torture MIX TERMINATIONS    exit 0: as before; 1: something is missing, broken, or stuck
//
// Workers serve requests that mostly never end by themselves, with a threshold of a fraction of a
// millisecond. "Before" is the state after some hundred terminations, when every pool has grown.
// The comparison covers descriptors, heap, mappings, whether each lock is free, pairs of numbers
// that only differ within a lock, and that there is progress.
#include <dirent.h>
#include <mntent.h>
#include <fcntl.h>
#include <malloc.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cinttypes>
#include <cmath>
#include <condition_variable>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>
#include <functional>
#include <future>
#include <latch>
#include <map>
#include <memory>
#include <mutex>
#include <semaphore>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "sert.h"

namespace {

constexpr int WORKERS = 6;
constexpr uint64_t SETTLED = 400;
constexpr int STUCK_SECONDS = 20;

using Op = void (*)(uint32_t);

std::atomic<bool> over{false};
std::atomic<uint64_t> broken{0}, ended{0};
thread_local uint32_t dice = 1;

uint32_t roll() {
    dice ^= dice << 13;
    dice ^= dice >> 17;
    dice ^= dice << 5;
    return dice;
}

volatile double sink;

void spin(uint32_t times) {
    for (uint32_t i = 0; i < times; i++) sink = sink + std::sqrt(static_cast<double>(i));
}

// --- Only the processor, and functions of libc with internal locks ---

void compute(uint32_t r) { spin(r % 2000); }
void draw(uint32_t) { sink = static_cast<double>(random()); }
void tell_time(uint32_t) {
    time_t now = time(nullptr);
    tm local;
    localtime_r(&now, &local);
    sink = local.tm_sec;
}
void format(uint32_t r) {
    char text[64];
    snprintf(text, sizeof text, "%u %.3f", r, r / 3.0);
    sink = strtod(text, nullptr);
}
int compare(const void *a, const void *b) { return *static_cast<const int *>(a) - *static_cast<const int *>(b); }
void sort(uint32_t r) {
    int numbers[2000];
    for (int &number : numbers) number = static_cast<int>(r = r * 1664525 + 1013904223) >> 8;
    qsort(numbers, 2000, sizeof *numbers, compare);
}

// --- Waiting ---

int empty_pipe[2], quiet[2], listener;
pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER, with_condition = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t never_signalled = PTHREAD_COND_INITIALIZER;
pthread_rwlock_t held_rw = PTHREAD_RWLOCK_INITIALIZER;
std::mutex std_mutex;
std::condition_variable std_condition;
sem_t never_posted;

void wait_read(uint32_t) {
    char byte;
    (void)!read(empty_pipe[0], &byte, 1);
}
void wait_recv(uint32_t) {
    char byte;
    recv(quiet[0], &byte, 1, 0);
}
void wait_poll(uint32_t) {
    pollfd one = {empty_pipe[0], POLLIN, 0};
    poll(&one, 1, 30000);
}
void wait_select(uint32_t) {
    fd_set set;
    FD_ZERO(&set);
    FD_SET(empty_pipe[0], &set);
    timeval time = {30, 0};
    select(empty_pipe[0] + 1, &set, nullptr, nullptr, &time);
}
void wait_epoll(uint32_t) {
    int fd = epoll_create1(0);
    epoll_event event;
    epoll_wait(fd, &event, 1, 30000);
    close(fd);
}
void wait_accept(uint32_t) { close(accept(listener, nullptr, nullptr)); }
void wait_sleep(uint32_t r) {
    if (r % 2) sleep(30);
    timespec time = {30, 0};
    nanosleep(&time, nullptr);
}
void wait_semaphore(uint32_t) { sem_wait(&never_posted); }
void wait_condition(uint32_t) {
    pthread_mutex_lock(&with_condition);
    pthread_cond_wait(&never_signalled, &with_condition);
    pthread_mutex_unlock(&with_condition);
}
void wait_condition_for(uint32_t) {
    std::unique_lock<std::mutex> lock(std_mutex);
    std_condition.wait_for(lock, std::chrono::seconds(30));
}
void wait_condition_std(uint32_t) {
    std::unique_lock<std::mutex> lock(std_mutex);
    std_condition.wait(lock);
}
// Waits at futexes. A thread that serves no requests offers a number from time to time, and wakes
// one of those who wait for it.
std::promise<int> never_kept;
const std::shared_future<int> never_ready = never_kept.get_future().share();
std::latch never_down(1);
std::counting_semaphore<> never_released(0);
std::atomic<int> offered{0};
void wait_future(uint32_t) { never_ready.wait(); }
void wait_latch(uint32_t) { never_down.wait(); }
void wait_std_semaphore(uint32_t) { never_released.acquire(); }
void wait_offer(uint32_t) {
    for (int was = offered; was == 0 || !offered.compare_exchange_weak(was, was - 1); was = offered) offered.wait(0);
}
std::timed_mutex held_timed;
void wait_timed(uint32_t) {
    if (held_timed.try_lock_for(std::chrono::seconds(30))) held_timed.unlock();
}
int locked_file, other_file;
void wait_file(uint32_t) { flock(other_file, LOCK_EX); }
// A thread that serves no requests holds the lock for half the time.
void wait_lock(uint32_t) {
    pthread_mutex_lock(&held);
    pthread_mutex_unlock(&held);
}
void wait_rwlock(uint32_t r) {
    if (r % 2) pthread_rwlock_rdlock(&held_rw);
    else pthread_rwlock_wrlock(&held_rw);
    pthread_rwlock_unlock(&held_rw);
}

void hold_locks() {
    while (!over) {
        pthread_mutex_lock(&held);
        pthread_rwlock_wrlock(&held_rw);
        held_timed.lock();
        if (offered == 0) offered = 1, offered.notify_one();
        usleep(3000);
        held_timed.unlock();
        pthread_rwlock_unlock(&held_rw);
        pthread_mutex_unlock(&held);
        usleep(3000);
    }
}

// --- Memory ---

void allocate(uint32_t r) {
    void *kept[32];
    for (auto &block : kept) {
        block = malloc((r = r * 1664525 + 1013904223) % 3000);
        if (block) *static_cast<char *>(block) = 1;
    }
    for (int i = 0; i < 32; i += 2) free(kept[i]);
    for (int i = 1; i < 32; i += 2) kept[i] = realloc(kept[i], 100 + r % 9000);
    spin(50);
    for (int i = 1; i < 32; i += 2) free(kept[i]);
}
void align(uint32_t r) {
    void *block = nullptr;
    if (posix_memalign(&block, 16u << (r % 8), 100 + r % 5000)) return;
    if (reinterpret_cast<uintptr_t>(block) % (16u << (r % 8))) broken++;
    block = realloc(block, 200 + r % 9000);
    char *zeros = static_cast<char *>(calloc(7, 1 + r % 500));
    for (uint32_t i = 0; i < 7 * (1 + r % 500); i++) broken += zeros[i] != 0;
    free(zeros);
    free(block);
}
void duplicate(uint32_t r) {
    char *text = strdup("a text that is long enough"), *other = nullptr;
    if (asprintf(&other, "%s %u", text, r) < 0) broken++;
    free(text);
    free(other);
    free(realpath("/tmp/..", nullptr));
}
void map(uint32_t r) {
    size_t size = 4096 * (2 + r % 6);
    char *at = static_cast<char *>(mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    at[0] = 1;
    if (r % 3 == 0) at = static_cast<char *>(mremap(at, size, size * 2, MREMAP_MAYMOVE)), size *= 2;
    spin(100);
    munmap(at, 4096);
    munmap(at + 4096, size - 4096);
}
void hold_memory(uint32_t r) {
    char *kept[300];
    for (auto &block : kept) {
        block = static_cast<char *>(malloc(50 + r % 50));
        if (block) *block = 1;
    }
    spin(100000);
    for (auto &block : kept) free(block);
}

// --- Locks: the two of a pair differ only while it is locked ---

struct Pair {
    volatile uint64_t a = 0, b = 0;
    void change() {
        uint64_t was = a;
        if (was != b) broken++;
        a = was + 1;
        spin(30);
        b = was + 1;
    }
    void look() {
        if (a != b) broken++;
    }
};
constexpr int LOCKS = 4;
Pair pairs[LOCKS], rw_pairs[LOCKS], spin_pair, std_pair, stream_pair;
pthread_mutex_t mutexes[LOCKS];
pthread_rwlock_t rwlocks[LOCKS];
pthread_spinlock_t spin_lock;

void lock_one(uint32_t r) {
    int i = static_cast<int>(r % LOCKS);
    pthread_mutex_lock(&mutexes[i]);
    pairs[i].change();
    pthread_mutex_unlock(&mutexes[i]);
    spin(20);
}
void lock_two(uint32_t r) {
    int first = static_cast<int>(r % (LOCKS - 1)), second = first + 1;
    pthread_mutex_lock(&mutexes[first]);
    pairs[first].change();
    pthread_mutex_lock(&mutexes[second]);
    pairs[second].change();
    pthread_mutex_unlock(&mutexes[second]);
    spin(20);
    pthread_mutex_unlock(&mutexes[first]);
}
void lock_try(uint32_t r) {
    int i = static_cast<int>(r % LOCKS);
    if (pthread_mutex_trylock(&mutexes[i]) == 0) {
        pairs[i].change();
        pthread_mutex_unlock(&mutexes[i]);
    }
}
void lock_rw(uint32_t r) {
    int i = static_cast<int>(r % LOCKS);
    if (r & 64) {
        pthread_rwlock_wrlock(&rwlocks[i]);
        rw_pairs[i].change();
    } else {
        pthread_rwlock_rdlock(&rwlocks[i]);
        rw_pairs[i].look();
    }
    pthread_rwlock_unlock(&rwlocks[i]);
}
void lock_spin(uint32_t) {
    pthread_spin_lock(&spin_lock);
    spin_pair.change();
    pthread_spin_unlock(&spin_lock);
}
void lock_std(uint32_t) {
    std::lock_guard<std::mutex> lock(std_mutex);
    std_pair.change();
}
FILE *shared_stream;
void lock_stream(uint32_t) {
    flockfile(shared_stream);
    stream_pair.change();
    funlockfile(shared_stream);
}
void lock_masked(uint32_t) {
    static std::atomic_flag own = ATOMIC_FLAG_INIT;
    SERT_mask();
    while (own.test_and_set()) sched_yield();
    spin(30);
    own.clear();
    SERT_unmask();
}

// --- Descriptors and streams ---

void open_file(uint32_t r) {
    int fd = open("/proc/self/status", O_RDONLY);
    char text[64];
    (void)!read(fd, text, sizeof text);
    int copy = r % 2 ? dup(fd) : fcntl(fd, F_DUPFD_CLOEXEC, 3);
    spin(50);
    close(fd);
    close(copy);
}
void open_sockets(uint32_t r) {
    int fds[2];
    char text[8] = "hello";
    if (r % 2 ? pipe(fds) : socketpair(AF_UNIX, SOCK_STREAM, 0, fds)) return;
    (void)!write(fds[1], text, 5);
    (void)!read(fds[0], text, 5);
    close(fds[0]);
    close(fds[1]);
}
void open_stream(uint32_t r) {
    bool lists_mounts = r % 3 == 1;
    FILE *file = r % 3 == 0 ? tmpfile() : lists_mounts ? setmntent("/proc/self/mounts", "r") : fopen("/proc/self/status", "r");
    if (!file) return;
    char text[100];
    if (r % 2) fprintf(file, "%u\n", r), rewind(file);
    while (fgets(text, sizeof text, file)) spin(10);
    lists_mounts ? endmntent(file) : fclose(file);
}
void open_line(uint32_t) {
    FILE *file = fdopen(open("/proc/self/status", O_RDONLY), "r");
    if (!file) return;
    char *line = nullptr;
    size_t size = 0;
    for (int i = 0; i < 10 && getline(&line, &size, file) > 0; i++) spin(10);
    free(line);
    fclose(file);
}
void open_directory(uint32_t) {
    DIR *directory = opendir("/proc/self/fdinfo");
    for (int i = 0; i < 5 && directory && readdir(directory); i++) spin(10);
    if (directory) closedir(directory);
}
void open_ifstream(uint32_t) {
    std::ifstream file("/proc/self/status");
    std::string line;
    for (int i = 0; i < 5 && std::getline(file, line); i++) spin(10);
}

// --- C++ ---

void fill(uint32_t r) {
    std::map<std::string, std::vector<int>> index;
    for (uint32_t i = 0; i < 60; i++) {
        index["a key that does not fit into the string itself " + std::to_string(r % 97 * i)].push_back(static_cast<int>(i));
    }
    std::unordered_map<uint32_t, std::unique_ptr<std::string>> other;
    for (uint32_t i = 0; i < 60; i++) other[r * i] = std::make_unique<std::string>(50, 'x');
    sink = static_cast<double>(index.size() + other.size());
}
void throw_one(uint32_t r) {
    try {
        std::vector<int> numbers(10);
        sink = numbers.at(5 + r % 10);
    } catch (const std::exception &error) {
        sink = static_cast<double>(strlen(error.what()));
        spin(50);
    }
}
void print(uint32_t r) {
    std::ostringstream text;
    text << r << ' ' << r / 7.0 << ' ' << std::hex << r;
    sink = static_cast<double>(text.str().size());
}
void first_use(uint32_t r) {
    static const std::string once = std::string(100, 'o') + std::to_string(r);
    if (once.size() < 100 || once[99] != 'o') broken++;
    std::function<double(double)> call = [r](double x) { return x + r; };
    sink = call(1);
}

struct Mix {
    const char *name;
    std::vector<Op> ops;
};
const std::vector<Mix> mixes = {
    {"cpu", {compute, compute, draw, tell_time, format, sort}},
    {"blocking", {wait_read, wait_recv, wait_poll, wait_select, wait_epoll, wait_accept, wait_sleep, wait_semaphore,
                  wait_condition, wait_condition_for, wait_condition_std, wait_lock, wait_rwlock, compute, wait_future, wait_latch,
                  wait_std_semaphore, wait_offer, wait_timed, wait_file}},
    {"memory", {allocate, allocate, align, duplicate, map, hold_memory}},
    {"locks", {lock_one, lock_two, lock_try, lock_rw, lock_spin, lock_std, lock_stream, lock_masked}},
    {"stdio", {open_file, open_sockets, open_stream, open_line, open_directory, open_ifstream}},
    {"cpp", {fill, throw_one, print, first_use, lock_std}},
};

// --- The compared state ---

struct State {
    long fds = 0, heap = 0, maps = 0;
};

long entries(const char *path) {
    long count = 0;
    DIR *directory = opendir(path);
    while (readdir(directory)) count++;
    closedir(directory);
    return count;
}
long lines(const char *path) {
    std::ifstream file(path);
    std::string line;
    long count = 0;
    while (std::getline(file, line)) count++;
    return count;
}
State look() {
    struct mallinfo2 info = mallinfo2();
    return {entries("/proc/self/fd"), static_cast<long>(info.uordblks + info.hblkhd), lines("/proc/self/maps")};
}

// --- Workers, which pause while the state is read ---

std::atomic<bool> pause_now{false};
std::atomic<int> paused{0};

void serve(const Mix *mix, uint32_t seed) {
    dice = seed;
    sigjmp_buf point;
    static thread_local volatile uint64_t served, warm = 3;
    while (!over) {
        if (pause_now) {
            paused++;
            while (pause_now) usleep(1000);
            paused--;
        }
        if (sigsetjmp(point, served % 2) != 0) {
            served = served + 1;
            continue;
        }
        SERT_register_rollbackpoint(&point);
        // The first ones are short: a thread that has completed none stops none.
        uint32_t few = warm > 0 || roll() % 8 == 0 ? 1 + roll() % 3 : UINT32_MAX;
        warm = warm - (warm > 0);
        if (mix == &mixes[1] && few != UINT32_MAX) {
            SERT_start();
            compute(roll());
        } else {
            SERT_start();
            for (uint32_t i = 0; i < few && !over; i++) mix->ops[roll() % mix->ops.size()](roll());
        }
        SERT_end();
        ended++;
    }
}

sert_stats stats() {
    sert_stats all = {};
    all.size = sizeof all;
    SERT_get_stats(&all);
    return all;
}

// Waits until `terminations` requests were terminated. Returns whether there was progress.
bool wait_for(uint64_t terminations) {
    uint64_t last = 0;
    for (int idle = 0; stats().terminated < terminations; usleep(10000)) {
        uint64_t now = stats().terminated;
        idle = now == last ? idle + 1 : 0;
        last = now;
        if (idle > STUCK_SECONDS * 100) return false;
    }
    return true;
}

State stand_still() {
    pause_now = true;
    for (int i = 0; paused < WORKERS; i++) {
        usleep(1000);
        if (i > STUCK_SECONDS * 1000) {
            fprintf(stderr, "STUCK: a worker does not come back\n");
            _exit(1);
        }
    }
    malloc_trim(0);
    State state = look();
    pause_now = false;
    return state;
}

void check(const char *what, long before, long after, long slack, int &failed) {
    bool fine = labs(after - before) <= slack;
    printf("  %-12s %ld -> %ld%s\n", what, before, after, fine ? "" : "  FAILED");
    failed += !fine;
}

int check_locks() {
    int stuck = 0;
    for (auto &mutex : mutexes) stuck += pthread_mutex_trylock(&mutex) != 0;
    for (auto &lock : rwlocks) stuck += pthread_rwlock_trywrlock(&lock) != 0;
    stuck += pthread_spin_trylock(&spin_lock) != 0;
    stuck += !std_mutex.try_lock();
    stuck += ftrylockfile(shared_stream) != 0;
    stuck += pthread_mutex_trylock(&with_condition) != 0;
    stuck += !held_timed.try_lock();
    return stuck;
}

void prepare() {
    for (auto &mutex : mutexes) pthread_mutex_init(&mutex, nullptr);
    for (auto &lock : rwlocks) pthread_rwlock_init(&lock, nullptr);
    pthread_spin_init(&spin_lock, 0);
    sem_init(&never_posted, 0, 0);
    if (pipe(empty_pipe) || socketpair(AF_UNIX, SOCK_STREAM, 0, quiet)) abort();
    listener = socket(AF_UNIX, SOCK_STREAM, 0);
    sockaddr address = {};
    address.sa_family = AF_UNIX;
    if (bind(listener, &address, sizeof(sa_family_t)) || listen(listener, 1)) abort();
    shared_stream = fopen("/dev/null", "w");
    locked_file = open("/proc/self/exe", O_RDONLY), other_file = open("/proc/self/exe", O_RDONLY);
    if (locked_file < 0 || other_file < 0 || flock(locked_file, LOCK_EX)) abort();
}

}  // namespace

int main(int argc, char **argv) {
    const Mix *mix = nullptr;
    for (const Mix &each : mixes) mix = argc > 1 && each.name == std::string(argv[1]) ? &each : mix;
    if (argc != 3 || !mix) {
        fprintf(stderr, "torture cpu|blocking|memory|locks|stdio|cpp TERMINATIONS\n");
        return 2;
    }
    // Blocks in a thread's cache count as in use: without the cache, the heap can be compared.
    if (!getenv("GLIBC_TUNABLES")) {
        setenv("GLIBC_TUNABLES", "glibc.malloc.tcache_count=0", 1);
        execv("/proc/self/exe", argv);
    }
    uint64_t wanted = strtoull(argv[2], nullptr, 10);
    prepare();
    sert_arg arg = {};
    arg.size = sizeof arg;
    arg.lb_ms = arg.ub_ms = 0.3;
    if (SERT_init_timer(SIGRTMIN + 4) || SERT_set_args(&arg)) return 1;
    std::vector<std::thread> workers;
    for (uint32_t i = 0; i < WORKERS; i++) workers.emplace_back(serve, mix, 12345 + i * 7919);
    std::thread holder(hold_locks);

    int failed = 0;
    State before, after;
    if (!wait_for(SETTLED)) {
        fprintf(stderr, "STUCK: no progress\n");
        _exit(1);
    }
    before = stand_still();
    if (!wait_for(wanted + SETTLED)) {
        fprintf(stderr, "STUCK after %" PRIu64 " terminations\n", stats().terminated);
        _exit(1);
    }
    after = stand_still();
    sert_stats all = stats();
    printf("%s: terminated %" PRIu64 ", completed %" PRIu64 ", deferred %" PRIu64 " by mask %" PRIu64 " by lock %" PRIu64 " by gate\n",
           mix->name, all.terminated, all.completed, all.masked, all.locked, all.gated);
    check("descriptors", before.fds, after.fds, 0, failed);
    check("heap", before.heap, after.heap, 65536, failed);
    check("mappings", before.maps, after.maps, 3, failed);
    over = true;
    for (int i = 0; i < 2; i++) pthread_cond_broadcast(&never_signalled), std_condition.notify_all();
    // Waiting requests are stopped; then all have ended.
    for (auto &worker : workers) worker.join();
    holder.join();
    check("locks held", 0, check_locks(), 0, failed);
    check("broken", 0, static_cast<long>(broken.load()), 0, failed);
    return failed ? 1 : 0;
}

// Tests of waits in which a request can be stopped, and of the objects for which it waited: they
// work for other threads afterwards.
#include <linux/futex.h>
#include <sys/file.h>

#include <barrier>
#include <future>
#include <latch>
#include <semaphore>
#include <shared_mutex>

#include "harness.h"

namespace behaviour {

namespace {

constexpr std::chrono::hours LONG{1};

// Runs the wait in a request, which must be stopped in it, twice.
void is_stopped_in(const std::function<void()> &wait) {
    for (int i = 0; i < 2; i++) CHECK(request([&] { wait(); CHECK(!"reached"); }) == SERT_RAN_TOO_LONG);
}

// Runs the wait in a request, which becomes overdue in it. The request is not stopped before `end`
// ends the wait.
void ends_before_the_stop(const std::function<void()> &wait, const std::function<void()> &end) {
    static std::atomic<bool> is_waiting, has_ended;
    is_waiting = has_ended = false;
    std::thread other([&] {
        while (!is_waiting) usleep(100);
        usleep(600000);
        has_ended = true;
        end();
    });
    CHECK(request([&] {
        is_waiting = true;
        wait();
        for_ever();
    }) == SERT_RAN_TOO_LONG);
    CHECK(has_ended);
    other.join();
}

void a_request_is_stopped_in_the_waits_of_the_standard_library() {
    start_library();
    static std::promise<int> promise;
    static auto future = promise.get_future().share();
    is_stopped_in([] { future.wait(); });
    is_stopped_in([] { future.wait_for(LONG); });
    std::thread waiter([] { CHECK(future.get() == 5); });
    promise.set_value(5);
    waiter.join();

    static std::latch latch(1);
    is_stopped_in([] { latch.wait(); });
    std::thread at_latch([] { latch.wait(); });
    latch.count_down();
    at_latch.join();

    // No permit is lost, and none is won.
    static std::counting_semaphore<8> semaphore(0);
    is_stopped_in([] { semaphore.acquire(); });
    is_stopped_in([] { semaphore.try_acquire_for(LONG); });
    std::thread at_semaphore([] { semaphore.acquire(); });
    semaphore.release();
    at_semaphore.join();
    CHECK(!semaphore.try_acquire());

    static std::atomic<int> number(0);
    is_stopped_in([] { number.wait(0); });
    std::thread at_number([] { number.wait(0); });
    number = 1;
    number.notify_one();
    at_number.join();
}

void a_request_is_stopped_in_waits_with_a_time_limit() {
    start_library();
    static std::timed_mutex mutex;
    static std::shared_timed_mutex shared;
    static mtx_t plain;
    static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
    static sem_t semaphore;
    mtx_init(&plain, mtx_timed), sem_init(&semaphore, 0, 0);
    static timespec end;
    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += 3600;
    std::atomic<bool> is_held{false}, over{false};
    std::thread holder([&] {
        mutex.lock(), shared.lock(), mtx_lock(&plain), pthread_rwlock_wrlock(&rwlock);
        is_held = true;
        while (!over) usleep(1000);
        mutex.unlock(), shared.unlock(), mtx_unlock(&plain), pthread_rwlock_unlock(&rwlock);
    });
    while (!is_held) usleep(100);
    is_stopped_in([] { mutex.try_lock_for(LONG); });
    is_stopped_in([] { mutex.try_lock_until(std::chrono::system_clock::now() + LONG); });
    is_stopped_in([] { shared.try_lock_for(LONG); });
    is_stopped_in([] { shared.try_lock_shared_for(LONG); });
    is_stopped_in([] { pthread_rwlock_timedwrlock(&rwlock, &end); });
    is_stopped_in([] { pthread_rwlock_timedrdlock(&rwlock, &end); });
    is_stopped_in([] { mtx_timedlock(&plain, &end); });
    is_stopped_in([] { sem_timedwait(&semaphore, &end); });
    is_stopped_in([] { sem_clockwait(&semaphore, CLOCK_REALTIME, &end); });
    // The limits are the program's.
    CHECK(SERT_set_class(0) == 0);
    double began = now_ms();
    CHECK(!mutex.try_lock_for(std::chrono::milliseconds(90)));
    sert_arg late = granted(60000, 60000);
    CHECK(SERT_set_args(&late) == 0);
    CHECK(request([] {
        CHECK(!mutex.try_lock_for(std::chrono::milliseconds(90)));
        CHECK(!shared.try_lock_for(std::chrono::milliseconds(90)));
    }) == 0);
    CHECK(now_ms() - began >= 269);
    over = true;
    holder.join();
    CHECK(mutex.try_lock() && shared.try_lock() && mtx_trylock(&plain) == thrd_success && sem_trywait(&semaphore) == -1);
}

void signals_that_stop_nothing_do_not_cut_waits_short() {
    start_library(granted(60000, 60000));
    Nuisance nuisance(500);
    static std::promise<int> promise;
    static auto future = promise.get_future().share();
    static std::counting_semaphore<8> semaphore(0);
    static std::timed_mutex mutex;
    static std::latch latch(1);
    std::atomic<bool> is_held{false}, over{false};
    std::thread holder([&] {
        mutex.lock();
        is_held = true;
        usleep(300000);
        latch.count_down();
        while (!over) usleep(1000);
        mutex.unlock();
    });
    while (!is_held) usleep(100);
    double began = now_ms();
    CHECK(request([&] {
        constexpr std::chrono::milliseconds SHORT{60};
        CHECK(future.wait_for(SHORT) == std::future_status::timeout);
        CHECK(!semaphore.try_acquire_for(SHORT) && !mutex.try_lock_for(SHORT));
        CHECK(now_ms() - began >= 179);
        latch.wait();
    }) == 0);
    CHECK(latch.try_wait());
    over = true;
    holder.join();
}

long futex(std::atomic<int> &word, int operation, int value) {
    return syscall(SYS_futex, &word, operation, value, nullptr, nullptr, 0);
}

// The first thread in the futex is a request: it is woken, and stopped before it looks at its
// object again. The second one must be woken in its place.
void a_stopped_request_passes_its_wake_up_on() {
    start_library(granted(2000, 2000));
    static std::atomic<int> word(0);
    static std::atomic<pid_t> second_id(0);
    static std::atomic<bool> is_woken(false), was_first_woken(false);
    std::thread second;
    std::atomic<bool> is_first(false);
    std::thread starter([&] {
        while (!is_first) usleep(100);
        usleep(20000);
        second = std::thread([] {
            second_id = gettid();
            CHECK(futex(word, FUTEX_WAIT_PRIVATE, 0) == 0);
            is_woken = true;
        });
        // In the kernel, it sleeps.
        std::string state;
        while (state != "S") {
            std::ifstream file("/proc/self/task/" + std::to_string(second_id) + "/stat");
            std::string skipped;
            file >> skipped >> skipped >> state;
        }
        usleep(20000);
        CHECK(futex(word, FUTEX_WAKE_PRIVATE, 1) == 1);
    });
    CHECK(request([&] {
        is_first = true;
        CHECK(futex(word, FUTEX_WAIT_PRIVATE, 0) == 0);
        CHECK(!is_woken);
        was_first_woken = true;
        for_ever();
    }) == SERT_RAN_TOO_LONG);
    CHECK(was_first_woken);
    starter.join();
    for (int i = 0; i < 5000 && !is_woken; i++) usleep(1000);
    CHECK(is_woken);
    second.join();
}

// Another thread uses the object, so that it must not be released: neither on the stack nor on the
// heap.
void a_request_is_not_stopped_while_it_waits_for_its_own_object() {
    start_library(granted(200, 200));
    static std::atomic<std::latch *> latch(nullptr);
    ends_before_the_stop([] {
        std::latch own(1);
        latch = &own;
        own.wait();
    }, [] { latch.load()->count_down(); });

    static std::atomic<std::promise<int> *> promise(nullptr);
    ends_before_the_stop([] {
        auto own = std::make_unique<std::promise<int>>();
        promise = own.get();
        CHECK(own->get_future().get() == 5);
    }, [] { promise.load()->set_value(5); });

    static std::atomic<sem_t *> semaphore(nullptr);
    ends_before_the_stop([] {
        sem_t own;
        sem_init(&own, 0, 0);
        semaphore = &own;
        sem_wait(&own);
    }, [] { sem_post(semaphore); });

    struct Signal {
        std::mutex mutex;
        std::condition_variable condition;
        bool is_set = false;
    };
    static std::atomic<Signal *> signal(nullptr);
    ends_before_the_stop([] {
        auto own = std::make_unique<Signal>();
        signal = own.get();
        std::unique_lock<std::mutex> lock(own->mutex);
        own->condition.wait(lock, [&] { return own->is_set; });
    }, [] {
        std::lock_guard<std::mutex> lock(signal.load()->mutex);
        signal.load()->is_set = true;
        signal.load()->condition.notify_one();
    });
}

// The object is in the frame that calls SERT_start.
void a_request_is_not_stopped_while_it_waits_for_an_object_next_to_its_begin() {
    start_library(granted(200, 200));
    static std::atomic<sem_t *> semaphore(nullptr);
    static std::atomic<bool> has_ended(false);
    std::thread other([] {
        while (!semaphore) usleep(100);
        usleep(600000);
        has_ended = true;
        sem_post(semaphore);
    });
    sem_t own;
    sem_init(&own, 0, 0);
    static sigjmp_buf point;
    if (sigsetjmp(point, 0) == 0) {
        CHECK(SERT_register_rollbackpoint(&point) == 0 && SERT_start() == 0);
        semaphore = &own;
        sem_wait(&own);
        for_ever();
    }
    CHECK(has_ended);
    other.join();
}

// The manual's way to hand work to another thread: the object belongs to the program, and a stop
// releases it by SERT_defer.
void a_request_is_stopped_while_it_waits_for_a_task_that_it_has_handed_over() {
    start_library(granted(20, 20));
    using Task = std::packaged_task<std::string()>;
    static std::mutex mutex;
    static std::vector<Task> queue;
    queue.reserve(100);
    auto hand_over = [] {
        SERT_unaccounted_begin();
        Task task([] { return std::string(1000, 't'); });
        auto *future = new std::future<std::string>(task.get_future());
        {
            std::lock_guard<std::mutex> lock(mutex);
            queue.push_back(std::move(task));
        }
        CHECK(SERT_defer([](void *it) { delete static_cast<std::future<std::string> *>(it); }, future) == 0);
        SERT_unaccounted_end();
        future->get();
    };
    long before = 0;
    for (int i = 0; i < 30; i++) {
        is_stopped_in(hand_over);
        for (Task &task : queue) task();
        queue.clear();
        if (i == 5) before = heap();
    }
    CHECK(labs(heap() - before) < 4096);
}

// An arrival cannot be taken back.
void a_barrier_is_not_left() {
    start_library(granted(200, 200));
    static std::barrier<> barrier(2);
    static pthread_barrier_t posix;
    pthread_barrier_init(&posix, nullptr, 2);
    for (int i = 0; i < 3; i++) {
        ends_before_the_stop([] { barrier.arrive_and_wait(); }, [] { barrier.arrive_and_wait(); });
        ends_before_the_stop([] { pthread_barrier_wait(&posix); }, [] { pthread_barrier_wait(&posix); });
    }
    // A small number waits at the same word as a barrier.
    static std::atomic<bool> flag(false);
    ends_before_the_stop([] { flag.wait(false); }, [] { flag = true, flag.notify_one(); });
}

void a_thread_can_be_joined_by_another_after_a_stop() {
    start_library();
    static std::atomic<bool> over(false);
    auto last = [] { while (!over) usleep(1000); };
    static std::thread thread(last);
    static pthread_t first, second, third;
    static thrd_t c11;
    auto run = [](void *) -> void * {
        while (!over) usleep(1000);
        return &over;
    };
    for (pthread_t *each : {&first, &second, &third}) CHECK(pthread_create(each, nullptr, run, nullptr) == 0);
    CHECK(thrd_create(&c11, [](void *) { while (!over) usleep(1000); return 7; }, nullptr) == thrd_success);
    static timespec end;
    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += 3600;
    is_stopped_in([] { thread.join(); });
    is_stopped_in([] { pthread_join(first, nullptr); });
    is_stopped_in([] { pthread_clockjoin_np(second, nullptr, CLOCK_REALTIME, &end); });
    is_stopped_in([] { pthread_timedjoin_np(third, nullptr, &end); });
    is_stopped_in([] { thrd_join(c11, nullptr); });
    CHECK(pthread_tryjoin_np(first, nullptr) == EBUSY);
    CHECK(request([] { CHECK(pthread_clockjoin_np(second, nullptr, CLOCK_BOOTTIME, &end) == EINVAL); }) == 0);
    over = true;
    thread.join();
    // A request that has joined a thread is not stopped: the program must note it.
    void *result = nullptr;
    int number = 0;
    CHECK(request([&] { CHECK(pthread_join(first, &result) == 0); burn_for(100); }) == 0);
    CHECK(result == &over);
    CHECK(request([&] { CHECK(pthread_timedjoin_np(second, nullptr, &end) == 0); burn_for(100); }) == 0);
    CHECK(request([&] { CHECK(thrd_join(c11, &number) == thrd_success); burn_for(100); }) == 0);
    CHECK(number == 7);
    while (pthread_tryjoin_np(third, nullptr) != 0) usleep(1000);
}

void a_request_is_stopped_while_it_waits_for_a_lock_on_a_file() {
    char name[] = "/tmp/sert-XXXXXX";
    static int fd = mkstemp(name), other = open(name, O_RDWR);
    CHECK(fd >= 0 && other >= 0 && flock(other, LOCK_EX) == 0);
    int ready[2], done[2];
    CHECK(pipe(ready) == 0 && pipe(done) == 0);
    // The locks of fcntl and lockf belong to a process.
    pid_t child = fork();
    if (child == 0) {
        char byte;
        close(done[1]);
        CHECK(lockf(other, F_LOCK, 0) == 0 && write(ready[1], "x", 1) == 1);
        (void)!read(done[0], &byte, 1);
        _exit(0);
    }
    char byte;
    close(done[0]);
    CHECK(read(ready[0], &byte, 1) == 1);
    start_library();
    static struct flock lock = {};
    lock.l_type = F_WRLCK;
    is_stopped_in([] { flock(fd, LOCK_EX); });
    is_stopped_in([] { fcntl(fd, F_SETLKW, &lock); });
    is_stopped_in([] { lockf(fd, F_LOCK, 0); });
    is_stopped_in([] { fcntl(fd, F_OFD_SETLKW, &lock); });
    CHECK(flock(fd, LOCK_EX | LOCK_NB) == -1 && lockf(fd, F_TLOCK, 0) == -1);
    close(done[1]), close(other);
    CHECK(waitpid(child, nullptr, 0) == child);
    CHECK(request([] { CHECK(flock(fd, LOCK_EX) == 0 && fcntl(fd, F_SETLKW, &lock) == 0 && lockf(fd, F_LOCK, 0) == 0); }) == 0);
    unlink(name);
}

}  // namespace

const std::vector<Test> waits_tests = {
    TEST("standard-waits", a_request_is_stopped_in_the_waits_of_the_standard_library),
    TEST("timed-waits", a_request_is_stopped_in_waits_with_a_time_limit),
    TEST("uncut", signals_that_stop_nothing_do_not_cut_waits_short),
    TEST("woken", a_stopped_request_passes_its_wake_up_on),
    TEST("own-wait", a_request_is_not_stopped_while_it_waits_for_its_own_object),
    TEST("own-wait-at-begin", a_request_is_not_stopped_while_it_waits_for_an_object_next_to_its_begin),
    TEST("task", a_request_is_stopped_while_it_waits_for_a_task_that_it_has_handed_over),
    TEST("barrier", a_barrier_is_not_left),
    TEST("join", a_thread_can_be_joined_by_another_after_a_stop),
    TEST("file-locks", a_request_is_stopped_while_it_waits_for_a_lock_on_a_file),
};

}  // namespace behaviour

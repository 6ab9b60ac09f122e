// Tests of when a request is stopped, and of when a wait is not disturbed.
#include <netinet/in.h>

#include "harness.h"

namespace behaviour {

namespace {

void a_request_is_stopped_when_it_is_due_and_not_before() {
    start_library(granted(400, 400));
    double began = now_ms();
    CHECK(request(for_ever) == SERT_RAN_TOO_LONG);
    CHECK(now_ms() - began >= 400);
    CHECK(request([] { burn_for(5); }) == 0);
    CHECK(stats().terminated == 1 && stats().completed == 1 && stats().arrived == 2);
}

void a_late_signal_stops_nothing() {
    start_library(granted(5000, 5000));
    Nuisance nuisance(200);
    for (int i = 0; i < 200; i++) CHECK(request([] { burn_for(1); }) == 0);
    CHECK(stats().completed == 201 && stats().terminated == 0 && stats().late > 0);
}

void waits_are_undisturbed_by_signals_that_stop_nothing() {
    start_library(granted(5000, 5000));
    Nuisance nuisance(500);
    auto waits = [] {
        double began = now_ms();
        timespec time = {0, 60000000}, rest = {9, 9};
        CHECK(poll(nullptr, 0, 60) == 0);
        CHECK(nanosleep(&time, &rest) == 0 && rest.tv_sec == 9);
        CHECK(clock_nanosleep(CLOCK_REALTIME, 0, &time, nullptr) == 0);
        timeval short_time = {0, 60000};
        CHECK(select(0, nullptr, nullptr, nullptr, &short_time) == 0 && short_time.tv_usec == 0);
        CHECK(usleep(60000) == 0);
        CHECK(now_ms() - began >= 299 && now_ms() - began < 3000);
    };
    CHECK(request(waits) == 0);
    CHECK(request([&] { SERT_mask(), waits(), SERT_unmask(); }) == 0);
    waits();
}

void another_signal_of_the_program_still_interrupts() {
    start_library(granted(5000, 5000));
    struct sigaction action = {};
    action.sa_handler = [](int) {};
    sigaction(SIGUSR1, &action, nullptr);
    pthread_t self = pthread_self();
    std::thread other([self] {
        usleep(30000);
        pthread_kill(self, SIGUSR1);
    });
    CHECK(request([] { CHECK(poll(nullptr, 0, 10000) == -1 && errno == EINTR); }) == 0);
    other.join();
}

void when_many_are_lost_the_threshold_falls_also_for_those_that_run() {
    sert_arg arg = granted(5, 60000);
    arg.interval_ms = 100;
    start_library(arg);
    CHECK(stats().threshold_ns == 60000000000u);
    std::atomic<bool> over{false};
    std::thread refusals([&] {
        while (!over) {
            SERT_refused(0);
            usleep(1000);
        }
    });
    CHECK(request(for_ever) == SERT_RAN_TOO_LONG);
    CHECK(stats().threshold_ns == 5000000 && stats().loss > 0.9);
    over = true;
    refusals.join();
    // Without arrivals there are no losses.
    for (int i = 0; i < 500 && stats().threshold_ns != 60000000000u; i++) usleep(10000);
    CHECK(stats().threshold_ns == 60000000000u && stats().loss == 0);
}

// The tokens of requests that wait for long, and the thread that stops them.
void who_is_gone_is_stopped_at_once_and_not_in_the_loss() {
    sert_arg arg = granted(5, 60000);
    arg.interval_ms = 100;
    start_library(arg);
    std::atomic<uint64_t> token{0};
    std::atomic<bool> over{false};
    std::thread killer([&] {
        while (!over) {
            uint64_t is = token.exchange(0);
            if (is) CHECK(SERT_terminate(is, SERT_CLIENT_GONE) == 0);
            usleep(100);
        }
    });
    for (int i = 0; i < 300; i++) {
        CHECK(request([&] {
            token = SERT_token();
            i % 2 ? for_ever() : static_cast<void>(poll(nullptr, 0, 30000));
        }) == SERT_CLIENT_GONE);
    }
    over = true;
    killer.join();
    CHECK(stats().gone == 300 && stats().terminated == 0 && stats().loss == 0);
    CHECK(stats().threshold_ns == 60000000000u);
}

// One of ten remaining requests is refused; the clients of a hundred others leave.
void who_is_gone_does_not_hide_the_loss_of_others() {
    sert_arg arg = granted(50, 60000);
    arg.interval_ms = 600000;
    start_library(arg);
    SERT_refused(0);
    for (int i = 0; i < 9; i++) CHECK(request([] {}) == 0);
    for (int i = 0; i < 99; i++) {
        CHECK(request([&] {
            SERT_terminate(SERT_token(), SERT_CLIENT_GONE);
            for_ever();
        }) == SERT_CLIENT_GONE);
    }
    // It is the same interval, which is over now.
    arg.interval_ms = 100;
    CHECK(SERT_set_args(&arg) == 0);
    // The loss is of one interval, which is over soon.
    double loss = 0;
    for (int i = 0; i < 5000 && loss == 0; i++) usleep(1000), loss = stats().loss;
    CHECK(loss == 0.1);
    CHECK(stats().gone == 99);
}

void a_token_names_one_request_for_ever() {
    start_library(granted(5000, 5000));
    uint64_t first = 0;
    CHECK(request([&] { first = SERT_token(); }) == 0);
    CHECK(first != 0 && SERT_terminate(first, SERT_ORDERED) == -1 && errno == ESRCH);
    CHECK(request([&] {
        CHECK(SERT_token() != first);
        CHECK(SERT_terminate(first, SERT_ORDERED) == -1 && errno == ESRCH);
        SERT_cancel();
        CHECK(SERT_terminate(SERT_token(), SERT_ORDERED) == -1 && errno == EPERM);
    }) == 0);
}

void a_cooperative_class_is_told_and_not_stopped() {
    start_library(granted(200, 200, SERT_COOPERATIVE));
    CHECK(request([] {
        CHECK(SERT_checkpoint() == 0 && SERT_left() > 0);
        burn_for(300);
        CHECK(SERT_checkpoint() == SERT_RAN_TOO_LONG && SERT_checkpoint() == SERT_RAN_TOO_LONG && SERT_left() == 0);
    }) == 0);
    CHECK(stats().terminated == 1 && stats().completed == 0 && stats().arrived == 1);
}

void a_thread_is_warm_after_three_requests() {
    start_library(granted(3, 3, 0));
    for (int i = 0; i < 3; i++) CHECK(request([] { burn_for(12); }) == 0);
    CHECK(request(for_ever) == SERT_RAN_TOO_LONG);
    std::thread other([] {
        CHECK(SERT_set_class(0) == 0);
        CHECK(request([] { burn_for(12); }) == 0);
    });
    other.join();
}

void a_wait_for_a_condition_loses_no_signal() {
    start_library(granted(5000, 5000));
    static std::mutex mutex;
    static std::condition_variable condition;
    static bool ready = false;
    // The lock is held when a slice of the wait ends: the signal comes before the waiter has the
    // lock again.
    std::thread producer([] {
        usleep(10000);
        std::lock_guard<std::mutex> lock(mutex);
        burn_for(40);
        ready = true;
        condition.notify_one();
    });
    double began = now_ms();
    CHECK(request([] {
        std::unique_lock<std::mutex> lock(mutex);
        condition.wait(lock, [] { return ready; });
    }) == 0);
    CHECK(now_ms() - began < 2500);
    producer.join();
}

void c11_waits_can_be_stopped() {
    start_library(granted(20, 20));
    static mtx_t free_lock, held;
    static cnd_t condition;
    mtx_init(&free_lock, mtx_plain), mtx_init(&held, mtx_plain), cnd_init(&condition);
    std::atomic<bool> over{false}, is_held{false};
    std::thread holder([&] {
        mtx_lock(&held);
        is_held = true;
        while (!over) usleep(1000);
        mtx_unlock(&held);
    });
    while (!is_held) usleep(100);
    CHECK(request([] { mtx_lock(&held); }) == SERT_RAN_TOO_LONG);
    CHECK(request([] {
        mtx_lock(&free_lock);
        for (;;) cnd_wait(&condition, &free_lock);
    }) == SERT_RAN_TOO_LONG);
    CHECK(mtx_trylock(&free_lock) == thrd_success);
    over = true;
    holder.join();
}

// The request is overdue and holds a lock, so it cannot be stopped. The socket's own limit holds
// all the same.
void a_socket_keeps_its_time_limit() {
    start_library(granted(30, 30));
    static int client[2];
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, client) == 0);
    timeval time = {0, 400000};
    setsockopt(client[0], SOL_SOCKET, SO_RCVTIMEO, &time, sizeof time);
    double began = now_ms();
    CHECK(request([] {
        char byte;
        pthread_mutex_lock(&mutex);
        CHECK(recv(client[0], &byte, 1, 0) == -1 && errno == EAGAIN);
        pthread_mutex_unlock(&mutex);
    }) == SERT_RAN_TOO_LONG);
    CHECK(now_ms() - began >= 399 && now_ms() - began < 10000);
}

// A stop is pending but not possible: with signals blocked, and on another stack, waits work as
// usual.
void what_cannot_be_stopped_waits_as_ever() {
    start_library(granted(30, 30));
    CHECK(request([] {
        sigset_t all;
        sigfillset(&all);
        SERT_mask();
        burn_for(100);
        pthread_sigmask(SIG_SETMASK, &all, nullptr);
        SERT_unmask();
        double began = now_ms();
        timespec time = {0, 100000000};
        CHECK(nanosleep(&time, nullptr) == 0 && poll(nullptr, 0, 100) == 0);
        CHECK(now_ms() - began >= 199);
        sigemptyset(&all);
        pthread_sigmask(SIG_SETMASK, &all, nullptr);
        for_ever();
    }) == SERT_RAN_TOO_LONG);
}

// A request ends just before it is due: its timer must not cut the worker's later calls short.
void what_a_worker_does_after_a_request_is_undisturbed() {
    start_library(granted(20, 20));
    int client[2];
    CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, client) == 0);
    timeval time = {0, 60000};
    setsockopt(client[0], SOL_SOCKET, SO_RCVTIMEO, &time, sizeof time);
    sem_t semaphore;
    sem_init(&semaphore, 0, 0);
    char byte;
    for (int i = 0; i < 5; i++) {
        request([] { burn_for(15); });
        // A wait with a mask waits for a signal: it is only undisturbed if no signal comes.
        timespec time_left = {0, 60000000};
        sigset_t none;
        sigemptyset(&none);
        CHECK(ppoll(nullptr, 0, &time_left, &none) == 0);
        request([] { burn_for(15); });
        CHECK(recv(client[0], &byte, 1, 0) == -1 && errno == EAGAIN);
        request([] { burn_for(15); });
        timespec end;
        clock_gettime(CLOCK_REALTIME, &end);
        end.tv_nsec += 60000000, end.tv_sec += end.tv_nsec / 1000000000, end.tv_nsec %= 1000000000;
        CHECK(sem_timedwait(&semaphore, &end) == -1 && errno == ETIMEDOUT);
    }
    std::thread reader([&] {
        usleep(60000);
        std::string all(1 << 16, 0);
        for (size_t got = 0; got < 4u << 20;) got += static_cast<size_t>(read(client[1], &all[0], all.size()));
    });
    request([] { burn_for(15); });
    std::string answer(4 << 20, 'a');
    CHECK(send(client[0], answer.data(), answer.size(), 0) == static_cast<ssize_t>(answer.size()));
    reader.join();
}

void a_send_goes_on_when_a_signal_has_cut_it() {
    start_library(granted(5000, 5000));
    int client[2];
    CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, client) == 0);
    Nuisance nuisance(300);
    std::thread reader([&] {
        std::string all(1 << 14, 0);
        for (size_t got = 0; got < 20u << 20; usleep(100)) got += static_cast<size_t>(read(client[1], &all[0], all.size()));
    });
    std::string answer(4 << 20, 'a');
    CHECK(send(client[0], answer.data(), answer.size(), 0) == static_cast<ssize_t>(answer.size()));
    CHECK(write(client[0], answer.data(), answer.size()) == static_cast<ssize_t>(answer.size()));
    CHECK(sendto(client[0], answer.data(), answer.size(), 0, nullptr, 0) == static_cast<ssize_t>(answer.size()));
    // The data is in pieces, one of them empty.
    iovec pieces[4] = {{&answer[0], 100}, {&answer[100], 0}, {&answer[100], 2 << 20}, {&answer[100 + (2 << 20)], answer.size() - 100 - (2 << 20)}};
    CHECK(writev(client[0], pieces, 4) == static_cast<ssize_t>(answer.size()));
    msghdr message = {};
    message.msg_iov = pieces, message.msg_iovlen = 4;
    CHECK(sendmsg(client[0], &message, 0) == static_cast<ssize_t>(answer.size()));
    reader.join();
}

// The received data must be the sent data: comparing lengths would not show a repeated piece.
void pieces_that_are_cut_come_in_order() {
    start_library(granted(5000, 5000));
    int client[2];
    CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, client) == 0);
    Nuisance nuisance(300);
    std::string answer;
    for (uint32_t i = 0; answer.size() < 4u << 20; i++) answer.append(reinterpret_cast<const char *>(&i), sizeof i);
    std::string got;
    std::thread reader([&] {
        std::string all(1 << 14, 0);
        for (; got.size() < 2 * answer.size(); usleep(100)) got.append(all, 0, static_cast<size_t>(read(client[1], &all[0], all.size())));
    });
    iovec pieces[3] = {{&answer[0], 1000001}, {&answer[1000001], 1999999}, {&answer[3000000], answer.size() - 3000000}};
    CHECK(writev(client[0], pieces, 3) == static_cast<ssize_t>(answer.size()));
    msghdr message = {};
    message.msg_iov = pieces, message.msg_iovlen = 3;
    CHECK(sendmsg(client[0], &message, 0) == static_cast<ssize_t>(answer.size()));
    reader.join();
    CHECK(got == answer + answer);
}

void a_standard_signal_does_as_well() {
    CHECK(SERT_init_timer(SIGUSR2) == 0);
    sert_arg arg = granted(60, 60000);
    CHECK(SERT_set_args(&arg) == 0);
    for (int i = 0; i < 20; i++) {
        std::atomic<uint64_t> token{0};
        std::thread killer([&] {
            while (!token) usleep(100);
            CHECK(SERT_terminate(token, SERT_ORDERED) == 0);
        });
        CHECK(request([&] {
            token = SERT_token();
            for_ever();
        }) == SERT_ORDERED);
        killer.join();
    }
}

// The kernel delivers only one of two pending standard signals: the timer's. The order's is lost.
// The next order must arrive.
void a_standard_signal_that_stands_for_two_is_not_the_last() {
    // Use libc's own function: the library would take the call for one that leaves something
    // behind.
    auto by_number = reinterpret_cast<long (*)(long, ...)>(dlsym(dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD), "syscall"));
    CHECK(SERT_init_timer(SIGUSR2) == 0);
    sert_arg soon = granted(20, 20), late = granted(60000, 60000, SERT_NO_WARM_UP, 1);
    CHECK(SERT_set_args(&late) == 0 && SERT_set_args(&soon) == 0);
    std::atomic<uint64_t> token{0};
    std::thread orders([&] {
        for (int i = 0; i < 2; i++) {
            while (!token) usleep(100);
            usleep(60000);
            SERT_terminate(token.exchange(0), SERT_ORDERED);
        }
    });
    CHECK(request([&] {
        // Behave like a thread that does not run: both signals come, and wait to be delivered.
        uint64_t both = uint64_t{1} << (SIGUSR2 - 1);
        by_number(SYS_rt_sigprocmask, SIG_BLOCK, &both, nullptr, sizeof both);
        token = SERT_token();
        while (token) burn();
        burn_for(20);
        by_number(SYS_rt_sigprocmask, SIG_UNBLOCK, &both, nullptr, sizeof both);
        for_ever();
    }) == SERT_ORDERED);
    CHECK(SERT_set_class(1) == 0);
    CHECK(request([&] {
        token = SERT_token();
        for_ever();
    }) == SERT_ORDERED);
    orders.join();
}

void a_lower_threshold_is_for_those_too_that_run() {
    start_library(granted(60000, 60000));
    std::thread lowers([] {
        usleep(30000);
        sert_arg arg = granted(10, 10);
        CHECK(SERT_set_args(&arg) == 0);
    });
    double began = now_ms();
    CHECK(request(for_ever) == SERT_RAN_TOO_LONG);
    CHECK(now_ms() - began < 20000);
    lowers.join();
}

void a_cooperative_request_is_told_whatever_it_does() {
    start_library(granted(200, 200, SERT_COOPERATIVE));
    int client[2];
    CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, client) == 0);
    CHECK(request([&, older = new int] {
        delete older;
        std::thread([] {}).join();
        CHECK(write(client[0], "x", 1) == 1);
        burn_for(300);
        CHECK(SERT_checkpoint() == SERT_RAN_TOO_LONG);
        SERT_cancel();
        CHECK(SERT_checkpoint() == 0);
    }) == 0);
}

// The system call has six arguments, and is made where the request can be stopped.
void a_call_that_waits_gets_its_arguments() {
    start_library(granted(3600e3, 3600e3));
    sockaddr_in self = {}, from = {};
    self.sin_family = AF_INET;
    self.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    auto *to = reinterpret_cast<sockaddr *>(&self);
    socklen_t size = sizeof self, length = sizeof from;
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    CHECK(bind(fd, to, size) == 0 && getsockname(fd, to, &size) == 0 && sendto(fd, "six", 3, 0, to, size) == 3);
    CHECK(request([&] {
        char text[8];
        CHECK(recvfrom(fd, text, sizeof text, 0, reinterpret_cast<sockaddr *>(&from), &length) == 3);
        CHECK(length == size && from.sin_port == self.sin_port);
    }) == 0);
}

}  // namespace

const std::vector<Test> when_tests = {
    TEST("due", a_request_is_stopped_when_it_is_due_and_not_before),
    TEST("late", a_late_signal_stops_nothing),
    TEST("undisturbed", waits_are_undisturbed_by_signals_that_stop_nothing),
    TEST("interrupts", another_signal_of_the_program_still_interrupts),
    TEST("falls", when_many_are_lost_the_threshold_falls_also_for_those_that_run),
    TEST("gone", who_is_gone_is_stopped_at_once_and_not_in_the_loss),
    TEST("strays", who_is_gone_does_not_hide_the_loss_of_others),
    TEST("token", a_token_names_one_request_for_ever),
    TEST("cooperative", a_cooperative_class_is_told_and_not_stopped),
    TEST("warm", a_thread_is_warm_after_three_requests),
    TEST("lost", a_wait_for_a_condition_loses_no_signal),
    TEST("c11", c11_waits_can_be_stopped),
    TEST("limit", a_socket_keeps_its_time_limit),
    TEST("blocked", what_cannot_be_stopped_waits_as_ever),
    TEST("after", what_a_worker_does_after_a_request_is_undisturbed),
    TEST("cut", a_send_goes_on_when_a_signal_has_cut_it),
    TEST("pieces", pieces_that_are_cut_come_in_order),
    TEST("standard", a_standard_signal_does_as_well),
    TEST("merged", a_standard_signal_that_stands_for_two_is_not_the_last),
    TEST("lower", a_lower_threshold_is_for_those_too_that_run),
    TEST("arguments", a_call_that_waits_gets_its_arguments),
    TEST("deaf", a_cooperative_request_is_told_whatever_it_does),
};

}  // namespace behaviour

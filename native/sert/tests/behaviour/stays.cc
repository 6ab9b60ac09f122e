// Tests of the state that must be unchanged after a request was stopped.
#include "harness.h"

namespace behaviour {

namespace {

// Memory that libc allocates for itself, while a request is the first to need it, stays.
void what_libc_owns_survives() {
    start_library(granted(2, 2));
    for (int i = 0; i < 200; i++) {
        std::string zone = "ABC" + std::to_string(i % 20) + std::string(static_cast<size_t>(i % 100), 'X');
        CHECK(request([&] {
            setenv("TZ", zone.c_str(), 1);
            setenv(("A_NEW_ONE_" + std::to_string(i)).c_str(), "value", 1);
            tzset();
            for_ever();
        }) == SERT_RAN_TOO_LONG);
        std::vector<std::string> rubbish(50, std::string(60 + static_cast<size_t>(i), 'r'));
    }
    time_t now = time(nullptr);
    tm local;
    for (int i = 0; i < 200; i++) {
        setenv("TZ", i % 2 ? "UTC" : "XYZ-3", 1);
        tzset();
        localtime_r(&now, &local);
        std::string name = "A_NEW_ONE_" + std::to_string(i);
        CHECK(getenv(name.c_str()) && std::string(getenv(name.c_str())) == "value");
    }
}

int slow_compare(const void *a, const void *b) {
    burn_for(0.1);
    return memcmp(a, b, 16);
}
void a_callback_of_libc_is_not_stopped() {
    start_library();
    // This is more than libc sorts on its stack, and takes more compares than the request has time
    // for.
    std::string numbers(16 * 256, 'n');
    auto sort = [&] {
        qsort(&numbers[0], 256, 16, slow_compare);
        for_ever();
    };
    CHECK(request(sort) == SERT_RAN_TOO_LONG);
    long before = heap();
    for (int i = 0; i < 10; i++) CHECK(request(sort) == SERT_RAN_TOO_LONG);
    CHECK(heap() - before < 4096);
}

void rounding_is_as_before() {
    start_library();
    std::fesetround(FE_UPWARD);
    CHECK(request([] {
        std::fesetround(FE_DOWNWARD);
        for_ever();
    }) == SERT_RAN_TOO_LONG);
    CHECK(std::fegetround() == FE_UPWARD);
}

void exceptions_are_as_before() {
    start_library();
    for (int i = 0; i < 20; i++) {
        CHECK(request([] {
            try {
                throw std::string(1000, 'e');
            } catch (const std::string &) {
                for_ever();
            }
        }) == SERT_RAN_TOO_LONG);
        CHECK(std::current_exception() == nullptr && std::uncaught_exceptions() == 0);
    }
}

void the_locale_is_as_before() {
    start_library();
    locale_t other = newlocale(LC_ALL_MASK, "C.UTF-8", static_cast<locale_t>(nullptr)), before = uselocale(static_cast<locale_t>(nullptr));
    CHECK(other != static_cast<locale_t>(nullptr));
    CHECK(request([other] {
        uselocale(other);
        for_ever();
    }) == SERT_RAN_TOO_LONG);
    CHECK(uselocale(static_cast<locale_t>(nullptr)) == before);
}

void the_signal_mask_is_as_before() {
    start_library();
    CHECK(request([] {
        sigset_t set;
        sigemptyset(&set);
        sigaddset(&set, SIGUSR2);
        pthread_sigmask(SIG_BLOCK, &set, nullptr);
        for_ever();
    }) == SERT_RAN_TOO_LONG);
    sigset_t now;
    pthread_sigmask(SIG_SETMASK, nullptr, &now);
    CHECK(!sigismember(&now, SIGUSR2) && !sigismember(&now, SIGNAL));
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
const int OF_SIGUSR2 = 1 << (SIGUSR2 - 1);
// System V's and BSD's functions change the mask too.
void the_signal_mask_is_as_before_with_older_functions() {
    start_library();
    for (void (*change)() : {+[] { sighold(SIGUSR2); }, +[] { sigset(SIGUSR2, SIG_HOLD); }, +[] { sigblock(OF_SIGUSR2); },
                             +[] { sigsetmask(OF_SIGUSR2); }}) {
        CHECK(request([=] {
            change();
            for_ever();
        }) == SERT_RAN_TOO_LONG);
        CHECK(!(siggetmask() & OF_SIGUSR2));
    }
    sighold(SIGUSR2);
    for (void (*change)() : {+[] { sigrelse(SIGUSR2); }, +[] { sigset(SIGUSR2, SIG_IGN); }}) {
        CHECK(request([=] {
            change();
            for_ever();
        }) == SERT_RAN_TOO_LONG);
        CHECK(siggetmask() & OF_SIGUSR2);
    }
    CHECK(sigset(SIGUSR2, SIG_DFL) == SIG_HOLD && sigset(SIGUSR2, SIG_HOLD) == SIG_DFL && sigset(SIGUSR2, SIG_DFL) == SIG_HOLD);
    CHECK(!(siggetmask() & OF_SIGUSR2) && sigset(SIGRTMAX + 1, SIG_DFL) == SIG_ERR);
}

volatile sig_atomic_t in_handler;
void a_long_handler(int) {
    in_handler = 1;
    burn_for(100);
    in_handler = 0;
}
extern "C" int __sigaction(int signum, const struct sigaction *action, struct sigaction *before);
extern "C" void (*bsd_signal(int signum, void (*handler)(int)))(int);
// Whichever function has installed the handler.
void another_handler_is_not_stopped() {
    start_library();
    static struct sigaction action = {};
    action.sa_handler = a_long_handler;
    for (void (*install)() : {+[] { sigaction(SIGUSR1, &action, nullptr); }, +[] { __sigaction(SIGUSR1, &action, nullptr); },
                              +[] { signal(SIGUSR1, a_long_handler); }, +[] { bsd_signal(SIGUSR1, a_long_handler); }, +[] { sigset(SIGUSR1, a_long_handler); }}) {
        signal(SIGUSR1, SIG_DFL);
        install();
        CHECK(request([] {
            raise(SIGUSR1);
            for_ever();
        }) == SERT_RAN_TOO_LONG);
        CHECK(in_handler == 0);
    }
}
#pragma GCC diagnostic pop

ucontext_t here, there;
volatile bool is_there;
// Runs a coroutine on a stack of its own, and then forever on the request's stack, where the
// request is stopped.
void is_stopped_behind(void (*coroutine)()) {
    start_library();
    static char stack[65536];
    CHECK(request([=] {
        getcontext(&there);
        there.uc_stack.ss_sp = stack;
        there.uc_stack.ss_size = sizeof stack;
        there.uc_link = &here;
        makecontext(&there, coroutine, 0);
        swapcontext(&here, &there);
        for_ever();
    }) == SERT_RAN_TOO_LONG);
    CHECK(!is_there);
}

void a_coroutine_is_not_stopped() {
    is_stopped_behind([] {
        is_there = true;
        burn_for(100);
        is_there = false;
    });
}

std::string undone;
void undo(void *what) { undone += static_cast<const char *>(what); }
char A[] = "a", B[] = "b", C[] = "c";
void undoing_goes_backwards_and_only_if_stopped() {
    start_library();
    CHECK(request([] { CHECK(SERT_defer(undo, A) == 0); }) == 0);
    CHECK(undone.empty());
    CHECK(request([] {
        CHECK(SERT_defer(undo, A) == 0 && SERT_defer(undo, B) == 0 && SERT_defer(undo, C) == 0);
        CHECK(SERT_undefer(undo, B) == 0 && SERT_undefer(undo, B) == -1);
        for_ever();
    }) == SERT_RAN_TOO_LONG);
    CHECK(undone == "ca");
}

const std::string &made_at_first_use() {
    static const std::string made = [] {
        std::string text(1000, 'm');
        burn_for(100);
        return text + text;
    }();
    return made;
}
void what_is_made_at_first_use_is_finished_and_stays() {
    start_library();
    CHECK(request([] {
        made_at_first_use();
        for_ever();
    }) == SERT_RAN_TOO_LONG);
    std::vector<std::string> rubbish(100, std::string(2000, 'r'));
    CHECK(request([] { CHECK(made_at_first_use() == std::string(2000, 'm')); }) == 0);
}

void what_is_unaccounted_stays() {
    start_library();
    static std::vector<char *> cache;
    CHECK(request([] {
        SERT_unaccounted_begin();
        cache.push_back(static_cast<char *>(malloc(1000)));
        memset(cache[0], 'c', 1000);
        burn_for(100);
        cache.push_back(strdup("after the deadline"));
        SERT_unaccounted_end();
        CHECK(!"reached");
    }) == SERT_RAN_TOO_LONG);
    std::vector<std::string> rubbish(100, std::string(1000, 'r'));
    CHECK(cache.size() == 2 && cache[0][999] == 'c' && strcmp(cache[1], "after the deadline") == 0);
}

// The request is masked: a stop must not lose the blocks that it has handed away.
void another_thread_may_free_a_block_of_a_running_request() {
    // Large blocks go back to the kernel, so an access to a freed one crashes.
    mallopt(M_MMAP_THRESHOLD, 65536);
    start_library(granted(0.3, 0.3));
    std::atomic<void *> handed{nullptr};
    std::atomic<uint64_t> freed{0}, given{0};
    std::atomic<bool> over{false};
    std::thread other([&] {
        while (!over) {
            if (void *block = handed.exchange(nullptr)) free(block), freed++;
        }
    });
    auto work = [&] {
        for (;;) {
            void *kept = malloc(200);
            SERT_mask();
            given++;
            handed = malloc(200000);
            while (freed != given) sched_yield();
            SERT_unmask();
            free(kept);
        }
    };
    long before = 0;
    for (int i = 0; i < 1500; i++) {
        CHECK(request(work) == SERT_RAN_TOO_LONG);
        if (i == 500) before = heap();
    }
    over = true;
    other.join();
    CHECK(labs(heap() - before) < 65536);
}

// The request is overdue inside the handler, which calls functions of ours: the interrupted code is
// under way.
void handlers_that_were_there_before_are_not_stopped() {
    auto handler = [](int) {
        in_handler = 1;
        burn_for(100);
        free(malloc(10));
        close(-1);
        in_handler = 0;
    };
    struct sigaction action = {};
    action.sa_handler = handler;
    sigaction(SIGUSR1, &action, nullptr);
    start_library();
    signal(SIGUSR2, handler);
    for (int number : {SIGUSR1, SIGUSR2}) {
        CHECK(request([number] {
            raise(number);
            for_ever();
        }) == SERT_RAN_TOO_LONG);
        CHECK(in_handler == 0);
        sigset_t now;
        pthread_sigmask(SIG_SETMASK, nullptr, &now);
        CHECK(!sigismember(&now, number));
    }
}

// The request was overdue before: a call in the handler must not stop the interrupted code.
void a_handler_that_runs_while_a_stop_is_pending_stops_nothing() {
    start_library();
    struct sigaction action = {};
    action.sa_handler = [](int) {
        in_handler = 1;
        SERT_unmask();
        close(-1);
        SERT_mask();
        in_handler = 0;
    };
    sigaction(SIGUSR1, &action, nullptr);
    CHECK(request([] {
        SERT_mask();
        burn_for(100);
        raise(SIGUSR1);
        SERT_unmask();
        for_ever();
    }) == SERT_RAN_TOO_LONG);
    CHECK(in_handler == 0);
}

void a_coroutine_is_not_stopped_by_what_it_calls() {
    is_stopped_behind([] {
        // The compiler must not optimise the allocation away.
        static void *volatile block;
        is_there = true;
        burn_for(100);
        block = malloc(100);
        free(block);
        is_there = false;
    });
}

int undo_fd;
FILE *undo_stream;
void an_undo_may_give_back_what_the_request_has() {
    start_library();
    CHECK(request([] {
        undo_fd = open("/dev/null", O_RDONLY);
        undo_stream = fopen("/dev/null", "r");
        CHECK(SERT_defer([](void *) { fclose(undo_stream); }, nullptr) == 0);
        CHECK(SERT_defer([](void *) { close(undo_fd), undo_fd = dup(2); }, nullptr) == 0);
        for_ever();
    }) == SERT_RAN_TOO_LONG);
    CHECK(fcntl(undo_fd, F_GETFD) >= 0);
}

void what_is_unmapped_unaccounted_is_not_unmapped_again() {
    start_library();
    static char *again;
    CHECK(request([] {
        void *first = mmap(nullptr, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        SERT_unaccounted_begin();
        munmap(first, 1 << 20);
        again = static_cast<char *>(mmap(first, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
        CHECK(again == first);
        SERT_unaccounted_end();
        for_ever();
    }) == SERT_RAN_TOO_LONG);
    again[0] = 1;
}

void the_buffer_of_an_older_stream_is_not_the_requests() {
    start_library();
    char name[] = "/tmp/sert-XXXXXX";
    int fd = mkstemp(name);
    std::string text;
    for (int i = 0; i < 400; i++) text += "zzzzzzzzzzzzzzz\n";
    CHECK(write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size()) && lseek(fd, 0, SEEK_SET) == 0);
    FILE *older = fdopen(fd, "r");
    CHECK(request([&] {
        char *line = nullptr;
        size_t size = 0;
        CHECK(getline(&line, &size, older) > 0);
        for_ever();
    }) == SERT_RAN_TOO_LONG);
    // Use the buffer's size and many others: one of them gets its place, if it was freed.
    for (size_t size = BUFSIZ * 2; size >= 64; size -= 64) memset(malloc(size), '!', size);
    char line[64];
    for (int i = 0; i < 300; i++) CHECK(fgets(line, sizeof line, older) && line[0] == 'z');
    unlink(name);
}

int slow_visit(dl_phdr_info *, size_t, void *) {
    burn_for(15);
    return 0;
}
// A callback of the loader, or of a directory scan, leaves neither a lock of libc nor a descriptor
// behind.
void callbacks_of_libc_leave_nothing() {
    start_library();
    int before = open("/dev/null", O_RDONLY);
    close(before);
    for (int i = 0; i < 10; i++) {
        CHECK(request([] {
            dl_iterate_phdr(slow_visit, nullptr);
            dirent64 **list;
            scandir64("/proc/self", &list, [](const dirent64 *) { return burn_for(0.2), 1; }, nullptr);
            for_ever();
        }) == SERT_RAN_TOO_LONG);
    }
    // Use another thread: this one could take the loader's lock again.
    std::thread([] { CHECK(dl_iterate_phdr([](dl_phdr_info *, size_t, void *) { return 0; }, nullptr) == 0); }).join();
    int after = open("/dev/null", O_RDONLY);
    CHECK(after == before);
}

void half_a_message_is_not_sent_and_not_waited_for() {
    start_library();
    static int backend[2];
    CHECK(request([] {
        CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, backend) == 0);
        std::string full(1 << 16, 'f');
        while (send(backend[0], full.data(), full.size(), MSG_DONTWAIT) > 0) {
        }
        FILE *stream = fdopen(backend[0], "w");
        fprintf(stream, "half a message");
        for_ever();
    }) == SERT_RAN_TOO_LONG);
}

void descriptors_that_were_sent_are_the_requests() {
    start_library();
    int ends[2];
    CHECK(socketpair(AF_UNIX, SOCK_DGRAM, 0, ends) == 0);
    int before = open("/dev/null", O_RDONLY), next = dup(before);
    close(next);
    char space[CMSG_SPACE(sizeof(int))] = {}, byte = 0;
    iovec part = {&byte, 1};
    msghdr message = {};
    message.msg_iov = &part, message.msg_iovlen = 1, message.msg_control = space, message.msg_controllen = sizeof space;
    cmsghdr *rights = CMSG_FIRSTHDR(&message);
    rights->cmsg_level = SOL_SOCKET, rights->cmsg_type = SCM_RIGHTS, rights->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(rights), &before, sizeof(int));
    for (int i = 0; i < 5; i++) {
        CHECK(sendmsg(ends[0], &message, 0) == 1);
        CHECK(request([&] {
            char room[CMSG_SPACE(sizeof(int))];
            msghdr got = message;
            got.msg_control = room;
            CHECK(recvmsg(ends[1], &got, 0) == 1);
            for_ever();
        }) == SERT_RAN_TOO_LONG);
    }
    CHECK(dup(before) == next);
}

void an_exception_through_libc_leaves_no_mask() {
    start_library(granted(200, 200));
    static std::once_flag once;
    CHECK(request([] {
        try {
            std::call_once(once, [] { throw 1; });
        } catch (int) {
        }
        int numbers[] = {2, 1};
        try {
            qsort(numbers, 2, sizeof(int), [](const void *, const void *) -> int { throw 2; });
        } catch (int) {
        }
    }) == 0);
    CHECK(request(for_ever) == SERT_RAN_TOO_LONG);
}

void what_others_free_comes_back_while_a_request_runs() {
    start_library(granted(3600e3, 3600e3));
    std::atomic<void *> handed{nullptr};
    std::atomic<bool> over{false};
    std::thread other([&] {
        while (!over) {
            if (void *block = handed.exchange(nullptr)) free(block);
        }
    });
    long before = heap();
    CHECK(request([&] {
        for (int i = 0; i < 3000; i++) {
            handed = malloc(10000);
            while (handed.load()) sched_yield();
        }
        CHECK(heap() - before < 5000000);
    }) == 0);
    over = true;
    other.join();
}

}  // namespace

const std::vector<Test> stays_tests = {
    TEST("owner", what_libc_owns_survives),
    TEST("callback", a_callback_of_libc_is_not_stopped),
    TEST("rounding", rounding_is_as_before),
    TEST("exceptions", exceptions_are_as_before),
    TEST("locale", the_locale_is_as_before),
    TEST("signals", the_signal_mask_is_as_before),
    TEST("older-signals", the_signal_mask_is_as_before_with_older_functions),
    TEST("handler", another_handler_is_not_stopped),
    TEST("stack", a_coroutine_is_not_stopped),
    TEST("undo", undoing_goes_backwards_and_only_if_stopped),
    TEST("once", what_is_made_at_first_use_is_finished_and_stays),
    TEST("unaccounted", what_is_unaccounted_stays),
    TEST("remote", another_thread_may_free_a_block_of_a_running_request),
    TEST("handlers-before", handlers_that_were_there_before_are_not_stopped),
    TEST("handler-calls", a_handler_that_runs_while_a_stop_is_pending_stops_nothing),
    TEST("stack-calls", a_coroutine_is_not_stopped_by_what_it_calls),
    TEST("undo-closes", an_undo_may_give_back_what_the_request_has),
    TEST("unaccounted-unmap", what_is_unmapped_unaccounted_is_not_unmapped_again),
    TEST("older-stream", the_buffer_of_an_older_stream_is_not_the_requests),
    TEST("callbacks", callbacks_of_libc_leave_nothing),
    TEST("half", half_a_message_is_not_sent_and_not_waited_for),
    TEST("rights", descriptors_that_were_sent_are_the_requests),
    TEST("through", an_exception_through_libc_leaves_no_mask),
    TEST("taken-back", what_others_free_comes_back_while_a_request_runs),
};

}  // namespace behaviour

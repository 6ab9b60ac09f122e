// Tests of the actions that make a request unstoppable.
#include "harness.h"

namespace behaviour {

namespace {

void who_writes_to_a_client_is_not_stopped_any_more() {
    start_library();
    int client[2];
    CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, client) == 0);
    CHECK(request([&] {
        CHECK(write(client[0], "HTTP/1.1 200", 12) == 12);
        burn_for(100);
    }) == 0);
    CHECK(stats().cancelled == 1);
    // A request may write to its own sockets, and to files.
    int file = open("/dev/null", O_WRONLY);
    CHECK(request([&] {
        int own[2];
        CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, own) == 0);
        CHECK(send(own[0], "x", 1, 0) == 1);
        CHECK(write(file, "x", 1) == 1);
        for_ever();
    }) == SERT_RAN_TOO_LONG);
    // It is overdue before the first byte: nothing is sent.
    CHECK(request([&] {
        SERT_mask();
        burn_for(100);
        SERT_unmask();
        CHECK(!"reached");
    }) == SERT_RAN_TOO_LONG);
    char text[64];
    CHECK(recv(client[1], text, sizeof text, MSG_DONTWAIT) == 12);
}

void who_starts_a_thread_is_not_stopped_any_more() {
    start_library();
    CHECK(request([] {
        std::thread([] {}).join();
        burn_for(100);
    }) == 0);
}

void who_frees_older_memory_is_not_stopped_any_more() {
    start_library();
    static thread_local std::vector<std::string> kept;
    kept.reserve(4);
    CHECK(request([] {
        for (int i = 0; i < 100; i++) kept.emplace_back(100, 'k');
        burn_for(100);
    }) == 0);
    for (auto &text : kept) CHECK(text == std::string(100, 'k'));
    sert_arg arg = granted(2, 2, SERT_NO_WARM_UP | SERT_FREES_OTHERS);
    CHECK(SERT_set_args(&arg) == 0);
    CHECK(request([text = new std::string(100, 'x')] {
        delete text;
        for_ever();
    }) == SERT_RAN_TOO_LONG);
}

void a_fork_stops_nothing_and_the_child_can_begin_anew() {
    start_library();
    CHECK(request([] {
        pid_t child = fork();
        if (child == 0) {
            CHECK(SERT_token() == 0);
            CHECK(SERT_init_timer(SIGNAL) == 0);
            sert_arg arg = granted(2, 2);
            CHECK(SERT_set_args(&arg) == 0);
            CHECK(request(for_ever) == SERT_RAN_TOO_LONG);
            _exit(0);
        }
        int status = -1;
        burn_for(100);
        CHECK(waitpid(child, &status, 0) == child && status == 0);
    }) == 0);
}

void who_starts_a_process_is_not_stopped_any_more() {
    start_library();
    thrd_t thread;
    CHECK(request([&] {
        CHECK(thrd_create(&thread, [](void *) { return 0; }, nullptr) == thrd_success);
        burn_for(100);
    }) == 0);
    thrd_join(thread, nullptr);
    static char program[] = "/bin/true";
    CHECK(request([] {
        pid_t child;
        char *const arguments[] = {program, nullptr};
        CHECK(posix_spawn(&child, program, nullptr, nullptr, arguments, environ) == 0);
        CHECK(waitpid(child, nullptr, 0) == child);
        CHECK(system("true") == 0);
        burn_for(100);
    }) == 0);
    CHECK(request([] {
        int fd = open("/dev/null", O_RDONLY);
        volatile pid_t child = vfork();
        if (child == 0) {
            close(fd);
            _exit(0);
        }
        CHECK(waitpid(child, nullptr, 0) == child);
        CHECK(fcntl(fd, F_GETFD) >= 0);
        close(fd);
        burn_for(100);
    }) == 0);
    CHECK(stats().cancelled == 3);
}

void who_prints_to_a_client_is_not_stopped_any_more() {
    start_library();
    int client[2];
    CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, client) == 0);
    CHECK(request([&] {
        CHECK(dprintf(client[0], "HTTP/1.1 %d", 200) == 12);
        burn_for(100);
    }) == 0);
}

void who_gives_up_an_older_lock_is_not_stopped_any_more() {
    start_library();
    static pthread_mutex_t older = PTHREAD_MUTEX_INITIALIZER, other = PTHREAD_MUTEX_INITIALIZER;
    CHECK(SERT_set_class(0) == 0);
    pthread_mutex_lock(&older);
    CHECK(request([] {
        pthread_mutex_unlock(&older);
        pthread_mutex_lock(&other);
        burn_for(100);
        pthread_mutex_unlock(&other);
    }) == 0);
    CHECK(pthread_mutex_trylock(&older) == 0 && pthread_mutex_trylock(&other) == 0);
}

void who_maps_over_what_is_older_is_not_stopped_any_more() {
    start_library();
    static char *region = static_cast<char *>(mmap(nullptr, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    CHECK(request([] {
        CHECK(mmap(region + 4096, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == region + 4096);
        burn_for(100);
    }) == 0);
    region[4096] = 1;
}

void a_handlers_writes_are_not_the_requests() {
    start_library();
    static int pipe_of_handler[2];
    CHECK(pipe(pipe_of_handler) == 0);
    struct sigaction action = {};
    action.sa_handler = [](int) { CHECK(write(pipe_of_handler[1], "x", 1) == 1); };
    sigaction(SIGUSR1, &action, nullptr);
    CHECK(request([] {
        raise(SIGUSR1);
        for_ever();
    }) == SERT_RAN_TOO_LONG);
}

}  // namespace

const std::vector<Test> never_tests = {
    TEST("write", who_writes_to_a_client_is_not_stopped_any_more),
    TEST("thread", who_starts_a_thread_is_not_stopped_any_more),
    TEST("older", who_frees_older_memory_is_not_stopped_any_more),
    TEST("fork", a_fork_stops_nothing_and_the_child_can_begin_anew),
    TEST("process", who_starts_a_process_is_not_stopped_any_more),
    TEST("print", who_prints_to_a_client_is_not_stopped_any_more),
    TEST("older-lock", who_gives_up_an_older_lock_is_not_stopped_any_more),
    TEST("fixed", who_maps_over_what_is_older_is_not_stopped_any_more),
    TEST("self-pipe", a_handlers_writes_are_not_the_requests),
};

}  // namespace behaviour

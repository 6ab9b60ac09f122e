/* Tests of the promises of the sentry, one for each promise. `behaviour` runs each in a process of
 * its own, `behaviour WORD` runs one in this process. */
#include "harness.h"

#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/wait.h>

struct pair tcp_pair(void) {
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof at;
    struct pair pair;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(listener >= 0 && bind(listener, (struct sockaddr *)&at, sizeof at) == 0 && listen(listener, 16) == 0);
    CHECK(getsockname(listener, (struct sockaddr *)&at, &size) == 0);
    pair.client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(connect(pair.client, (struct sockaddr *)&at, sizeof at) == 0);
    pair.server = accept(listener, NULL, NULL);
    CHECK(pair.server >= 0);
    close(listener);
    return pair;
}

struct pair unix_pair(void) {
    int both[2];
    CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, both) == 0);
    return (struct pair){both[0], both[1]};
}

void reset(int client) {
    struct linger at_once = {1, 0};
    CHECK(setsockopt(client, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once) == 0);
    close(client);
}

void put(int fd, const char *text) {
    CHECK(send(fd, text, strlen(text), MSG_NOSIGNAL) == (ssize_t)strlen(text));
}

void block_signals(void) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, TOLD);
    CHECK(pthread_sigmask(SIG_BLOCK, &set, NULL) == 0);
}

static siginfo_t next(void) {
    sigset_t set;
    siginfo_t info;
    sigemptyset(&set);
    sigaddset(&set, TOLD);
    while (sigwaitinfo(&set, &info) != TOLD) {
        CHECK(errno == EINTR);
    }
    return info;
}

void expect(int fd, int why) {
    siginfo_t info = next();
    CHECK(info.si_code == SI_QUEUE && info.si_pid == getpid());
    CHECK(info.si_value.sival_int == fd);
    CHECK(info.si_errno == why);
}

void expect_nothing(void) {
    struct pair marker = unix_pair();
    CHECK(socket_watch(marker.server, TOLD) == 0);
    close(marker.client);
    expect(marker.server, ESHUTDOWN);
    close(marker.server);
}

void joined(pid_t child) {
    int status;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(status == 0);
}

bool room_for(unsigned files) {
    struct rlimit limit, more = {files, files};
    CHECK(getrlimit(RLIMIT_NOFILE, &limit) == 0);
    limit.rlim_cur = limit.rlim_max;
    /* A privileged process may raise the hard limit. */
    return limit.rlim_max >= files ? setrlimit(RLIMIT_NOFILE, &limit) == 0 : setrlimit(RLIMIT_NOFILE, &more) == 0;
}

/* Runs a test in a process of its own, which has a minute. */
static bool passes(const struct test *test) {
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        alarm(60);
        block_signals();
        test->run();
        fflush(stdout);
        _exit(0);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child);
    printf("%s %s\n", status == 0 ? "ok    " : "FAILED", test->name);
    return status == 0;
}

int main(int count, char **words) {
    const struct test *lists[] = {leaving_tests, arguments_tests, ways_tests, processes_tests, many_tests, race_tests};
    unsigned all = 0, failed = 0;
    for (size_t list = 0; list < sizeof lists / sizeof *lists; list++) {
        for (const struct test *test = lists[list]; test->run != NULL; test++) {
            if (count > 1 && strcmp(words[1], test->word) == 0) {
                block_signals();
                test->run();
                return 0;
            }
            if (count == 1) {
                all++;
                failed += !passes(test);
            }
        }
    }
    if (count > 1) {
        fprintf(stderr, "no test %s\n", words[1]);
        return 2;
    }
    printf("%u tests, %u failed\n", all, failed);
    return failed != 0;
}

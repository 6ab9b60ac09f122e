// Sends requests to an example server, some of which have no end, and looks at the server.
#pragma once

#include <dirent.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <thread>
#include <vector>

namespace traffic {

constexpr int REQUESTS = 200, CLIENTS = 8, ROUNDS = 3, EACH_WITHOUT_END = 5;
constexpr long MOST_GROWTH_KB = 16384;

enum class Answer { right, stopped, wrong };
// Sends one request to this port. Zero entries have no end.
using Ask = std::function<Answer(int port, const std::string &text, unsigned entries)>;

class Server {
public:
    explicit Server(char *program) {
        int in[2], out[2];
        if (pipe2(in, O_CLOEXEC) || pipe2(out, O_CLOEXEC)) abort();
        posix_spawn_file_actions_t actions;
        posix_spawn_file_actions_init(&actions);
        posix_spawn_file_actions_adddup2(&actions, in[0], 0);
        posix_spawn_file_actions_adddup2(&actions, out[1], 1);
        char limit_ms[] = "1000", *arguments[] = {program, limit_ms, nullptr};
        if (posix_spawn(&pid_, program, &actions, nullptr, arguments, environ) != 0) abort();
        posix_spawn_file_actions_destroy(&actions);
        close(in[0]), close(out[1]);
        input_ = in[1];
        FILE *said = fdopen(out[0], "r");
        if (fscanf(said, "%d", &port) != 1) port = 0;
        fclose(said);
    }
    // Returns whether the server ends as it should.
    bool ends() {
        close(input_);
        int status = -1;
        waitpid(pid_, &status, 0);
        return status == 0;
    }
    long memory_kb() const {
        FILE *file = fopen(("/proc/" + std::to_string(pid_) + "/statm").c_str(), "r");
        long pages = 0;
        if (!file || fscanf(file, "%*d %ld", &pages) != 1) abort();
        fclose(file);
        return pages * (sysconf(_SC_PAGESIZE) / 1024);
    }
    long descriptors() const {
        DIR *directory = opendir(("/proc/" + std::to_string(pid_) + "/fd").c_str());
        if (!directory) abort();
        long count = 0;
        while (readdir(directory)) count++;
        closedir(directory);
        return count;
    }
    // Waits until the server has no more descriptors than this: it closes connections by and by.
    bool has_at_most(long count) const {
        for (int i = 0; i < 2000 && descriptors() > count; i++) usleep(10000);
        return descriptors() <= count;
    }

    int port = 0;

private:
    pid_t pid_ = 0;
    int input_ = -1;
};

// Returns whether each short request got its answer, and each one without an end was stopped.
inline bool serves_a_round(const Server &server, const Ask &ask) {
    std::atomic<int> next{0}, right{0}, stopped{0};
    std::vector<std::thread> clients;
    for (int i = 0; i < CLIENTS; i++) {
        clients.emplace_back([&] {
            for (int number; (number = next++) < REQUESTS;) {
                bool has_end = number % EACH_WITHOUT_END != 0;
                Answer answer = ask(server.port, "request " + std::to_string(number), has_end ? 1000 : 0);
                right += has_end && answer == Answer::right;
                stopped += !has_end && answer == Answer::stopped;
            }
        });
    }
    for (auto &client : clients) client.join();
    printf("    %d requests: %d answered, %d stopped; server: %ld kB, %ld descriptors\n", REQUESTS, right.load(),
           stopped.load(), server.memory_kb(), server.descriptors());
    return right == REQUESTS - REQUESTS / EACH_WITHOUT_END && stopped == REQUESTS / EACH_WITHOUT_END;
}

inline int main_of(int argc, char **argv, const char *name, const Ask &ask) {
    if (argc != 2) return 2;
    // A server that is stuck must not stop the tests.
    alarm(300);
    Server server(argv[1]);
    bool served = serves_a_round(server, ask);
    long memory = server.memory_kb(), descriptors = server.descriptors();
    for (int i = 1; i < ROUNDS; i++) served = serves_a_round(server, ask) && served;
    bool same = server.has_at_most(descriptors);
    long growth = server.memory_kb() - memory;
    bool ended = server.ends();
    bool fine = served && same && growth < MOST_GROWTH_KB && ended;
    printf("%s %s: served %d, same descriptors %d, memory grew by %ld kB, ended %d\n", fine ? "ok    " : "FAILED", name, served,
           same, growth, ended);
    return !fine;
}

}  // namespace traffic

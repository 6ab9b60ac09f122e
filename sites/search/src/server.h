// The server: a thread that accepts, a bounded queue, and workers that serve one request after the other; a thread
// that sees refused clients off, and one that tells operators how it goes.
//
// What the bounded queue refuses is the seed's admission control; what the worker loop says to libsert is all that
// terminations need. Who runs is watched for departures: if the client, or the gateway, closes the connection, the
// request is stopped too.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

#include "service.h"

namespace search {

struct Terms {
    uint16_t port = 0, admin_port = 0;
    unsigned threads = 15;
    std::size_t queue = 15;
    // How a request may end before it is done: false, it may not.
    bool terminates = false;
    double lb_ms = 1500, ub_ms = 8000, alpha = 4, hw = 0.15, lw = 0.05;
    uint32_t interval_ms = 10000;
};

struct Books {
    std::atomic<uint64_t> answered{0}, refused{0}, terminated{0}, gone{0}, failed{0};
    std::atomic<uint64_t> busy_us_useful{0}, busy_us_wasted{0};
};

class Server {
public:
    Server(const Service &service, const Terms &terms);
    ~Server();
    Server(const Server &) = delete;
    // Requests may be terminated from now on, if they are to be. False: they cannot; errno says why.
    bool protect();
    // False: it cannot; errno says why.
    bool listen();
    uint16_t port() const;
    uint16_t admin_port() const;
    // Until `over`.
    void run(const std::atomic<bool> &over);
    std::string stats() const;

private:
    void accept_all(const std::atomic<bool> &over);
    void comes(int fd);
    void serve();
    bool next(int &fd);
    void watch();
    void tell_stats();
    // A connection that gets its answer once its request has come, and is read away until its client closes it.
    struct Leaving {
        int fd;
        std::chrono::steady_clock::time_point until;
        int status; // 0: it has its answer
        std::string body;
    };
    void refuse(int fd, int status, const char *why, bool is_read = true);
    static void tell(Leaving &leaving);
    static bool reads_away(Leaving &leaving);
    void see_off();

    const Service &service_;
    Terms terms_;
    Books books_;
    int listener_ = -1, admin_ = -1, epoll_ = -1;
    std::mutex guard_;
    std::condition_variable some_;
    std::deque<int> waiting_;
    std::mutex leaving_guard_;
    std::vector<Leaving> leaving_;
    std::atomic<bool> over_{false};
};

}  // namespace search

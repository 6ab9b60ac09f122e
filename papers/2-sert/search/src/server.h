// The server: a thread that accepts, a bounded queue, and workers that serve one request after the other. One more
// thread closes refused connections, and another one answers /-/stats.
//
// The bounded queue is the admission control of paper 2. Terminations need only the calls of libsert in the worker
// loop. The server watches the clients of running requests. If the client, or the gateway, closes the connection, the
// server stops the request.
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

struct ServerOptions {
    uint16_t port = 0, admin_port = 0;
    unsigned threads = 15;
    std::size_t queue = 15;
    // Whether libsert may stop a request before it is done.
    bool terminates = false;
    double lb_ms = 1500, ub_ms = 8000, alpha = 4, hw = 0.15, lw = 0.05;
    uint32_t interval_ms = 10000;
};

struct Counters {
    std::atomic<uint64_t> answered{0}, refused{0}, terminated{0}, gone{0}, failed{0};
    std::atomic<uint64_t> busy_us_useful{0}, busy_us_wasted{0};
};

class Server {
public:
    Server(const Service &service, const ServerOptions &options);
    ~Server();
    Server(const Server &) = delete;
    // Enables terminations if `terminates` is set. Returns false with errno set if that fails.
    bool protect();
    // Opens both ports. Returns false with errno set if that fails.
    bool listen();
    uint16_t port() const;
    uint16_t admin_port() const;
    // Serves until `over` is true.
    void run(const std::atomic<bool> &over);
    std::string stats() const;

private:
    void accept_all(const std::atomic<bool> &over);
    void admit(int fd);
    void serve();
    bool next(int &fd);
    void watch();
    void serve_stats();
    // A refused connection. The server answers when the request has arrived, then reads until the
    // client closes the connection.
    struct RefusedConnection {
        int fd;
        std::chrono::steady_clock::time_point until;
        int status; // 0: the answer was sent
        std::string body;
    };
    void refuse(int fd, int status, const char *why, bool is_read = true);
    static void send_refusal(RefusedConnection &connection);
    static bool drain(RefusedConnection &connection);
    void close_refused();

    const Service &service_;
    ServerOptions options_;
    Counters counters_;
    int listener_ = -1, admin_ = -1, epoll_ = -1;
    std::mutex mutex_;
    std::condition_variable available_;
    std::deque<int> waiting_;
    std::mutex refused_mutex_;
    std::vector<RefusedConnection> refused_;
    std::atomic<bool> over_{false};
};

}  // namespace search

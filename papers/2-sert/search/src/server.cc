#include "server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <setjmp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <iterator>

#include "processor.h"
#include "sert.h"

namespace search {

namespace {

uint64_t busy_us() { return static_cast<uint64_t>(processor_us()); }

const char RETRY_AFTER[] = "Retry-After: 2\r\n";

const auto LINGER_TIME = std::chrono::seconds(1);

// 0 would select libsert's default.
double explicit_value(double value) { return value == 0 ? -1 : value; }

sert_arg as_arg(const ServerOptions &options) {
    sert_arg arg = {};
    arg.size = sizeof arg;
    arg.lb_ms = options.lb_ms;
    arg.ub_ms = options.ub_ms;
    arg.alpha = explicit_value(options.alpha);
    arg.hw = explicit_value(options.hw);
    arg.lw = explicit_value(options.lw);
    arg.interval_ms = options.interval_ms;
    return arg;
}

}  // namespace

Server::Server(const Service &service, const ServerOptions &options) : service_(service), options_(options) {}

Server::~Server() {
    for (int fd : waiting_) close(fd);
    for (const auto &left : refused_) close(left.fd);
    for (int fd : {listener_, admin_, epoll_}) {
        if (fd >= 0) close(fd);
    }
}

namespace {

// Listens on loopback. Returns -1 with errno set if that fails.
int listen_at(uint16_t port) {
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    sockaddr_in at = {};
    at.sin_family = AF_INET;
    at.sin_port = htons(port);
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return bind(fd, reinterpret_cast<sockaddr *>(&at), sizeof at) == 0 && listen(fd, 1024) == 0 ? fd : -1;
}

uint16_t port_of(int fd) {
    sockaddr_in at = {};
    socklen_t length = sizeof at;
    getsockname(fd, reinterpret_cast<sockaddr *>(&at), &length);
    return ntohs(at.sin_port);
}

}  // namespace

bool Server::protect() {
    sert_arg arg = as_arg(options_);
    return !options_.terminates || (SERT_init_timer(SIGRTMIN) == 0 && SERT_set_args(&arg) == 0);
}

bool Server::listen() {
    listener_ = listen_at(options_.port);
    admin_ = listener_ < 0 ? -1 : listen_at(options_.admin_port);
    return admin_ >= 0;
}

uint16_t Server::port() const { return port_of(listener_); }
uint16_t Server::admin_port() const { return port_of(admin_); }

// This thread is separate from the workers, so that it answers even when the queue is full.
void Server::serve_stats() {
    while (!over_) {
        pollfd incoming = {admin_, POLLIN, 0};
        if (poll(&incoming, 1, 100) <= 0) continue;
        Request request;
        int fd = accept4(admin_, nullptr, nullptr, SOCK_CLOEXEC);
        if (fd < 0) {
            usleep(10000);
            continue;
        }
        int wrong = read_request(fd, request);
        if (wrong == 0) wrong = request.path == "/-/stats" ? 0 : 404;
        if (wrong > 0) refuse(fd, wrong, "only GET /-/stats is served here");
        else answer(fd, 200, stats()), close(fd);
    }
}

// --- Refusals ---

void Server::refuse(int fd, int status, const char *why, bool is_read) {
    std::string body = std::string("{\"error\":\"") + why + "\"}\n";
    RefusedConnection connection{fd, std::chrono::steady_clock::now() + LINGER_TIME, status, std::move(body)};
    if (is_read) send_refusal(connection);
    std::lock_guard<std::mutex> lock(refused_mutex_);
    refused_.push_back(std::move(connection));
}

// Some clients ignore an answer that arrives before they have sent their request.
void Server::send_refusal(RefusedConnection &connection) {
    answer(connection.fd, connection.status, connection.body, connection.status >= 500 ? RETRY_AFTER : "");
    shutdown(connection.fd, SHUT_WR);
    connection.status = 0;
}

// Reads the rest of a request. A close with unread bytes would reset the connection, and the client would lose the
// answer. Returns whether the connection can be closed.
bool Server::drain(RefusedConnection &connection) {
    char rest[4096];
    ssize_t got = -1;
    // Reads a few blocks at a time, so that a client that sends without end does not delay others.
    for (int i = 0; i < 16 && (got = recv(connection.fd, rest, sizeof rest, MSG_DONTWAIT)) > 0; i++) {
        if (connection.status) send_refusal(connection);
    }
    bool is_open = got > 0 || (got < 0 && (errno == EAGAIN || errno == EINTR));
    return !is_open || std::chrono::steady_clock::now() >= connection.until;
}

// Keeps each refused connection until its client has closed it, or until LINGER_TIME has passed.
void Server::close_refused() {
    std::vector<RefusedConnection> here;
    while (!over_) {
        usleep(10000);
        {
            std::lock_guard<std::mutex> lock(refused_mutex_);
            std::move(refused_.begin(), refused_.end(), std::back_inserter(here));
            refused_.clear();
        }
        auto gone = [](RefusedConnection &connection) { return drain(connection) && close(connection.fd) == 0; };
        here.erase(std::remove_if(here.begin(), here.end(), gone), here.end());
    }
    for (const auto &connection : here) close(connection.fd);
}

// --- Admission ---

void Server::admit(int fd) {
    {
        std::lock_guard<std::mutex> lock(mutex_);
        if (waiting_.size() < options_.queue) {
            waiting_.push_back(fd);
            available_.notify_one();
            return;
        }
    }
    counters_.refused++;
    if (options_.terminates) SERT_refused(0);
    refuse(fd, 503, "the queue is full", false);
}

void Server::accept_all(const std::atomic<bool> &over) {
    while (!over) {
        pollfd incoming = {listener_, POLLIN, 0};
        if (poll(&incoming, 1, 100) <= 0) continue;
        int fd = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
        if (fd >= 0) admit(fd);
        else if (errno == EMFILE || errno == ENFILE) usleep(10000);
    }
}

bool Server::next(int &fd) {
    std::unique_lock<std::mutex> lock(mutex_);
    available_.wait(lock, [this] { return over_ || !waiting_.empty(); });
    if (over_) return false;
    fd = waiting_.front();
    waiting_.pop_front();
    return true;
}

// --- Departures ---

namespace {

// Watches the client of the running request. A token names one request forever, so that a late
// event stops no other request.
void begin_watch(int epoll, int fd) {
    epoll_event event = {};
    event.events = EPOLLRDHUP | EPOLLONESHOT;
    event.data.u64 = SERT_token();
    epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
}

}  // namespace

void Server::watch() {
    epoll_event events[64];
    while (!over_) {
        int count = epoll_wait(epoll_, events, 64, 100);
        for (int i = 0; i < count; i++) SERT_terminate(events[i].data.u64, SERT_CLIENT_GONE);
    }
}

// --- The worker loop ---

void Server::serve() {
    sigjmp_buf point;
    // Variables that are used after a rollback are volatile. No object with a destructor lives here during a request.
    int volatile fd = -1;
    uint64_t volatile began = 0;
    for (int taken; next(taken);) {
        fd = taken;
        Request *request = new Request;
        if (int wrong = read_request(fd, *request)) {
            counters_.failed++;
            wrong > 0 ? refuse(fd, wrong, "not a valid request for this service") : static_cast<void>(close(fd));
            delete request;
            continue;
        }
        Request *volatile asked = request;
        began = busy_us();
        if (options_.terminates) {
            if (int reason = sigsetjmp(point, 0)) {
                counters_.busy_us_wasted += busy_us() - began;
                reason == SERT_RAN_TOO_LONG ? counters_.terminated++ : counters_.gone++;
                delete asked;
                refuse(fd, 504, "the request ran for too long");
                continue;
            }
            SERT_register_rollbackpoint(&point);
            SERT_start();
            begin_watch(epoll_, fd);
        }
        Answer *found = new Answer(service_.process(*asked));
        if (options_.terminates) SERT_end();
        counters_.busy_us_useful += busy_us() - began;
        counters_.answered++;
        answer(fd, found->status, found->body);
        close(fd);
        delete found;
        delete asked;
    }
}

void Server::run(const std::atomic<bool> &over) {
    epoll_ = epoll_create1(EPOLL_CLOEXEC);
    std::vector<std::thread> threads;
    threads.emplace_back(&Server::serve_stats, this);
    threads.emplace_back(&Server::close_refused, this);
    for (unsigned i = 0; i < options_.threads; i++) threads.emplace_back(&Server::serve, this);
    if (options_.terminates) threads.emplace_back(&Server::watch, this);
    accept_all(over);
    {
        std::lock_guard<std::mutex> lock(mutex_);
        over_ = true;
    }
    available_.notify_all();
    for (auto &thread : threads) thread.join();
}

std::string Server::stats() const {
    std::string text = "{";
    auto add = [&text](const char *name, uint64_t value) {
        text += (text.size() > 1 ? "," : "") + std::string("\"") + name + "\":" + std::to_string(value);
    };
    add("answered", counters_.answered);
    add("refused", counters_.refused);
    add("terminated", counters_.terminated);
    add("gone", counters_.gone);
    add("failed", counters_.failed);
    add("busy_us_useful", counters_.busy_us_useful);
    add("busy_us_wasted", counters_.busy_us_wasted);
    sert_stats all = {};
    all.size = sizeof all;
    if (options_.terminates && SERT_get_stats(&all) == 0) {
        add("threshold_us", all.threshold_ns / 1000);
        add("gated", all.gated);
        add("locked", all.locked);
        add("masked", all.masked);
        add("cancelled", all.cancelled);
        add("overshoot_us_mean", all.terminated ? all.overshoot_ns / all.terminated / 1000 : 0);
    }
    return text + "}\n";
}

}  // namespace search

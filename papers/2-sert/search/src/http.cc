#include "http.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cerrno>
#include <cstring>
#include <strings.h>

namespace search {

namespace {

constexpr std::size_t MAX_HEAD = 8192;
constexpr auto IO_TIMEOUT = std::chrono::seconds(5);

bool wait(int fd, short what, std::chrono::steady_clock::time_point until) {
    auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - std::chrono::steady_clock::now()).count();
    pollfd one = {fd, what, 0};
    return left > 0 && poll(&one, 1, static_cast<int>(left)) == 1;
}

int hex(char c) {
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

std::string decoded(const std::string &text) {
    std::string plain;
    for (std::size_t i = 0; i < text.size(); i++) {
        bool is_escape = text[i] == '%' && i + 2 < text.size() && hex(text[i + 1]) >= 0 && hex(text[i + 2]) >= 0;
        plain += is_escape ? static_cast<char>(hex(text[i + 1]) * 16 + hex(text[i + 2])) : text[i] == '+' ? ' ' : text[i];
        i += is_escape ? 2 : 0;
    }
    return plain;
}

void read_target(const std::string &target, Request &request) {
    std::size_t mark = target.find('?');
    request.path = target.substr(0, mark);
    for (std::size_t at = mark; at != std::string::npos;) {
        std::size_t end = target.find('&', at + 1);
        std::string pair = target.substr(at + 1, end == std::string::npos ? end : end - at - 1);
        if (pair.compare(0, 2, "q=") == 0) request.words = decoded(pair.substr(2));
        at = end;
    }
}

int read_field(const std::string &line, Request &request) {
    static const char NAME[] = "shop-demand-us:";
    if (strncasecmp(line.c_str(), NAME, sizeof NAME - 1) != 0) return 0;
    std::size_t from = line.find_first_not_of(" \t", sizeof NAME - 1);
    std::string number = from == std::string::npos ? "" : line.substr(from);
    bool is_number = !number.empty() && number.size() <= 9 && std::all_of(number.begin(), number.end(), [](char c) { return c >= '0' && c <= '9'; });
    if (!is_number) return 400;
    request.demand_us = std::stoull(number);
    return 0;
}

int parse(const std::string &head, Request &request) {
    std::size_t end = head.find("\r\n"), first = head.find(' '), second = head.find(' ', first + 1);
    if (first == std::string::npos || second == std::string::npos || second > end) return 400;
    if (head.compare(0, first, "GET") != 0) return 405;
    if (head.compare(second + 1, 7, "HTTP/1.") != 0) return 400;
    read_target(head.substr(first + 1, second - first - 1), request);
    for (std::size_t at = end + 2; at < head.size() - 2;) {
        std::size_t stop = head.find("\r\n", at);
        if (int wrong = read_field(head.substr(at, stop - at), request)) return wrong;
        at = stop + 2;
    }
    return 0;
}

const char *phrase(int status) {
    switch (status) {
    case 200: return "OK";
    case 400: return "Bad Request";
    case 404: return "Not Found";
    case 405: return "Method Not Allowed";
    case 431: return "Request Header Fields Too Large";
    case 503: return "Service Unavailable";
    case 504: return "Gateway Timeout";
    default: return "Error";
    }
}

}  // namespace

int read_request(int fd, Request &request) {
    auto until = std::chrono::steady_clock::now() + IO_TIMEOUT;
    std::string head;
    char part[2048];
    while (head.find("\r\n\r\n") == std::string::npos) {
        if (head.size() > MAX_HEAD) return 431;
        if (!wait(fd, POLLIN, until)) return -1;
        ssize_t got = recv(fd, part, sizeof part, MSG_DONTWAIT);
        if (got <= 0) return -1;
        head.append(part, static_cast<std::size_t>(got));
    }
    std::size_t end = head.find("\r\n\r\n") + 4;
    return end > MAX_HEAD ? 431 : parse(head.substr(0, end), request);
}

void answer(int fd, int status, const std::string &body, const std::string &fields) {
    std::string all = "HTTP/1.1 " + std::to_string(status) + " " + phrase(status) + "\r\nContent-Type: application/json\r\nContent-Length: "
        + std::to_string(body.size()) + "\r\nConnection: close\r\n" + fields + "\r\n" + body;
    auto until = std::chrono::steady_clock::now() + IO_TIMEOUT;
    for (std::size_t sent = 0; sent < all.size();) {
        ssize_t more = send(fd, all.data() + sent, all.size() - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (more < 0 && !(errno == EAGAIN && wait(fd, POLLOUT, until))) return;
        sent += more > 0 ? static_cast<std::size_t>(more) : 0;
    }
    shutdown(fd, SHUT_WR);
}

}  // namespace search

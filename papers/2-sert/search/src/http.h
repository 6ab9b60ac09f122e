// A small part of HTTP/1.1: one GET per connection, with a bounded head and a bounded time to send it.
#pragma once

#include <cstdint>
#include <string>

namespace search {

struct Request {
    std::string path;
    // The decoded value of `q` in the query string.
    std::string words;
    // The amount of work in microseconds, if the client sets it, as the laboratory does; else 0.
    uint64_t demand_us = 0;
};

// Reads a request. Returns 0, or the status of the error, or -1 if the client has left or is too slow.
int read_request(int fd, Request &request);

// Sends the whole answer, the last one on the connection. The rest is lost if the client does not read it in time.
void answer(int fd, int status, const std::string &body, const std::string &fields = "");

}  // namespace search

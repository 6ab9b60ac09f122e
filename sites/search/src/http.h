// Just enough HTTP/1.1: one GET per connection, with a bounded head and a bounded time to send it.
#pragma once

#include <cstdint>
#include <string>

namespace search {

struct Request {
    std::string path;
    // Of the query string, decoded: `q`.
    std::string words;
    // How much work is wanted, in microseconds, if the client says (the lab does); otherwise 0.
    uint64_t demand_us = 0;
};

// What is wrong with it, as a status; 0: nothing; -1: the client is gone, or too slow.
int read_request(int fd, Request &request);

// The whole answer, and the connection is at its end. What a client does not take in time is lost.
void answer(int fd, int status, const std::string &body, const std::string &fields = "");

}  // namespace search

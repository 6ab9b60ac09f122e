// httplib_client SERVER: the test of the example for cpp-httplib.
#include <httplib.h>

#include "traffic.h"

using traffic::Answer;

static Answer ask(int port, const std::string &text, unsigned entries) {
    httplib::Client client("127.0.0.1", port);
    client.set_read_timeout(120);
    httplib::Params query = {{"text", text}, {"entries", std::to_string(entries)}};
    auto result = client.Get("/find", query, httplib::Headers{});
    if (!result) return Answer::wrong;
    if (result->status == 504) return Answer::stopped;
    return result->status == 200 && result->body == text + ": 1000 entries" ? Answer::right : Answer::wrong;
}

int main(int argc, char **argv) { return traffic::main_of(argc, argv, "a server of cpp-httplib", ask); }

// A server of cpp-httplib whose handlers are stopped. A stopped one answers 504.
//
//   httplib MS      prints its port, and serves until its input ends; MS is the time limit
#include <httplib.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <thread>

#include "entries.h"
#include "sert_worker.h"

namespace {

constexpr uint32_t FIND = 0;

// cpp-httplib calls this on a thread of its pool. It reads the request before and writes the answer
// afterwards.
void find(const httplib::Request &request, httplib::Response &response) {
    std::string *text = nullptr;
    int reason = sert_run(FIND, [&] {
        text = new std::string(find_entries(request.get_param_value("text"), std::stoull(request.get_param_value("entries"))));
    });
    if (reason) {
        response.status = 504;
        response.set_content("the request ran for too long\n", "text/plain");
        return;
    }
    std::unique_ptr<std::string> owned(text);
    response.set_content(*text, "text/plain");
}

}  // namespace

int main(int argc, char **argv) {
    double limit_ms = argc > 1 ? std::atof(argv[1]) : 200;
    if (sert_begin(FIND, limit_ms, limit_ms) != 0) std::fputs("runs without terminations\n", stderr);
    httplib::Server server;
    server.Get("/find", find);
    int port = server.bind_to_any_port("127.0.0.1");
    std::thread serving([&] { server.listen_after_bind(); });
    std::printf("%d\n", port);
    std::fflush(stdout);
    while (std::getchar() != EOF) {}
    server.stop();
    serving.join();
}

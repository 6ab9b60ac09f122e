// search: an index-matching or a ranking service, for experiments with overload.
#include <getopt.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "costs.h"
#include "server.h"

namespace {

std::atomic<bool> over{false};

const char USAGE[] =
    "search match|rank [options]        Serve on this machine\n"
    "search match|rank --costs N        Print the cost of N requests, in microseconds, one per line\n"
    "\n"
    "  --port N        Port of the service [default: 0, a free port]\n"
    "  --admin N       Port of /-/stats [default: a free port]\n"
    "  --threads N     Number of workers, 1 to 512 [default: 15]\n"
    "  --queue N       Requests that may wait; further ones get 503 [default: 15]\n"
    "  --terminate     Stop requests that run for too long (libsert)\n"
    "  --lb MS --ub MS Bounds of the threshold [default: 1500, 8000]\n"
    "  --alpha A --low P --high P --interval MS   Parameters of its controller [default: 4, 0.05, 0.15, 10000]\n"
    "  --seed N        Seed of the corpus [default: 1]\n";

[[noreturn]] void wrong_use(const std::string &why) {
    std::fprintf(stderr, "search: %s\n\n%s", why.c_str(), USAGE);
    std::exit(2);
}

double number(const char *option, const char *text, double least, double most) {
    char *end = nullptr;
    double is = std::strtod(text, &end);
    if (end == text || *end != 0 || !(is >= least && is <= most)) {
        wrong_use(std::string("--") + option + " " + text + ": write a number between " + std::to_string(least) + " and " + std::to_string(most));
    }
    return is;
}

struct Options {
    std::string service;
    search::ServerOptions server_options;
    uint32_t seed = 1;
    long costs = 0;
};

Options parse(int argc, char **argv) {
    static const option known[] = {
        {"port", 1, nullptr, 'p'}, {"admin", 1, nullptr, 'a'}, {"threads", 1, nullptr, 't'}, {"queue", 1, nullptr, 'q'},
        {"terminate", 0, nullptr, 'T'}, {"lb", 1, nullptr, 'l'}, {"ub", 1, nullptr, 'u'}, {"alpha", 1, nullptr, 'A'},
        {"low", 1, nullptr, 'L'}, {"high", 1, nullptr, 'H'}, {"interval", 1, nullptr, 'i'}, {"seed", 1, nullptr, 's'},
        {"costs", 1, nullptr, 'c'}, {nullptr, 0, nullptr, 0}};
    Options options;
    search::ServerOptions &server_options = options.server_options;
    for (int is, index = 0; (is = getopt_long(argc, argv, "", known, &index)) != -1;) {
        const char *name = is == '?' ? "" : known[index].name;
        switch (is) {
        case 'p': server_options.port = static_cast<uint16_t>(number(name, optarg, 0, 65535)); break;
        case 'a': server_options.admin_port = static_cast<uint16_t>(number(name, optarg, 0, 65535)); break;
        case 't': server_options.threads = static_cast<unsigned>(number(name, optarg, 1, 512)); break;
        case 'q': server_options.queue = static_cast<std::size_t>(number(name, optarg, 1, 100000)); break;
        case 'T': server_options.terminates = true; break;
        case 'l': server_options.lb_ms = number(name, optarg, 0.001, 86400e3); break;
        case 'u': server_options.ub_ms = number(name, optarg, 0.001, 86400e3); break;
        case 'A': server_options.alpha = number(name, optarg, 0, 100); break;
        case 'L': server_options.lw = number(name, optarg, 0, 1); break;
        case 'H': server_options.hw = number(name, optarg, 0, 1); break;
        case 'i': server_options.interval_ms = static_cast<uint32_t>(number(name, optarg, 100, 86400e3)); break;
        case 's': options.seed = static_cast<uint32_t>(number(name, optarg, 0, 4294967295.0)); break;
        case 'c': options.costs = static_cast<long>(number(name, optarg, 1, 1e7)); break;
        default: wrong_use("unknown option");
        }
    }
    if (optind != argc - 1) wrong_use("name one service: match or rank");
    if (server_options.lb_ms > server_options.ub_ms) wrong_use("--lb is above --ub");
    if (server_options.lw >= server_options.hw) wrong_use("--low is not below --high");
    options.service = argv[optind];
    return options;
}

int serve(const search::Service &service, const search::ServerOptions &server_options) {
    search::Server server(service, server_options);
    if (!server.protect()) {
        std::fprintf(stderr, "search: --terminate is not possible: %s\n", std::strerror(errno));
        return 2;
    }
    if (!server.listen()) {
        std::fprintf(stderr, "search: cannot listen: %s\n", std::strerror(errno));
        return 1;
    }
    std::printf("listening on 127.0.0.1:%u, /-/stats on 127.0.0.1:%u\n", server.port(), server.admin_port());
    std::fflush(stdout);
    for (int signal : {SIGINT, SIGTERM}) std::signal(signal, [](int) { over = true; });
    std::signal(SIGPIPE, SIG_IGN);
    server.run(over);
    std::printf("%s", server.stats().c_str());
    return 0;
}

}  // namespace

int main(int argc, char **argv) {
    Options options = parse(argc, argv);
    auto service = search::make_service(options.service, options.seed);
    if (!service) wrong_use(options.service + " is not a service: write match or rank");
    if (options.costs > 0) return search::print_costs(*service, options.costs);
    service->calibrate();
    return serve(*service, options.server_options);
}

// A gRPC server whose handlers are stopped. A stopped one answers DEADLINE_EXCEEDED.
//
//   grpc MS         prints its port, and serves until its input ends; MS is the time limit
#include <grpcpp/grpcpp.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <memory>

#include "entries.h"
#include "search.grpc.pb.h"
#include "sert_worker.h"

namespace {

constexpr uint32_t FIND = 0;

class Search final : public search::Search::Service {
    // gRPC calls this on a thread of its own, which holds no lock. It reads the next call of its
    // completion queue and writes the answer after this function. So the request is over by then.
    grpc::Status Find(grpc::ServerContext *, const search::Query *query, search::Found *found) override {
        std::string *text = nullptr;
        int reason = sert_run(FIND, [&] { text = new std::string(find_entries(query->text(), query->entries())); });
        if (reason) return {grpc::StatusCode::DEADLINE_EXCEEDED, "the request ran for too long"};
        std::unique_ptr<std::string> owned(text);
        found->set_text(*text);
        return grpc::Status::OK;
    }
};

}  // namespace

int main(int argc, char **argv) {
    double limit_ms = argc > 1 ? std::atof(argv[1]) : 200;
    if (sert_begin(FIND, limit_ms, limit_ms) != 0) std::fputs("runs without terminations\n", stderr);
    Search service;
    int port = 0;
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
    builder.RegisterService(&service);
    std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
    if (!server) return 1;
    std::printf("%d\n", port);
    std::fflush(stdout);
    while (std::getchar() != EOF) {}
    server->Shutdown();
}

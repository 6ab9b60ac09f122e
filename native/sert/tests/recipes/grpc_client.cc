// grpc_client SERVER: the test of the example for gRPC.
#include <grpcpp/grpcpp.h>

#include "search.grpc.pb.h"
#include "traffic.h"

using traffic::Answer;

static Answer ask(int port, const std::string &text, unsigned entries) {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);  // a connection of its own
    auto address = "127.0.0.1:" + std::to_string(port);
    auto channel = grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments);
    auto stub = search::Search::NewStub(channel);
    grpc::ClientContext context;
    search::Query query;
    query.set_text(text);
    query.set_entries(entries);
    search::Found found;
    grpc::Status status = stub->Find(&context, query, &found);
    if (status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED) return Answer::stopped;
    return status.ok() && found.text() == text + ": 1000 entries" ? Answer::right : Answer::wrong;
}

int main(int argc, char **argv) { return traffic::main_of(argc, argv, "a gRPC server", ask); }

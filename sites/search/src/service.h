// The application: what a request asks for and what it gets. It knows nothing of threads, queues or terminations.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "corpus.h"
#include "http.h"
#include "matching.h"
#include "ranking.h"

namespace search {

struct Answer {
    int status;
    std::string body;
};

class Service {
public:
    virtual ~Service() = default;
    virtual Answer process(const Request &request) const = 0;
    // How much of its unit of work a second of a processor does; asked for once, at the start.
    void calibrate();

protected:
    // So many units of work, for nobody.
    virtual void work(std::size_t units) const = 0;
    // What a demand comes to.
    std::size_t units_of(uint64_t demand_us) const;
    Dice dice() const;

private:
    double units_per_us_ = 1;
    mutable std::atomic<uint64_t> next_seed_{1};
};

// "match" or "rank"; nullptr: neither.
std::unique_ptr<Service> make_service(const std::string &name, uint32_t seed);

}  // namespace search

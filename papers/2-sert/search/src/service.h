// The application: maps a request to an answer. It does not know about threads, queues or terminations.
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
    // Measures how many units of work a processor does in a microsecond. Call it once, at the
    // start.
    void calibrate();

protected:
    // Does this many units of work and discards the result.
    virtual void work(std::size_t units) const = 0;
    // Returns the units of work for a demand in microseconds.
    std::size_t units_of(uint64_t demand_us) const;
    Rng new_rng() const;

private:
    double units_per_us_ = 1;
    mutable std::atomic<uint64_t> next_seed_{1};
};

// Makes the service "match" or "rank". Returns nullptr for any other name.
std::unique_ptr<Service> make_service(const std::string &name, uint32_t seed);

}  // namespace search

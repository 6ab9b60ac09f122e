// Ranking: compares a number of candidates with the query. This number has an exponential distribution, and so has the
// cost.
#pragma once

#include <cstdint>
#include <vector>

#include "matching.h"
#include "rng.h"

namespace search {

class Ranking {
public:
    Ranking(uint32_t documents, uint32_t seed);

    // Returns the ten candidates of this many that are most similar to the query.
    std::vector<Found> rank(std::size_t candidates, uint32_t query) const;
    std::size_t draw(Rng &rng) const;

private:
    std::vector<float> features_;
    uint32_t documents_;
};

}  // namespace search

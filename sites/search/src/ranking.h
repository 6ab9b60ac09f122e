// Ranking: so many candidates by how alike they are to the query. How many there are is exponential, so what it
// costs is.
#pragma once

#include <cstdint>
#include <vector>

#include "dice.h"
#include "matching.h"

namespace search {

class Ranking {
public:
    Ranking(uint32_t documents, uint32_t seed);

    // The ten most alike of so many candidates.
    std::vector<Found> rank(std::size_t candidates, uint32_t query) const;
    std::size_t draw(Dice &dice) const;

private:
    std::vector<float> features_;
    uint32_t documents_;
};

}  // namespace search

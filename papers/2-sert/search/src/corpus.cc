#include "corpus.h"

#include <cmath>

#include "rng.h"

namespace search {

Corpus::Corpus(std::size_t words, uint32_t documents, uint32_t seed) : documents_(documents) {
    lists_.resize(words);
    Rng rng(seed);
    for (std::size_t rank = 0; rank < words; rank++) {
        double share = 1.0 / static_cast<double>(rank + 1);
        auto &list = lists_[rank];
        list.reserve(static_cast<std::size_t>(share * documents) + 1);
        // The gap to the next document with the word is geometric.
        double step = share < 1.0 ? 1.0 / std::log1p(-share) : 0.0;
        for (double at = 0; at < documents; at += 1.0 + std::floor(std::log(rng.unit()) * step)) {
            list.push_back({static_cast<uint32_t>(at), 1 + rng.below(5)});
        }
    }
}

}  // namespace search

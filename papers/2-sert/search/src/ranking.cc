#include "ranking.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace search {

namespace {

constexpr std::size_t FEATURES = 64;
constexpr std::size_t BEST = 10;
constexpr double MEAN_CANDIDATES = 100000;

}  // namespace

Ranking::Ranking(uint32_t documents, uint32_t seed) : features_(documents * FEATURES), documents_(documents) {
    Rng rng(seed);
    for (float &feature : features_) feature = static_cast<float>(rng.unit());
}

std::vector<Found> Ranking::rank(std::size_t candidates, uint32_t query) const {
    const float *wanted = &features_[static_cast<std::size_t>(query % documents_) * FEATURES];
    std::multimap<float, uint32_t> best;
    for (std::size_t i = 0; i < candidates; i++) {
        uint32_t document = static_cast<uint32_t>((query + i * 2654435761u) % documents_);
        const float *is = &features_[static_cast<std::size_t>(document) * FEATURES];
        float alike = 0;
        for (std::size_t feature = 0; feature < FEATURES; feature++) alike += is[feature] * wanted[feature];
        if (best.size() < BEST || alike > best.begin()->first) {
            best.emplace(alike, document);
            if (best.size() > BEST) best.erase(best.begin());
        }
    }
    std::vector<Found> sorted;
    for (auto it = best.rbegin(); it != best.rend(); ++it) sorted.push_back({it->second, it->first});
    return sorted;
}

std::size_t Ranking::draw(Rng &rng) const {
    return static_cast<std::size_t>(-std::log(rng.unit()) * MEAN_CANDIDATES) + 1;
}

}  // namespace search

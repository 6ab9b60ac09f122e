// Index matching: the documents that contain the words of a query, the best first. The cost is proportional to the
// lengths of the words' lists.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "corpus.h"
#include "rng.h"

namespace search {

struct Found {
    uint32_t document;
    float score;
};

class Matching {
public:
    explicit Matching(const Corpus &corpus);

    // Returns the ten best documents. `words` are ranks.
    std::vector<Found> match(const std::vector<uint32_t> &words) const;

    // Draws a realistic query: one or two words, rarely very frequent ones.
    std::vector<uint32_t> draw(Rng &rng) const;
    // Returns words whose lists have this total length, as nearly as the longest lists allow.
    std::vector<uint32_t> of_length(std::size_t postings, Rng &rng) const;
    // Parses words such as "w12 w7". Returns false if one of them does not exist.
    bool parse(const std::string &text, std::vector<uint32_t> &words) const;

    std::size_t length(const std::vector<uint32_t> &words) const;

private:
    const Corpus &corpus_;
};

}  // namespace search

// Index matching: the documents that have the words of a query, the best first. What it costs goes with how long
// the lists of its words are.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "corpus.h"
#include "dice.h"

namespace search {

struct Found {
    uint32_t document;
    float score;
};

class Matching {
public:
    explicit Matching(const Corpus &corpus);

    // The ten best. `words` are ranks.
    std::vector<Found> match(const std::vector<uint32_t> &words) const;

    // A query as people make them: one or two words, seldom very frequent ones.
    std::vector<uint32_t> draw(Dice &dice) const;
    // Words whose lists are together so long; as near as the longest lists go.
    std::vector<uint32_t> of_length(std::size_t postings, Dice &dice) const;
    // The words of "w12 w7": false if one is none.
    bool parse(const std::string &text, std::vector<uint32_t> &words) const;

    std::size_t length(const std::vector<uint32_t> &words) const;

private:
    const Corpus &corpus_;
};

}  // namespace search

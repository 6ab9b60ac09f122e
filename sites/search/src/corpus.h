// A corpus that is made up: words by Zipf's law, and for each the documents in which it stands.
//
// The same seed makes the same corpus. The n-th most frequent word is called "wN"; how many documents have it falls
// as 1/N, so that queries with frequent words cost hundreds of times what others do: the heavy tail is in the words.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace search {

struct Posting {
    uint32_t document;
    uint32_t times;
};

class Corpus {
public:
    Corpus(std::size_t words, uint32_t documents, uint32_t seed);

    std::size_t words() const { return lists_.size(); }
    uint32_t documents() const { return documents_; }
    // Of the word of this rank, the most frequent first; in the order of documents.
    const std::vector<Posting> &list(std::size_t rank) const { return lists_[rank]; }

private:
    std::vector<std::vector<Posting>> lists_;
    uint32_t documents_;
};

}  // namespace search

// A made-up corpus: words by Zipf's law, and for each word the documents that contain it.
//
// The same seed makes the same corpus. The n-th most frequent word is called "wN". The number of documents with it
// falls as 1/N. Therefore queries with frequent words cost hundreds of times as much as others: a heavy tail.
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
    // Returns the postings of the word of this rank, in the order of documents. Rank 0 is the most frequent word.
    const std::vector<Posting> &list(std::size_t rank) const { return lists_[rank]; }

private:
    std::vector<std::vector<Posting>> lists_;
    uint32_t documents_;
};

}  // namespace search

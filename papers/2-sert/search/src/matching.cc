#include "matching.h"

#include <algorithm>
#include <cmath>
#include <queue>
#include <sstream>
#include <unordered_map>

namespace search {

namespace {

constexpr std::size_t BEST = 10;
constexpr std::size_t MOST_WORDS = 64;
// Drawn queries use words up to this rank. Rarer words only fill a query up to a given length.
constexpr double ASKED_FOR = 500;
// The rank is ASKED_FOR times a uniform number to this power, which sets the index of the tail.
constexpr double TAIL = 1.1;
// The number of places of a word that are checked in each field of a document. The fields are title, headings, anchors
// and body. Places close to each other count more.
constexpr int PLACES = 64;
constexpr int FIELDS = 4;
constexpr float WEIGHTS[FIELDS] = {3.0F, 2.0F, 1.5F, 1.0F};

// Returns a score of the form of BM25, which saturates with the number of occurrences. The places are made up. A real
// index decompresses them, which costs about as much.
float score(const Posting &posting, float rarity) {
    float sum = 0;
    for (uint32_t field = 0; field < FIELDS; field++) {
        uint32_t state = posting.document * 2654435761u + field, last = 0;
        float times = static_cast<float>(posting.times);
        for (int place = 0; place < PLACES; place++) {
            state = state * 1664525u + 1013904223u;
            uint32_t at = state >> 22;
            times += at - last < 8 ? 1.0F : 0.001F;
            last = at;
        }
        float length = 1.0F + 0.1F * static_cast<float>((posting.document >> field) % 20);
        sum += WEIGHTS[field] * rarity * times * 2.2F / (times + 1.2F * (0.25F + 0.75F * length));
    }
    return sum;
}

struct Worse {
    bool operator()(const Found &a, const Found &b) const {
        return a.score != b.score ? a.score > b.score : a.document < b.document;
    }
};

}  // namespace

Matching::Matching(const Corpus &corpus) : corpus_(corpus) {}

std::vector<Found> Matching::match(const std::vector<uint32_t> &words) const {
    std::priority_queue<Found, std::vector<Found>, Worse> best;
    for (uint32_t word : words) {
        const auto &list = corpus_.list(word);
        float rarity = std::log1p(static_cast<float>(corpus_.documents()) / static_cast<float>(list.size() + 1));
        // The scores of all postings are folded into 4,096 entries, which stay in the cache. The
        // result does not need them: they stand for the work of a real index.
        std::unordered_map<uint32_t, float> scores;
        for (const Posting &posting : list) {
            float is = score(posting, rarity);
            if (is > 14.0F * rarity) scores[posting.document % 4096] += is;
            if (best.size() < BEST || is > best.top().score) {
                best.push({posting.document, is});
                if (best.size() > BEST) best.pop();
            }
        }
    }
    std::vector<Found> sorted;
    for (; !best.empty(); best.pop()) sorted.push_back(best.top());
    std::reverse(sorted.begin(), sorted.end());
    return sorted;
}

std::vector<uint32_t> Matching::draw(Rng &rng) const {
    std::vector<uint32_t> words(1 + rng.below(2));
    for (uint32_t &word : words) {
        word = static_cast<uint32_t>(ASKED_FOR * std::pow(rng.unit(), 1 / TAIL));
    }
    return words;
}

std::vector<uint32_t> Matching::of_length(std::size_t postings, Rng &rng) const {
    std::vector<uint32_t> words;
    auto shorter = [this](std::size_t rank, std::size_t left) { return corpus_.list(rank).size() > left; };
    while (words.size() < MOST_WORDS && postings > 0) {
        std::size_t low = 0, high = corpus_.words();
        // Lists get shorter with the rank. This finds the first one that fits into the rest.
        while (low < high) {
            std::size_t middle = (low + high) / 2;
            if (shorter(middle, postings)) low = middle + 1;
            else high = middle;
        }
        if (low == corpus_.words()) break;
        std::size_t most = std::min(low + 1 + low / 50, corpus_.words());
        uint32_t word = static_cast<uint32_t>(low + rng.below(static_cast<uint32_t>(most - low)));
        words.push_back(word);
        postings -= std::min(postings, corpus_.list(word).size());
    }
    if (words.empty()) words.push_back(static_cast<uint32_t>(corpus_.words() - 1));
    return words;
}

bool Matching::parse(const std::string &text, std::vector<uint32_t> &words) const {
    std::istringstream parts(text);
    for (std::string part; parts >> part;) {
        bool is_word = part.size() >= 2 && part.size() <= 9 && part[0] == 'w'
            && std::all_of(part.begin() + 1, part.end(), [](char c) { return c >= '0' && c <= '9'; });
        unsigned long rank = is_word ? std::stoul(part.substr(1)) : corpus_.words();
        if (rank >= corpus_.words() || words.size() == MOST_WORDS) return false;
        words.push_back(static_cast<uint32_t>(rank));
    }
    return !words.empty();
}

std::size_t Matching::length(const std::vector<uint32_t> &words) const {
    std::size_t sum = 0;
    for (uint32_t word : words) sum += corpus_.list(word).size();
    return sum;
}

}  // namespace search

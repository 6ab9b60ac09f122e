#include "service.h"

#include <algorithm>
#include <vector>

#include "processor.h"

namespace search {

namespace {

std::string as_json(const std::vector<Found> &found) {
    std::string text = "{\"found\":[";
    for (const Found &one : found) {
        text += (text.back() == '[' ? "" : ",") + std::string("{\"document\":") + std::to_string(one.document)
            + ",\"score\":" + std::to_string(one.score) + "}";
    }
    return text + "]}\n";
}

class MatchingService : public Service {
public:
    explicit MatchingService(uint32_t seed) : corpus_(20000, 1000000, seed), matching_(corpus_) {}

    Answer process(const Request &request) const override {
        std::vector<uint32_t> words;
        Rng random = new_rng();
        if (!request.words.empty()) {
            if (!matching_.parse(request.words, words)) return {400, "{\"error\":\"q must be 1 to 64 words from w0 to w19999\"}\n"};
        } else {
            words = request.demand_us ? matching_.of_length(units_of(request.demand_us), random) : matching_.draw(random);
        }
        return {200, as_json(matching_.match(words))};
    }

protected:
    void work(std::size_t units) const override {
        Rng random(1);
        matching_.match(matching_.of_length(units, random));
    }

private:
    Corpus corpus_;
    Matching matching_;
};

class RankingService : public Service {
public:
    explicit RankingService(uint32_t seed) : ranking_(400000, seed) {}

    Answer process(const Request &request) const override {
        Rng random = new_rng();
        std::size_t candidates = request.demand_us ? units_of(request.demand_us) : ranking_.draw(random);
        return {200, as_json(ranking_.rank(candidates, static_cast<uint32_t>(random.next())))};
    }

protected:
    void work(std::size_t units) const override { ranking_.rank(units, 7); }

private:
    Ranking ranking_;
};

}  // namespace

void Service::calibrate() {
    constexpr std::size_t UNITS = 60000;
    std::vector<double> speeds;
    for (int turn = 0; turn < 9; turn++) {
        double began = processor_us();
        work(UNITS);
        speeds.push_back(UNITS / (processor_us() - began));
    }
    std::sort(speeds.begin(), speeds.end());
    units_per_us_ = speeds[speeds.size() / 2];
}

std::size_t Service::units_of(uint64_t demand_us) const {
    return std::max<std::size_t>(1, static_cast<std::size_t>(static_cast<double>(demand_us) * units_per_us_));
}

Rng Service::new_rng() const {
    return Rng(next_seed_.fetch_add(1));
}

std::unique_ptr<Service> make_service(const std::string &name, uint32_t seed) {
    if (name == "match") return std::make_unique<MatchingService>(seed);
    if (name == "rank") return std::make_unique<RankingService>(seed);
    return nullptr;
}

}  // namespace search

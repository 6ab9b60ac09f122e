// Random numbers that are the same everywhere for the same seed.
#pragma once

#include <cstdint>

namespace search {

class Rng {
public:
    explicit Rng(uint64_t seed) : state_(seed * 0x9E3779B97F4A7C15u + 1) {}

    uint64_t next() {
        uint64_t mixed = state_ += 0x9E3779B97F4A7C15u;
        mixed = (mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9u;
        mixed = (mixed ^ (mixed >> 27)) * 0x94D049BB133111EBu;
        return mixed ^ (mixed >> 31);
    }
    uint32_t below(uint32_t bound) { return static_cast<uint32_t>((next() >> 32) * bound >> 32); }
    // Returns a number above 0 and below 1.
    double unit() { return (static_cast<double>(next() >> 11) + 0.5) / 9007199254740992.0; }

private:
    uint64_t state_;
};

}  // namespace search

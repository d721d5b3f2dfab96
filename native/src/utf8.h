// Words of UTF-8 text: pure functions over bytes that are known to be valid. Know nothing of Python.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace localctx {

constexpr std::uint64_t kHighBits = 0x8080808080808080ULL;
constexpr std::uint64_t kLowBits = 0x0101010101010101ULL;

inline std::uint64_t load_word(const std::uint8_t *bytes) {
    std::uint64_t word;
    std::memcpy(&word, bytes, sizeof word);
    return word;
}

// Sum of eight bytes that are each at most 31.
inline unsigned sum_of_bytes(std::uint64_t word) { return static_cast<unsigned>((word * kLowBits) >> 56); }

// How many of the eight bytes are not of the form 10xxxxxx.
inline unsigned count_leads(std::uint64_t word) {
    return 8U - sum_of_bytes((word >> 7) & ~(word >> 6) & kLowBits);
}

inline bool is_continuation(std::uint8_t byte) { return (byte & 0xC0U) == 0x80U; }

// Bytes taken by the first `n_code_points`; `size` when there are fewer.
std::size_t utf8_advance(const std::uint8_t *bytes, std::size_t size, std::uint64_t n_code_points);

}  // namespace localctx

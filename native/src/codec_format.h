// The byte layout of an encoded run: what one section holds and where, from the shape alone. Internal to codec.
//
// A run: header (64 bytes), one entry of 40 bytes a layer, then the sections of layer 0 K, layer 0 V, layer 1 K ...
// Sections and their codes start at multiples of 64; gaps are zero. Numbers are little-endian.
//   header   "LCKV", u16 version, u8 codec, u8 0, u32 n_tokens, n_layer, head_dim, head_group,
//            f32 largest error of K, of V, u64 n_outliers, u64 size of the run, 16 bytes 0
//   entry    u32 elements of a K row, of a V row; for K and V: u64 offset, u32 n_outliers, u32 codec
//   section  parameters, codes, outliers (u32 index in the section, ascending; then their f16 values)
//   parameters of one block (K: 128 tokens; V: one token): f16 scales, then f16 zeros; fp8: f32 scales; f16: none
//   codes    a row a token, eight elements to code_bits bytes, the first in the lowest bits
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "codec.h"

namespace localctx {

constexpr std::size_t kBlockTokens = 128;
constexpr std::size_t kAlignment = 64;
constexpr std::size_t kHeaderSize = 64;
constexpr std::size_t kEntrySize = 40;
constexpr std::size_t kUnit = 8;  // elements that are packed together
constexpr std::uint16_t kVersion = 1;
constexpr std::uint32_t kMaxTokens = 65535;
constexpr std::uint32_t kMaxElements = 1U << 20;
constexpr float kMaxHalf = 65504.0F;

constexpr std::size_t align_up(std::size_t size) { return (size + kAlignment - 1) / kAlignment * kAlignment; }

inline bool is_fp8(Codec codec) { return codec == Codec::fp8_e4m3 || codec == Codec::fp8_e5m2; }

template <typename T>
T load(const std::uint8_t *at) {
    T value;
    std::memcpy(&value, at, sizeof value);
    return value;
}

template <typename T>
void store(std::uint8_t *at, T value) {
    std::memcpy(at, &value, sizeof value);
}

// Keys or values of one layer. `width`: dimensions of a head; heads in groups of `head_group` share parameters.
struct Section {
    Codec codec = Codec::f16;
    bool is_key = false;
    std::size_t n_tokens = 0, n_elements = 0, width = 0, head_group = 1;
    std::size_t n_outliers = 0;

    std::size_t n_heads() const { return width == 0 ? 0 : n_elements / width; }
    std::size_t n_head_groups() const { return (n_heads() + head_group - 1) / head_group; }
    std::size_t block_tokens() const { return is_key ? kBlockTokens : 1; }
    std::size_t n_blocks() const { return (n_tokens + block_tokens() - 1) / block_tokens(); }
    // Scales of one block: K one a channel and head group, V one a head group.
    std::size_t n_scales() const { return n_head_groups() * (is_key ? width : 1); }
    std::size_t block_size() const { return codec == Codec::f16 ? 0 : n_scales() * 4; }
    std::size_t row_size() const { return (n_elements + kUnit - 1) / kUnit * code_bits(codec); }
    std::size_t codes_offset() const { return align_up(n_blocks() * block_size()); }
    std::size_t outliers_offset() const { return codes_offset() + n_tokens * row_size(); }
    std::uint64_t n_values() const { return std::uint64_t{n_tokens} * n_elements; }
    std::size_t size() const { return align_up(outliers_offset() + n_outliers * 6); }

    // One entry a scale -> one an element.
    void expand(const float *of_scales, float *of_elements) const;
};

// Scales and zeros of one block, read from its bytes.
struct Parameters {
    explicit Parameters(const Section &section)
        : scale(section.n_elements), zero(section.n_elements), of_scales(2 * section.n_scales()),
          halves(2 * section.n_scales()) {}
    void read(const Section &section, const std::uint8_t *block);

    std::vector<float> scale, zero;  // [n_elements]
    std::vector<float> of_scales;    // [n_scales] scales, then zeros

  private:
    std::vector<std::uint16_t> halves;
};

}  // namespace localctx

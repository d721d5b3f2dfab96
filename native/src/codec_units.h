// Eight codes as a word of bytes or packed, and single fp8 values: what all kinds of rows share. Internal to codec.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

#include "codec_format.h"
#include "half.h"

namespace localctx {

template <Codec kCodec>
constexpr std::size_t kBits = kCodec == Codec::int4 ? 4 : kCodec == Codec::int3 ? 3 : kCodec == Codec::int2 ? 2 : 8;
template <Codec kCodec>
constexpr std::uint32_t kMask = (1U << kBits<kCodec>)-1;
template <Codec kCodec>
constexpr bool kIsFp8 = kCodec == Codec::fp8_e4m3 || kCodec == Codec::fp8_e5m2;

// Packed: code i in bits [i * kBits, (i + 1) * kBits). Reads kBits bytes.
template <Codec kCodec>
std::uint64_t load_unit(const std::uint8_t *at) {
    if constexpr (kBits<kCodec> == 3) {  // put together in registers: three bytes copied would be read back slowly
        return load<std::uint16_t>(at) | std::uint64_t{at[2]} << 16;
    }
    std::uint64_t unit = 0;
    std::memcpy(&unit, at, kBits<kCodec>);
    return unit;
}

// A code in each byte -> packed.
template <Codec kCodec>
void store_unit(std::uint64_t unit, std::uint8_t *at) {
    if constexpr (kBits<kCodec> < 8) {
        constexpr unsigned kBitsOfOne = kBits<kCodec>, kGap = 8 - kBitsOfOne;
        constexpr std::uint64_t kPairs = 0x0001000100010001U * ((1U << 2 * kBitsOfOne) - 1);
        constexpr std::uint64_t kFours = 0x0000000100000001U * ((1U << 4 * kBitsOfOne) - 1);
        unit = (unit | unit >> kGap) & kPairs;
        unit = (unit | unit >> 2 * kGap) & kFours;
        unit |= unit >> 4 * kGap;
    }
    std::memcpy(at, &unit, kBits<kCodec>);
}

// The layout of an fp8 format. E4M3 has no infinities: 0x7E is 448, and 0x7F, its NaN, is never written (and read
// as 480); E5M2 is the upper half of f16.
template <Codec kCodec>
struct Fp8;
template <>
struct Fp8<Codec::fp8_e4m3> {
    static constexpr unsigned kFractionBits = 3, kBias = 7;
    static constexpr float kLargest = 448.0F, kSmallestNormal = 0x1p-6F, kSubnormalsPerOne = 0x1p9F;
    // Moved to f16's place a value counts 2^-8 of what it does here.
    static constexpr unsigned kShiftToHalf = 7;
    static constexpr float kFromHalf = 256.0F;
};
template <>
struct Fp8<Codec::fp8_e5m2> {
    static constexpr unsigned kFractionBits = 2, kBias = 15;
    static constexpr float kLargest = 57344.0F, kSmallestNormal = 0x1p-14F, kSubnormalsPerOne = 0x1p16F;
    static constexpr unsigned kShiftToHalf = 8;
    static constexpr float kFromHalf = 1.0F;
};

template <Codec kCodec>
float fp8_to_float(std::uint32_t code) {
    const std::uint32_t half = (code & 0x80U) << 8 | (code & 0x7FU) << Fp8<kCodec>::kShiftToHalf;
    return half_to_float(static_cast<std::uint16_t>(half)) * Fp8<kCodec>::kFromHalf;
}

// Nearest, ties to even; beyond the range: the largest; NaN: the largest too.
template <Codec kCodec>
std::uint32_t float_to_fp8(float value) {
    using Format = Fp8<kCodec>;
    constexpr unsigned kDropped = 23 - Format::kFractionBits;
    std::uint32_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    const std::uint32_t sign = bits >> 24 & 0x80U;
    const float magnitude = std::fabs(value) < Format::kLargest ? std::fabs(value) : Format::kLargest;
    if (magnitude < Format::kSmallestNormal) {
        return sign | static_cast<std::uint32_t>(std::nearbyint(magnitude * Format::kSubnormalsPerOne));
    }
    std::memcpy(&bits, &magnitude, sizeof bits);
    bits += (1U << (kDropped - 1)) - 1 + (bits >> kDropped & 1U);
    return sign | ((bits >> kDropped) - ((127U - Format::kBias) << Format::kFractionBits));
}

}  // namespace localctx

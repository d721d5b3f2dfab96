// The scalar reference of the rows of codes, and the choice of instructions.
#include "codec_rows.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "codec_units.h"
#include "half.h"

namespace localctx {
namespace {

constexpr std::size_t kLanes = 8;
constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr std::int32_t kInfinityBits = 0x7F800000;

template <Codec kCodec>
void decode_scalar(const std::uint8_t *codes, const float *scale, const float *zero, std::size_t n, float *values) {
    for (std::size_t i = 0; i < n; ++i) {
        const std::size_t unit = i / kUnit;
        const std::uint64_t codes_of_unit = load_unit<kCodec>(codes + unit * kBits<kCodec>);
        const auto code = static_cast<std::uint32_t>(codes_of_unit >> (i % kUnit * kBits<kCodec>)) & kMask<kCodec>;
        if constexpr (kIsFp8<kCodec>) {
            values[i] = fp8_to_float<kCodec>(code) * scale[i];
        } else {
            values[i] = static_cast<float>(code) * scale[i] + zero[i];
        }
    }
}

template <Codec kCodec>
std::uint64_t code_of(float value, float inverse, float zero) {
    if constexpr (kIsFp8<kCodec>) {
        return float_to_fp8<kCodec>(value * inverse);
    } else {
        const float scaled = (value - zero) * inverse;
        const float positive = scaled > 0.0F ? scaled : 0.0F;  // NaN too becomes 0
        return static_cast<std::uint64_t>(std::nearbyint(std::min(positive, static_cast<float>(kMask<kCodec>))));
    }
}

template <Codec kCodec>
void encode_scalar(const float *values, const float *inverse, const float *zero, std::size_t n,
                   std::uint8_t *codes) {
    for (std::size_t at = 0; at < n; at += kUnit) {
        std::uint64_t unit = 0;  // a code in each byte
        for (std::size_t i = at; i < std::min(n, at + kUnit); ++i) {
            unit |= code_of<kCodec>(values[i], inverse[i], kIsFp8<kCodec> ? 0.0F : zero[i]) << (8 * (i - at));
        }
        store_unit<kCodec>(unit, codes + at / kUnit * kBits<kCodec>);
    }
}

template <Codec kCodec>
constexpr CodecRows kScalar = {decode_scalar<kCodec>, encode_scalar<kCodec>};

}  // namespace

CodecRows codec_rows_scalar(Codec codec) {
    switch (codec) {
        case Codec::fp8_e4m3: return kScalar<Codec::fp8_e4m3>;
        case Codec::fp8_e5m2: return kScalar<Codec::fp8_e5m2>;
        case Codec::int8: return kScalar<Codec::int8>;
        case Codec::int4: return kScalar<Codec::int4>;
        case Codec::int3: return kScalar<Codec::int3>;
        default: return kScalar<Codec::int2>;
    }
}

CodecRows codec_rows(Codec codec) {
    switch (simd()) {
#if defined(__x86_64__)
        case Simd::avx512:  // rows are bound by the turn and the stores: AVX2 is enough for the codes
        case Simd::avx2: return codec_rows_avx2(codec);
#endif
        default: return codec_rows_scalar(codec);
    }
}

// The loops below are written so that the compiler uses vectors for them on every processor.

void widen_bounds(const float *values, std::size_t n, float *low, float *high) {
    for (std::size_t i = 0; i < n; ++i) {
        low[i] = values[i] < low[i] ? values[i] : low[i];
        high[i] = values[i] > high[i] ? values[i] : high[i];
    }
}

Bounds bounds_of(const float *values, std::size_t n) {
    float low[kLanes], high[kLanes];
    std::fill_n(low, kLanes, kInfinity);
    std::fill_n(high, kLanes, -kInfinity);
    std::size_t i = 0;
    for (; i + kLanes <= n; i += kLanes) {
        widen_bounds(values + i, kLanes, low, high);
    }
    widen_bounds(values + i, n - i, low, high);
    return {*std::min_element(low, low + kLanes), *std::max_element(high, high + kLanes)};
}

float largest_error(const float *values, const float *decoded, std::size_t n) {
    std::int32_t largest = 0;  // non-negative floats are in the order of their bits
    for (std::size_t i = 0; i < n; ++i) {
        const float error = std::fabs(values[i] - decoded[i]);
        std::int32_t bits;
        std::memcpy(&bits, &error, sizeof bits);
        bits = bits > kInfinityBits ? 0 : bits;  // NaN
        largest = bits > largest ? bits : largest;
    }
    float error;
    std::memcpy(&error, &largest, sizeof error);
    return error;
}

bool all_ordinary(const float *values, std::size_t n) {
    std::uint32_t strange = 0;
    for (std::size_t i = 0; i < n; ++i) {
        strange |= static_cast<std::uint32_t>(!(std::fabs(values[i]) <= kMaxHalf));
    }
    return strange == 0;
}

}  // namespace localctx

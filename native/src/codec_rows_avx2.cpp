#include "codec_rows.h"
#include "codec_units.h"
#include "intrinsics.h"

#if defined(__x86_64__)
#define LOCALCTX_AVX2 __attribute__((target("avx2,f16c")))

namespace localctx {
namespace {

// Eight codes, one a lane.
template <Codec kCodec>
LOCALCTX_AVX2 inline __m256i load8(const std::uint8_t *at) {
    const std::uint64_t unit = load_unit<kCodec>(at);
    if constexpr (kBits<kCodec> == 8) {
        return _mm256_cvtepu8_epi32(_mm_cvtsi64_si128(static_cast<long long>(unit)));
    }
    constexpr int kB = kBits<kCodec>;
    const __m256i shifts = _mm256_setr_epi32(0, kB, 2 * kB, 3 * kB, 4 * kB, 5 * kB, 6 * kB, 7 * kB);
    const __m256i all = _mm256_set1_epi32(static_cast<int>(unit));
    return _mm256_and_si256(_mm256_srlv_epi32(all, shifts), _mm256_set1_epi32(static_cast<int>(kMask<kCodec>)));
}

template <Codec kCodec>
LOCALCTX_AVX2 inline __m256 fp8_to_floats(const std::uint8_t *at) {
    const __m128i codes = _mm_cvtepu8_epi16(_mm_loadl_epi64(reinterpret_cast<const __m128i *>(at)));
    const __m128i sign = _mm_slli_epi16(_mm_and_si128(codes, _mm_set1_epi16(0x80)), 8);
    const __m128i rest = _mm_slli_epi16(_mm_and_si128(codes, _mm_set1_epi16(0x7F)), Fp8<kCodec>::kShiftToHalf);
    return _mm256_mul_ps(_mm256_cvtph_ps(_mm_or_si128(sign, rest)), _mm256_set1_ps(Fp8<kCodec>::kFromHalf));
}

template <Codec kCodec>
LOCALCTX_AVX2 void decode_avx2(const std::uint8_t *codes, const float *scale, const float *zero, std::size_t n,
                               float *values) {
    std::size_t i = 0;
    for (; i + kUnit <= n; i += kUnit, codes += kBits<kCodec>) {
        const __m256 scales = _mm256_loadu_ps(scale + i);
        if constexpr (kIsFp8<kCodec>) {
            _mm256_storeu_ps(values + i, _mm256_mul_ps(fp8_to_floats<kCodec>(codes), scales));
        } else {
            const __m256 scaled = _mm256_mul_ps(_mm256_cvtepi32_ps(load8<kCodec>(codes)), scales);
            _mm256_storeu_ps(values + i, _mm256_add_ps(scaled, _mm256_loadu_ps(zero + i)));
        }
    }
    if (i < n) {
        codec_rows_scalar(kCodec).decode(codes, scale + i, zero + i, n - i, values + i);
    }
}

template <Codec kCodec>
LOCALCTX_AVX2 inline __m256i floats_to_fp8(__m256 values) {
    using Format = Fp8<kCodec>;
    constexpr int kDropped = 23 - Format::kFractionBits;
    const __m256 sign_bit = _mm256_set1_ps(-0.0F), largest = _mm256_set1_ps(Format::kLargest);
    const __m256 magnitude = _mm256_min_ps(_mm256_andnot_ps(sign_bit, values), largest);  // NaN: the largest
    const __m256i small = _mm256_cvtps_epi32(_mm256_mul_ps(magnitude, _mm256_set1_ps(Format::kSubnormalsPerOne)));
    const __m256i bits = _mm256_castps_si256(magnitude);
    const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, kDropped), _mm256_set1_epi32(1));
    const __m256i half = _mm256_set1_epi32((1 << (kDropped - 1)) - 1);
    const __m256i rounded = _mm256_srli_epi32(_mm256_add_epi32(_mm256_add_epi32(bits, half), odd), kDropped);
    constexpr int kBiases = static_cast<int>((127U - Format::kBias) << Format::kFractionBits);
    const __m256i normal = _mm256_sub_epi32(rounded, _mm256_set1_epi32(kBiases));
    const __m256 is_small = _mm256_cmp_ps(magnitude, _mm256_set1_ps(Format::kSmallestNormal), _CMP_LT_OQ);
    const __m256i code = _mm256_blendv_epi8(normal, small, _mm256_castps_si256(is_small));
    const __m256i sign = _mm256_and_si256(_mm256_castps_si256(values), _mm256_castps_si256(sign_bit));
    return _mm256_or_si256(code, _mm256_srli_epi32(sign, 24));
}

// Eight lanes of at most 255 -> a byte each.
LOCALCTX_AVX2 inline std::uint64_t to_bytes(__m256i lanes) {
    const __m128i words = _mm_packus_epi32(_mm256_castsi256_si128(lanes), _mm256_extracti128_si256(lanes, 1));
    return static_cast<std::uint64_t>(_mm_cvtsi128_si64(_mm_packus_epi16(words, words)));
}

template <Codec kCodec>
LOCALCTX_AVX2 void encode_avx2(const float *values, const float *inverse, const float *zero, std::size_t n,
                               std::uint8_t *codes) {
    std::size_t i = 0;
    for (; i + kUnit <= n; i += kUnit, codes += kBits<kCodec>) {
        const __m256 value = _mm256_loadu_ps(values + i), factor = _mm256_loadu_ps(inverse + i);
        if constexpr (kIsFp8<kCodec>) {
            store_unit<kCodec>(to_bytes(floats_to_fp8<kCodec>(_mm256_mul_ps(value, factor))), codes);
        } else {
            const __m256 scaled = _mm256_mul_ps(_mm256_sub_ps(value, _mm256_loadu_ps(zero + i)), factor);
            const __m256 positive = _mm256_max_ps(scaled, _mm256_setzero_ps());  // NaN too becomes 0
            const __m256 within = _mm256_min_ps(positive, _mm256_set1_ps(static_cast<float>(kMask<kCodec>)));
            store_unit<kCodec>(to_bytes(_mm256_cvtps_epi32(within)), codes);
        }
    }
    if (i < n) {
        codec_rows_scalar(kCodec).encode(values + i, inverse + i, zero + i, n - i, codes);
    }
}

template <Codec kCodec>
constexpr CodecRows kAvx2 = {decode_avx2<kCodec>, encode_avx2<kCodec>};

}  // namespace

CodecRows codec_rows_avx2(Codec codec) {
    switch (codec) {
        case Codec::fp8_e4m3: return kAvx2<Codec::fp8_e4m3>;
        case Codec::fp8_e5m2: return kAvx2<Codec::fp8_e5m2>;
        case Codec::int8: return kAvx2<Codec::int8>;
        case Codec::int4: return kAvx2<Codec::int4>;
        case Codec::int3: return kAvx2<Codec::int3>;
        default: return kAvx2<Codec::int2>;
    }
}

}  // namespace localctx
#endif

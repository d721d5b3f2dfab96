#include "half.h"

#include <cstring>

#include "intrinsics.h"

namespace localctx {
namespace {

constexpr std::uint32_t kQuiet = 0x00400000;  // what every processor sets when it converts a signalling NaN

std::uint32_t bits_of(float value) {
    std::uint32_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    return bits;
}

float float_of(std::uint32_t bits) {
    float value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
}

void to_floats_scalar(const std::uint16_t *in, float *out, std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) {
        out[i] = half_to_float(in[i]);
    }
}

void to_halves_scalar(const float *in, std::uint16_t *out, std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) {
        out[i] = float_to_half(in[i]);
    }
}

#if defined(__x86_64__)

__attribute__((target("avx2,f16c"))) void to_floats_avx2(const std::uint16_t *in, float *out, std::size_t n) {
    std::size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        const __m128i halves = _mm_loadu_si128(reinterpret_cast<const __m128i *>(in + i));
        _mm256_storeu_ps(out + i, _mm256_cvtph_ps(halves));
    }
    to_floats_scalar(in + i, out + i, n - i);
}

__attribute__((target("avx2,f16c"))) void to_halves_avx2(const float *in, std::uint16_t *out, std::size_t n) {
    std::size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        const __m128i halves = _mm256_cvtps_ph(_mm256_loadu_ps(in + i), _MM_FROUND_TO_NEAREST_INT);
        _mm_storeu_si128(reinterpret_cast<__m128i *>(out + i), halves);
    }
    to_halves_scalar(in + i, out + i, n - i);
}

__attribute__((target("avx512f"))) void to_floats_avx512(const std::uint16_t *in, float *out, std::size_t n) {
    std::size_t i = 0;
    for (; i + 16 <= n; i += 16) {
        const __m256i halves = _mm256_loadu_si256(reinterpret_cast<const __m256i *>(in + i));
        _mm512_storeu_ps(out + i, _mm512_cvtph_ps(halves));
    }
    to_floats_scalar(in + i, out + i, n - i);
}

__attribute__((target("avx512f"))) void to_halves_avx512(const float *in, std::uint16_t *out, std::size_t n) {
    std::size_t i = 0;
    for (; i + 16 <= n; i += 16) {
        const __m256i halves = _mm512_cvtps_ph(_mm512_loadu_ps(in + i), _MM_FROUND_TO_NEAREST_INT);
        _mm256_storeu_si256(reinterpret_cast<__m256i *>(out + i), halves);
    }
    to_halves_scalar(in + i, out + i, n - i);
}

#elif defined(__aarch64__)

void to_floats_neon(const std::uint16_t *in, float *out, std::size_t n) {
    std::size_t i = 0;
    for (; i + 4 <= n; i += 4) {
        vst1q_f32(out + i, vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(in + i))));
    }
    to_floats_scalar(in + i, out + i, n - i);
}

void to_halves_neon(const float *in, std::uint16_t *out, std::size_t n) {
    std::size_t i = 0;
    for (; i + 4 <= n; i += 4) {
        vst1_u16(out + i, vreinterpret_u16_f16(vcvt_f16_f32(vld1q_f32(in + i))));
    }
    to_halves_scalar(in + i, out + i, n - i);
}

#endif

}  // namespace

float half_to_float(std::uint16_t value) {
    const std::uint32_t sign = static_cast<std::uint32_t>(value & 0x8000U) << 16;
    const std::uint32_t exponent = (value >> 10) & 0x1FU;
    const std::uint32_t fraction = value & 0x3FFU;
    if (exponent == 0) {  // zero or subnormal: fraction * 2^-24 is exact
        const float magnitude = static_cast<float>(fraction) * 0x1p-24F;
        return float_of(sign | bits_of(magnitude));
    }
    if (exponent == 0x1F) {
        return float_of(sign | 0x7F800000U | (fraction << 13) | (fraction != 0 ? kQuiet : 0));
    }
    return float_of(sign | ((exponent + 112) << 23) | (fraction << 13));
}

std::uint16_t float_to_half(float value) {
    const std::uint32_t bits = bits_of(value);
    const std::uint32_t sign = (bits >> 16) & 0x8000U;
    const std::uint32_t magnitude = bits & 0x7FFFFFFFU;
    std::uint32_t half;
    if (magnitude > 0x7F800000U) {
        half = 0x7E00U | ((magnitude >> 13) & 0x3FFU);
    } else if (magnitude >= 0x477FF000U) {  // from 65520 on, the nearest is infinity
        half = 0x7C00U;
    } else if (magnitude < 0x38800000U) {  // below 2^-14: adding 0.5 leaves units of 2^-24, rounded to even
        half = bits_of(float_of(magnitude) + 0.5F) - bits_of(0.5F);
    } else {
        const std::uint32_t to_even = (magnitude >> 13) & 1U;
        half = (magnitude - (112U << 23) + 0xFFFU + to_even) >> 13;
    }
    return static_cast<std::uint16_t>(sign | half);
}

void halves_to_floats(const std::uint16_t *in, float *out, std::size_t n) {
    switch (simd()) {
#if defined(__x86_64__)
        case Simd::avx512: return to_floats_avx512(in, out, n);
        case Simd::avx2: return to_floats_avx2(in, out, n);
#elif defined(__aarch64__)
        case Simd::neon: return to_floats_neon(in, out, n);
#endif
        default: return to_floats_scalar(in, out, n);
    }
}

void floats_to_halves(const float *in, std::uint16_t *out, std::size_t n) {
    switch (simd()) {
#if defined(__x86_64__)
        case Simd::avx512: return to_halves_avx512(in, out, n);
        case Simd::avx2: return to_halves_avx2(in, out, n);
#elif defined(__aarch64__)
        case Simd::neon: return to_halves_neon(in, out, n);
#endif
        default: return to_halves_scalar(in, out, n);
    }
}

}  // namespace localctx

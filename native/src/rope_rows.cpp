#include "rope_rows.h"

#include <algorithm>

#include "half.h"
#include "intrinsics.h"

namespace localctx {
namespace {

// Where the two values of a pair stand within their head.
struct Places {
    Places(const RowTurn &by, std::size_t pair)
        : first(by.neox ? pair : 2 * pair), second(by.neox ? pair + by.n_pairs : 2 * pair + 1) {}
    std::size_t first, second;
};

void copy_rest(const RowTurn &by, const std::uint16_t *in, std::uint16_t *out) {
    std::copy(in + 2 * by.n_pairs, in + by.head_dim, out + 2 * by.n_pairs);
}

}  // namespace

void turn_pairs(const RowTurn &by, std::size_t from, float *head) {
    for (std::size_t pair = from; pair < by.n_pairs; ++pair) {
        const Places at(by, pair);
        const float a = head[at.first], b = head[at.second];
        head[at.first] = a * by.cos[pair] - b * by.sin[pair];
        head[at.second] = b * by.cos[pair] + a * by.sin[pair];
    }
}

void turn_pairs(const RowTurn &by, std::size_t from, const std::uint16_t *in, std::uint16_t *out) {
    for (std::size_t pair = from; pair < by.n_pairs; ++pair) {
        const Places at(by, pair);
        const float a = half_to_float(in[at.first]), b = half_to_float(in[at.second]);
        out[at.first] = float_to_half(a * by.cos[pair] - b * by.sin[pair]);
        out[at.second] = float_to_half(b * by.cos[pair] + a * by.sin[pair]);
    }
}

void turn_floats_scalar(const RowTurn &by, float *values, std::size_t n_elements) {
    for (float *head = values; head != values + n_elements; head += by.head_dim) {
        turn_pairs(by, 0, head);
    }
}

void turn_halves_scalar(const RowTurn &by, const std::uint16_t *in, std::uint16_t *out, std::size_t n_elements) {
    for (std::size_t at = 0; at < n_elements; at += by.head_dim) {
        turn_pairs(by, 0, in + at, out + at);
        copy_rest(by, in + at, out + at);
    }
}

#if defined(__x86_64__)
#define LOCALCTX_AVX2 __attribute__((target("avx2,f16c")))
#define LOCALCTX_AVX512 __attribute__((target("avx512f,avx512dq")))
namespace {

// Eight values of f32 or f16, in and out.
LOCALCTX_AVX2 inline __m256 load8(const float *at) { return _mm256_loadu_ps(at); }
LOCALCTX_AVX2 inline __m256 load8(const std::uint16_t *at) {
    return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i *>(at)));
}
LOCALCTX_AVX2 inline void store8(float *at, __m256 values) { _mm256_storeu_ps(at, values); }
LOCALCTX_AVX2 inline void store8(std::uint16_t *at, __m256 values) {
    _mm_storeu_si128(reinterpret_cast<__m128i *>(at), _mm256_cvtps_ph(values, _MM_FROUND_TO_NEAREST_INT));
}

// Four factors, each twice.
LOCALCTX_AVX2 inline __m256 twice4(const float *at) {
    const __m128 four = _mm_loadu_ps(at);
    return _mm256_set_m128(_mm_unpackhi_ps(four, four), _mm_unpacklo_ps(four, four));
}

// The pairs of one head that fill whole registers; returns how many.
template <typename In, typename Out>
LOCALCTX_AVX2 inline std::size_t turn_head_avx2(const RowTurn &by, const In *in, Out *out) {
    std::size_t pair = 0;
    if (by.neox) {
        for (; pair + 8 <= by.n_pairs; pair += 8) {
            const __m256 cos = _mm256_loadu_ps(by.cos + pair), sin = _mm256_loadu_ps(by.sin + pair);
            const __m256 a = load8(in + pair), b = load8(in + pair + by.n_pairs);
            store8(out + pair, _mm256_sub_ps(_mm256_mul_ps(a, cos), _mm256_mul_ps(b, sin)));
            store8(out + pair + by.n_pairs, _mm256_add_ps(_mm256_mul_ps(b, cos), _mm256_mul_ps(a, sin)));
        }
        return pair;
    }
    for (; pair + 4 <= by.n_pairs; pair += 4) {
        const __m256 cos = twice4(by.cos + pair), sin = twice4(by.sin + pair);
        const __m256 ab = load8(in + 2 * pair), ba = _mm256_permute_ps(ab, 0xB1);
        store8(out + 2 * pair, _mm256_addsub_ps(_mm256_mul_ps(ab, cos), _mm256_mul_ps(ba, sin)));
    }
    return pair;
}

LOCALCTX_AVX512 inline __m512 load16(const float *at) { return _mm512_loadu_ps(at); }
LOCALCTX_AVX512 inline __m512 load16(const std::uint16_t *at) {
    return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i *>(at)));
}
LOCALCTX_AVX512 inline void store16(float *at, __m512 values) { _mm512_storeu_ps(at, values); }
LOCALCTX_AVX512 inline void store16(std::uint16_t *at, __m512 values) {
    _mm256_storeu_si256(reinterpret_cast<__m256i *>(at), _mm512_cvtps_ph(values, _MM_FROUND_TO_NEAREST_INT));
}

LOCALCTX_AVX512 inline __m512 twice8(const float *at) {
    const __m512i each_twice = _mm512_set_epi32(7, 7, 6, 6, 5, 5, 4, 4, 3, 3, 2, 2, 1, 1, 0, 0);
    return _mm512_permutexvar_ps(each_twice, _mm512_castps256_ps512(_mm256_loadu_ps(at)));
}

template <typename In, typename Out>
LOCALCTX_AVX512 inline std::size_t turn_head_avx512(const RowTurn &by, const In *in, Out *out) {
    std::size_t pair = 0;
    if (by.neox) {
        for (; pair + 16 <= by.n_pairs; pair += 16) {
            const __m512 cos = _mm512_loadu_ps(by.cos + pair), sin = _mm512_loadu_ps(by.sin + pair);
            const __m512 a = load16(in + pair), b = load16(in + pair + by.n_pairs);
            store16(out + pair, _mm512_sub_ps(_mm512_mul_ps(a, cos), _mm512_mul_ps(b, sin)));
            store16(out + pair + by.n_pairs, _mm512_add_ps(_mm512_mul_ps(b, cos), _mm512_mul_ps(a, sin)));
        }
        return pair;
    }
    const __m512 even_negative = _mm512_castsi512_ps(_mm512_set1_epi64(0x80000000));
    for (; pair + 8 <= by.n_pairs; pair += 8) {
        const __m512 cos = twice8(by.cos + pair), sin = twice8(by.sin + pair);
        const __m512 ab = load16(in + 2 * pair), ba = _mm512_permute_ps(ab, 0xB1);
        const __m512 cross = _mm512_xor_ps(_mm512_mul_ps(ba, sin), even_negative);
        store16(out + 2 * pair, _mm512_add_ps(_mm512_mul_ps(ab, cos), cross));
    }
    return pair;
}

}  // namespace

LOCALCTX_AVX2 void turn_floats_avx2(const RowTurn &by, float *values, std::size_t n_elements) {
    for (float *head = values; head != values + n_elements; head += by.head_dim) {
        turn_pairs(by, turn_head_avx2(by, head, head), head);
    }
}

LOCALCTX_AVX2 void turn_halves_avx2(const RowTurn &by, const std::uint16_t *in, std::uint16_t *out,
                                    std::size_t n_elements) {
    for (std::size_t at = 0; at < n_elements; at += by.head_dim) {
        turn_pairs(by, turn_head_avx2(by, in + at, out + at), in + at, out + at);
        copy_rest(by, in + at, out + at);
    }
}

LOCALCTX_AVX512 void turn_floats_avx512(const RowTurn &by, float *values, std::size_t n_elements) {
    for (float *head = values; head != values + n_elements; head += by.head_dim) {
        turn_pairs(by, turn_head_avx512(by, head, head), head);
    }
}

LOCALCTX_AVX512 void turn_halves_avx512(const RowTurn &by, const std::uint16_t *in, std::uint16_t *out,
                                        std::size_t n_elements) {
    for (std::size_t at = 0; at < n_elements; at += by.head_dim) {
        turn_pairs(by, turn_head_avx512(by, in + at, out + at), in + at, out + at);
        copy_rest(by, in + at, out + at);
    }
}

#elif defined(__aarch64__)
namespace {

inline float32x4_t load4(const float *at) { return vld1q_f32(at); }
inline float32x4_t load4(const std::uint16_t *at) { return vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(at))); }
inline void store4(float *at, float32x4_t values) { vst1q_f32(at, values); }
inline void store4(std::uint16_t *at, float32x4_t values) {
    vst1_u16(at, vreinterpret_u16_f16(vcvt_f16_f32(values)));
}

template <typename In, typename Out>
inline std::size_t turn_head_neon(const RowTurn &by, const In *in, Out *out) {
    std::size_t pair = 0;
    for (; pair + 4 <= by.n_pairs; pair += 4) {
        const std::size_t at = by.neox ? pair : 2 * pair, other = by.neox ? pair + by.n_pairs : at + 4;
        const float32x4_t cos = vld1q_f32(by.cos + pair), sin = vld1q_f32(by.sin + pair);
        const float32x4_t low = load4(in + at), high = load4(in + other);
        const float32x4_t a = by.neox ? low : vuzp1q_f32(low, high);
        const float32x4_t b = by.neox ? high : vuzp2q_f32(low, high);
        const float32x4_t c = vsubq_f32(vmulq_f32(a, cos), vmulq_f32(b, sin));
        const float32x4_t d = vaddq_f32(vmulq_f32(b, cos), vmulq_f32(a, sin));
        store4(out + at, by.neox ? c : vzip1q_f32(c, d));
        store4(out + other, by.neox ? d : vzip2q_f32(c, d));
    }
    return pair;
}

}  // namespace

void turn_floats_neon(const RowTurn &by, float *values, std::size_t n_elements) {
    for (float *head = values; head != values + n_elements; head += by.head_dim) {
        turn_pairs(by, turn_head_neon(by, head, head), head);
    }
}

void turn_halves_neon(const RowTurn &by, const std::uint16_t *in, std::uint16_t *out, std::size_t n_elements) {
    for (std::size_t at = 0; at < n_elements; at += by.head_dim) {
        turn_pairs(by, turn_head_neon(by, in + at, out + at), in + at, out + at);
        copy_rest(by, in + at, out + at);
    }
}

#endif

}  // namespace localctx

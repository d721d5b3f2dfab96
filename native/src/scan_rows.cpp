#include "scan_rows.h"

#include <algorithm>

#include "half.h"
#include "intrinsics.h"

namespace localctx {
namespace {

void scan_scalar(const ScanColumn &column, std::size_t first, std::size_t last, const std::int16_t *group,
                 float *best) {
    const std::size_t group_head = n_chunks(column.head_dim) * kGroupQueries * kChunk;
    for (std::size_t row = first * column.n_heads; row < last * column.n_heads; ++row) {
        const std::int8_t *const key = column.codes + row * column.head_dim;
        const std::size_t head = row % column.n_heads;
        for (std::size_t query = 0; query < kGroupQueries; ++query) {
            std::int32_t sum = 0;
            for (std::size_t i = 0; i < column.head_dim; ++i) {
                const std::size_t at = (i / kChunk * kGroupQueries + query) * kChunk + i % kChunk;
                sum += key[i] * group[head * group_head + at];
            }
            float &now = best[head * kGroupQueries + query];
            now = std::max(now, static_cast<float>(sum) * column.scales[row]);
        }
    }
}

#if defined(__x86_64__)
#define LOCALCTX_AVX2 __attribute__((target("avx2")))

// The sums of eight registers of eight, in order.
LOCALCTX_AVX2 inline __m256i sums(const __m256i *of) {
    const __m256i low = _mm256_hadd_epi32(_mm256_hadd_epi32(of[0], of[1]), _mm256_hadd_epi32(of[2], of[3]));
    const __m256i high = _mm256_hadd_epi32(_mm256_hadd_epi32(of[4], of[5]), _mm256_hadd_epi32(of[6], of[7]));
    return _mm256_add_epi32(_mm256_permute2x128_si256(low, high, 0x20), _mm256_permute2x128_si256(low, high, 0x31));
}

template <std::size_t n_queries>
LOCALCTX_AVX2 void scan_avx2(const ScanColumn &column, std::size_t first, std::size_t last,
                             const std::int16_t *group, float *best) {
    const std::int8_t *key = column.codes + first * column.n_heads * column.head_dim;
    const float *scale = column.scales + first * column.n_heads;
    for (std::size_t token = first; token < last; ++token) {
        const auto *queries = reinterpret_cast<const __m256i *>(group);
        for (std::size_t head = 0; head < column.n_heads; ++head, ++scale) {
            __m256i sum[kGroupQueries] = {};
            for (std::size_t i = 0; i < column.head_dim; i += kChunk, key += kChunk, queries += kGroupQueries) {
                const __m256i codes = _mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i *>(key)));
                for (std::size_t query = 0; query < n_queries; ++query) {
                    const __m256i products = _mm256_madd_epi16(codes, _mm256_loadu_si256(queries + query));
                    sum[query] = _mm256_add_epi32(sum[query], products);
                }
            }
            const __m256 scores = _mm256_mul_ps(_mm256_cvtepi32_ps(sums(sum)), _mm256_set1_ps(*scale));
            float *const now = best + head * kGroupQueries;
            _mm256_storeu_ps(now, _mm256_max_ps(scores, _mm256_loadu_ps(now)));
        }
    }
}

constexpr ScanTokens kScanAvx2[kGroupQueries] = {scan_avx2<1>, scan_avx2<2>, scan_avx2<3>, scan_avx2<4>,
                                                 scan_avx2<5>, scan_avx2<6>, scan_avx2<7>, scan_avx2<8>};

#elif defined(__aarch64__)

template <std::size_t n_queries>
void scan_neon(const ScanColumn &column, std::size_t first, std::size_t last, const std::int16_t *group,
               float *best) {
    const std::int8_t *key = column.codes + first * column.n_heads * column.head_dim;
    const float *scale = column.scales + first * column.n_heads;
    for (std::size_t token = first; token < last; ++token) {
        const std::int16_t *queries = group;
        for (std::size_t head = 0; head < column.n_heads; ++head, ++scale) {
            int32x4_t sum[n_queries];
            std::fill_n(sum, n_queries, vdupq_n_s32(0));
            for (std::size_t i = 0; i < column.head_dim; i += kChunk, key += kChunk) {
                const int8x16_t codes = vld1q_s8(key);
                const int16x8_t low = vmovl_s8(vget_low_s8(codes)), high = vmovl_high_s8(codes);
                for (std::size_t query = 0; query < n_queries; ++query) {
                    const int16x8_t a = vld1q_s16(queries + query * kChunk);
                    const int16x8_t b = vld1q_s16(queries + query * kChunk + 8);
                    sum[query] = vmlal_s16(sum[query], vget_low_s16(low), vget_low_s16(a));
                    sum[query] = vmlal_high_s16(sum[query], low, a);
                    sum[query] = vmlal_s16(sum[query], vget_low_s16(high), vget_low_s16(b));
                    sum[query] = vmlal_high_s16(sum[query], high, b);
                }
                queries += kGroupQueries * kChunk;
            }
            for (std::size_t query = 0; query < n_queries; ++query) {
                float &now = best[head * kGroupQueries + query];
                now = std::max(now, static_cast<float>(vaddvq_s32(sum[query])) * *scale);
            }
        }
    }
}

constexpr ScanTokens kScanNeon[kGroupQueries] = {scan_neon<1>, scan_neon<2>, scan_neon<3>, scan_neon<4>,
                                                 scan_neon<5>, scan_neon<6>, scan_neon<7>, scan_neon<8>};

#endif

}  // namespace

ScanTokens scan_tokens(std::size_t head_dim, [[maybe_unused]] std::size_t n_queries) {
    if (head_dim % kChunk != 0) {
        return scan_scalar;
    }
    switch (simd()) {
#if defined(__x86_64__)
        case Simd::avx512:
        case Simd::avx2: return kScanAvx2[n_queries - 1];
#elif defined(__aarch64__)
        case Simd::neon: return kScanNeon[n_queries - 1];
#endif
        default: return scan_scalar;
    }
}

}  // namespace localctx

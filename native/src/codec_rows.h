// Rows of codes and of the f32 values they stand for, by each kind of instruction; all give the same bits.
// Internal to codec.
#pragma once

#include <cstddef>
#include <cstdint>

#include "codec.h"

namespace localctx {

// The two directions of one codec. Arrays hold n entries, one an element; fp8 has no zeros (not read).
struct CodecRows {
    // value = zero + scale * code
    void (*decode)(const std::uint8_t *codes, const float *scale, const float *zero, std::size_t n, float *values);
    // code = nearest to (value - zero) * inverse, ties to even, within the codec's range; NaN: any code
    void (*encode)(const float *values, const float *inverse, const float *zero, std::size_t n,
                   std::uint8_t *codes);
};

// Not for f16.
CodecRows codec_rows(Codec codec);  // the instructions of simd()
CodecRows codec_rows_scalar(Codec codec);
#if defined(__x86_64__)
CodecRows codec_rows_avx2(Codec codec);
#endif

// Lowers low[i] and raises high[i] to values[i]; NaN changes nothing.
void widen_bounds(const float *values, std::size_t n, float *low, float *high);
// The lowest and the highest of n values, NaN left out; infinity and -infinity for none.
struct Bounds {
    float low, high;
};
Bounds bounds_of(const float *values, std::size_t n);
// The largest |values[i] - decoded[i]|, NaN left out.
float largest_error(const float *values, const float *decoded, std::size_t n);
// Whether every value is a number within f16's range.
bool all_ordinary(const float *values, std::size_t n);

}  // namespace localctx

// IEEE binary16 and f32: single values and rows, with the instructions found at run time.
#pragma once

#include <cstddef>
#include <cstdint>

namespace localctx {

float half_to_float(std::uint16_t value);
std::uint16_t float_to_half(float value);  // round to nearest even; beyond the range: infinity
void halves_to_floats(const std::uint16_t *in, float *out, std::size_t n);
void floats_to_halves(const float *in, std::uint16_t *out, std::size_t n);

// "avx512", "avx2", "neon" or "scalar"; LOCALCTX_SIMD=scalar forces the last.
enum class Simd { scalar, neon, avx2, avx512 };
Simd simd();
const char *simd_name();

}  // namespace localctx

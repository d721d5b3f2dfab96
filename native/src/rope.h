// Rotary embedding of keys: tables of angles, and the turning of f16 rows. Maths in f32, angles from f64.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace localctx {

// Pair i of a head turns by position * frequencies[i]; lengths are multiplied by `magnitude`.
struct Rope {
    std::vector<double> frequencies;  // n_rot / 2
    std::uint32_t head_dim = 0;       // dimensions from n_rot on stay as they are
    bool neox = false;                // pairs (i, i + n_rot / 2), else (2i, 2i + 1)
    double magnitude = 1.0;

    std::size_t n_rot() const { return 2 * frequencies.size(); }
};

// The turn of each of n rows: cos and sin [n * n_pairs], magnitude included. Dimensions beyond n_rot are not
// turned, nor multiplied.
struct Turn {
    std::vector<float> cos, sin;
    std::size_t n_pairs = 0;
    std::uint32_t head_dim = 0;
    bool neox = false;
    bool identity = false;  // every angle 0 and magnitude 1: rows may be copied
};

// Turns by positions[i] (magnitude applied), n rows.
Turn turn_to(const Rope &rope, const std::int32_t *positions, std::size_t n);
// Turns back from positions[i] (magnitude taken out).
Turn turn_from(const Rope &rope, const std::int32_t *positions, std::size_t n);
// Turns from one set of positions to another (lengths kept).
Turn turn_between(const Rope &rope, const std::int32_t *from, const std::int32_t *to, std::size_t n);

// One row of n_elements (a multiple of head_dim) of f32 values is turned in place by row `row` of the turn.
void turn_row(const Turn &turn, std::size_t row, float *values, std::size_t n_elements);
// The same from f16 to f16.
void turn_row_f16(const Turn &turn, std::size_t row, const std::uint16_t *in, std::uint16_t *out,
                  std::size_t n_elements);

}  // namespace localctx

// One row turned by each kind of instruction; all give the same bits (no fused multiply-add). Internal to rope.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rope.h"

namespace localctx {

// The turn of one row: cos and sin [n_pairs].
struct RowTurn {
    RowTurn(const Turn &turn, std::size_t row)
        : cos(turn.cos.data() + row * turn.n_pairs),
          sin(turn.sin.data() + row * turn.n_pairs),
          n_pairs(turn.n_pairs),
          head_dim(turn.head_dim),
          neox(turn.neox) {}

    const float *cos, *sin;
    std::size_t n_pairs, head_dim;
    bool neox;
};

// Pairs [from, n_pairs) of one head; the other functions leave their last pairs to it.
void turn_pairs(const RowTurn &by, std::size_t from, float *head);
void turn_pairs(const RowTurn &by, std::size_t from, const std::uint16_t *in, std::uint16_t *out);

void turn_floats_scalar(const RowTurn &by, float *values, std::size_t n_elements);
void turn_halves_scalar(const RowTurn &by, const std::uint16_t *in, std::uint16_t *out, std::size_t n_elements);
#if defined(__x86_64__)
void turn_floats_avx2(const RowTurn &by, float *values, std::size_t n_elements);
void turn_halves_avx2(const RowTurn &by, const std::uint16_t *in, std::uint16_t *out, std::size_t n_elements);
void turn_floats_avx512(const RowTurn &by, float *values, std::size_t n_elements);
void turn_halves_avx512(const RowTurn &by, const std::uint16_t *in, std::uint16_t *out, std::size_t n_elements);
#elif defined(__aarch64__)
void turn_floats_neon(const RowTurn &by, float *values, std::size_t n_elements);
void turn_halves_neon(const RowTurn &by, const std::uint16_t *in, std::uint16_t *out, std::size_t n_elements);
#endif

}  // namespace localctx

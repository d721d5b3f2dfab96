#include "rope.h"

#include <algorithm>
#include <cmath>

#include "half.h"
#include "rope_rows.h"

namespace localctx {
namespace {

Turn empty_turn(const Rope &rope, std::size_t n) {
    Turn turn;
    turn.n_pairs = rope.frequencies.size();
    turn.head_dim = rope.head_dim;
    turn.neox = rope.neox;
    turn.cos.resize(n * turn.n_pairs);
    turn.sin.resize(n * turn.n_pairs);
    turn.identity = true;
    return turn;
}

// Row `row` turns by steps * frequencies; a row like the one before is copied.
void set_row(Turn &turn, const Rope &rope, std::size_t row, std::int64_t steps, bool as_before, double length) {
    const auto n_pairs = static_cast<std::ptrdiff_t>(turn.n_pairs);
    const auto cos = turn.cos.begin() + static_cast<std::ptrdiff_t>(row) * n_pairs;
    const auto sin = turn.sin.begin() + static_cast<std::ptrdiff_t>(row) * n_pairs;
    if (as_before) {
        std::copy(cos - n_pairs, cos, cos);
        std::copy(sin - n_pairs, sin, sin);
        return;
    }
    for (std::ptrdiff_t pair = 0; pair < n_pairs; ++pair) {
        const double angle = static_cast<double>(steps) * rope.frequencies[static_cast<std::size_t>(pair)];
        cos[pair] = static_cast<float>(length * std::cos(angle));
        sin[pair] = static_cast<float>(length * std::sin(angle));
    }
    turn.identity = turn.identity && steps == 0 && length == 1.0;
}

template <typename Steps>
Turn turn_by(const Rope &rope, std::size_t n, double length, const Steps &steps) {
    Turn turn = empty_turn(rope, n);
    for (std::size_t row = 0; row < n; ++row) {
        const bool as_before = row > 0 && steps(row) == steps(row - 1);
        set_row(turn, rope, row, steps(row), as_before, length);
    }
    return turn;
}

}  // namespace

Turn turn_to(const Rope &rope, const std::int32_t *positions, std::size_t n) {
    return turn_by(rope, n, rope.magnitude, [=](std::size_t row) { return std::int64_t{positions[row]}; });
}

Turn turn_from(const Rope &rope, const std::int32_t *positions, std::size_t n) {
    return turn_by(rope, n, 1.0 / rope.magnitude,
                   [=](std::size_t row) { return -std::int64_t{positions[row]}; });
}

Turn turn_between(const Rope &rope, const std::int32_t *from, const std::int32_t *to, std::size_t n) {
    return turn_by(rope, n, 1.0,
                   [=](std::size_t row) { return std::int64_t{to[row]} - std::int64_t{from[row]}; });
}

void turn_row(const Turn &turn, std::size_t row, float *values, std::size_t n_elements) {
    if (turn.identity) {
        return;
    }
    const RowTurn by(turn, row);
    switch (simd()) {
#if defined(__x86_64__)
        case Simd::avx512: return turn_floats_avx512(by, values, n_elements);
        case Simd::avx2: return turn_floats_avx2(by, values, n_elements);
#elif defined(__aarch64__)
        case Simd::neon: return turn_floats_neon(by, values, n_elements);
#endif
        default: return turn_floats_scalar(by, values, n_elements);
    }
}

void turn_row_f16(const Turn &turn, std::size_t row, const std::uint16_t *in, std::uint16_t *out,
                  std::size_t n_elements) {
    if (turn.identity) {
        std::copy(in, in + n_elements, out);
        return;
    }
    const RowTurn by(turn, row);
    switch (simd()) {
#if defined(__x86_64__)
        case Simd::avx512: return turn_halves_avx512(by, in, out, n_elements);
        case Simd::avx2: return turn_halves_avx2(by, in, out, n_elements);
#elif defined(__aarch64__)
        case Simd::neon: return turn_halves_neon(by, in, out, n_elements);
#endif
        default: return turn_halves_scalar(by, in, out, n_elements);
    }
}

}  // namespace localctx

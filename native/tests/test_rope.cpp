#include "rope.h"

#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "check.h"
#include "half.h"

using localctx::Rope;
using localctx::Turn;

namespace {

Rope make_rope(std::size_t n_rot, std::uint32_t head_dim, bool neox, double magnitude = 1.0) {
    Rope rope;
    for (std::size_t pair = 0; pair < n_rot / 2; ++pair) {
        rope.frequencies.push_back(std::pow(10000.0, -2.0 * static_cast<double>(pair) / static_cast<double>(n_rot)));
    }
    rope.head_dim = head_dim;
    rope.neox = neox;
    rope.magnitude = magnitude;
    return rope;
}

std::vector<float> random_row(std::size_t n, unsigned seed) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal(0.0F, 2.0F);
    std::vector<float> row(n);
    for (float &value : row) {
        value = normal(random);
    }
    return row;
}

bool same_bits(const std::vector<float> &a, const std::vector<float> &b) {
    return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

// The definition, one value after the other; the f32 operations and their order are part of it.
std::vector<float> expected_row(const Rope &rope, std::int32_t position, const std::vector<float> &row) {
    std::vector<float> out = row;
    const std::size_t n_pairs = rope.frequencies.size();
    for (std::size_t head = 0; head < row.size(); head += rope.head_dim) {
        for (std::size_t pair = 0; pair < n_pairs; ++pair) {
            const double angle = position * rope.frequencies[pair];
            const auto cos = static_cast<float>(rope.magnitude * std::cos(angle));
            const auto sin = static_cast<float>(rope.magnitude * std::sin(angle));
            const std::size_t first = head + (rope.neox ? pair : 2 * pair);
            const std::size_t second = head + (rope.neox ? pair + n_pairs : 2 * pair + 1);
            const float ac = row[first] * cos, bs = row[second] * sin;
            const float bc = row[second] * cos, as = row[first] * sin;
            out[first] = ac - bs;
            out[second] = bc + as;
        }
    }
    return out;
}

void check_rows(const Rope &rope, std::size_t n_heads, unsigned seed) {
    const std::vector<std::int32_t> positions{0, 1, 7, 7, 131'071, 1'000'000};
    const Turn turn = localctx::turn_to(rope, positions.data(), positions.size());
    for (std::size_t row = 0; row < positions.size(); ++row) {
        std::vector<float> values = random_row(n_heads * rope.head_dim, seed + static_cast<unsigned>(row));
        std::vector<std::uint16_t> halves(values.size()), turned(values.size());
        localctx::floats_to_halves(values.data(), halves.data(), values.size());
        localctx::halves_to_floats(halves.data(), values.data(), values.size());
        const std::vector<float> expected = expected_row(rope, positions[row], values);
        localctx::turn_row_f16(turn, row, halves.data(), turned.data(), turned.size());
        localctx::turn_row(turn, row, values.data(), values.size());
        CHECK(same_bits(values, expected));
        for (std::size_t i = 0; i < turned.size(); ++i) {
            CHECK(turned[i] == localctx::float_to_half(expected[i]));
        }
    }
}

// Every kind of instruction, forced by LOCALCTX_SIMD from outside, gives the bits of the definition.
void test_rows_are_turned_by_the_definition() {
    unsigned seed = 1;
    for (const bool neox : {false, true}) {
        for (const std::uint32_t head_dim : {2U, 6U, 16U, 40U, 64U, 80U, 128U, 256U}) {
            check_rows(make_rope(head_dim, head_dim, neox), 3, seed += 100);
            check_rows(make_rope(head_dim / 4 * 2, head_dim, neox, 1.1386), 2, seed += 100);  // partial
        }
    }
}

void test_turning_back_undoes_magnitude_too() {
    const Rope rope = make_rope(64, 80, true, 1.25);
    const std::int32_t position = 4321;
    const std::vector<float> row = random_row(160, 5);
    std::vector<float> there = row;
    localctx::turn_row(localctx::turn_to(rope, &position, 1), 0, there.data(), there.size());
    localctx::turn_row(localctx::turn_from(rope, &position, 1), 0, there.data(), there.size());
    for (std::size_t i = 0; i < row.size(); ++i) {
        CHECK(std::fabs(there[i] - row[i]) < 2e-6F);
    }
}

void test_between_positions_lengths_are_kept() {
    const Rope rope = make_rope(64, 64, false, 1.25);
    const std::int32_t from[] = {100, 101, 50}, to[] = {7, 8, 50};
    const Turn turn = localctx::turn_between(rope, from, to, 3);
    CHECK(!turn.identity);
    for (std::size_t row = 0; row < 3; ++row) {
        const std::vector<float> plain = random_row(64, 9);
        std::vector<float> moved = plain, expected = plain;
        localctx::turn_row(localctx::turn_to(rope, &from[row], 1), 0, moved.data(), moved.size());
        localctx::turn_row(turn, row, moved.data(), moved.size());
        localctx::turn_row(localctx::turn_to(rope, &to[row], 1), 0, expected.data(), expected.size());
        for (std::size_t i = 0; i < plain.size(); ++i) {
            CHECK(std::fabs(moved[i] - expected[i]) < 2e-6F);
        }
    }
}

void test_no_turn_is_a_copy_of_every_pattern() {
    const Rope rope = make_rope(16, 16, true, 1.25);
    const std::int32_t positions[] = {3, 9};
    const Turn turn = localctx::turn_between(rope, positions, positions, 2);
    CHECK(turn.identity);
    std::vector<std::uint16_t> in(0x10000), out(in.size());
    for (std::size_t i = 0; i < in.size(); ++i) {
        in[i] = static_cast<std::uint16_t>(i);  // signalling NaNs too
    }
    localctx::turn_row_f16(turn, 1, in.data(), out.data(), in.size());
    CHECK(in == out);
    const std::int32_t zero = 0;
    CHECK(!localctx::turn_to(rope, &zero, 1).identity);  // the magnitude is still to be applied
}

}  // namespace

int main() {
    test_rows_are_turned_by_the_definition();
    test_turning_back_undoes_magnitude_too();
    test_between_positions_lengths_are_kept();
    test_no_turn_is_a_copy_of_every_pattern();
    return n_failed != 0;
}

#include "half.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "check.h"

using localctx::float_to_half;
using localctx::half_to_float;

namespace {

std::uint32_t bits_of(float value) {
    std::uint32_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    return bits;
}

// By the definition of binary16, in f64.
double meaning(std::uint16_t half) {
    const int exponent = (half >> 10) & 0x1F, fraction = half & 0x3FF;
    const double magnitude =
        exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25);
    return (half & 0x8000) != 0 ? -magnitude : magnitude;
}

bool is_finite(std::uint16_t half) { return (half & 0x7C00) != 0x7C00; }

void test_every_half_has_its_value_and_comes_back() {
    for (unsigned bits = 0; bits < 0x10000; ++bits) {
        const auto half = static_cast<std::uint16_t>(bits);
        const float value = half_to_float(half);
        if (is_finite(half)) {
            CHECK(static_cast<double>(value) == meaning(half) && float_to_half(value) == half);
        } else if ((half & 0x3FF) == 0) {
            CHECK(std::isinf(value) && float_to_half(value) == half);
        } else {
            CHECK(std::isnan(value) && float_to_half(value) == (half | 0x200));
        }
    }
}

void test_between_two_halves_the_nearest_is_taken_and_the_even_one_of_a_tie() {
    for (unsigned bits = 0; bits < 0x7BFF; ++bits) {
        const auto low = static_cast<std::uint16_t>(bits), high = static_cast<std::uint16_t>(bits + 1);
        const float middle = static_cast<float>((meaning(low) + meaning(high)) / 2);  // exact in f32
        const std::uint16_t even = (low & 1) == 0 ? low : high;
        CHECK(float_to_half(middle) == even && float_to_half(-middle) == (even | 0x8000));
        CHECK(float_to_half(std::nextafter(middle, 0.0F)) == low);
        CHECK(float_to_half(std::nextafter(middle, 1e9F)) == high);
    }
}

void test_what_is_too_large_becomes_infinity() {
    CHECK(float_to_half(65519.996F) == 0x7BFF && float_to_half(65520.0F) == 0x7C00);
    CHECK(float_to_half(-1e30F) == 0xFC00 && float_to_half(std::numeric_limits<float>::max()) == 0x7C00);
    CHECK(float_to_half(0x1p-26F) == 0 && float_to_half(-0x1p-149F) == 0x8000);
}

// Lengths that leave every remainder, starts that are not aligned.
void test_rows_are_as_single_values() {
    std::vector<std::uint16_t> halves(0x10000 + 40);
    for (std::size_t i = 0; i < halves.size(); ++i) {
        halves[i] = static_cast<std::uint16_t>(i * 40503U);
    }
    std::vector<float> floats(halves.size());
    std::vector<std::uint16_t> back(halves.size());
    for (std::size_t n = halves.size() - 40; n <= halves.size(); ++n) {
        const std::size_t skip = halves.size() - n;
        localctx::halves_to_floats(halves.data() + skip, floats.data(), n - skip);
        localctx::floats_to_halves(floats.data(), back.data() + skip, n - skip);
        for (std::size_t i = n < halves.size() ? n - skip - 40 : 0; i < n - skip; ++i) {
            const float expected = half_to_float(halves[skip + i]);
            CHECK(bits_of(floats[i]) == bits_of(expected) && back[skip + i] == float_to_half(expected));
        }
    }
}

void test_rows_round_as_single_values() {
    std::vector<float> floats;
    for (std::uint64_t bits = 0; bits <= 0xFFFFFFFF; bits += 65'521) {  // a prime: all patterns of low bits
        const auto pattern = static_cast<std::uint32_t>(bits);
        float value;
        std::memcpy(&value, &pattern, sizeof value);
        floats.push_back(value);
    }
    std::vector<std::uint16_t> halves(floats.size());
    localctx::floats_to_halves(floats.data(), halves.data(), floats.size());
    for (std::size_t i = 0; i < floats.size(); ++i) {
        CHECK(halves[i] == float_to_half(floats[i]));
    }
}

}  // namespace

int main() {
    test_every_half_has_its_value_and_comes_back();
    test_between_two_halves_the_nearest_is_taken_and_the_even_one_of_a_tie();
    test_what_is_too_large_becomes_infinity();
    test_rows_are_as_single_values();
    test_rows_round_as_single_values();
    return n_failed != 0;
}

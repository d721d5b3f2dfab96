#include "compose.h"

#include <cmath>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

#include "check.h"
#include "half.h"
#include "state_bytes.h"

using localctx::ComposePart;
using localctx::Rope;
using localctx::State;

namespace {

Rope make_rope(double magnitude = 1.0) {
    Rope rope;
    rope.frequencies = {1.0, 0.25};
    rope.head_dim = 4;
    rope.magnitude = magnitude;
    return rope;
}

AttentionForm form_of(std::vector<std::int32_t> positions) {
    AttentionForm form;
    form.positions = std::move(positions);
    return form;
}

std::vector<std::int32_t> counting(std::size_t n, std::int32_t from) {
    std::vector<std::int32_t> positions(n);
    std::iota(positions.begin(), positions.end(), from);
    return positions;
}

// Keys at rest: un-rotated, unscaled, all 1.
class Ones final : public localctx::KVSource {
  public:
    explicit Ones(std::size_t n) : n_(n) { shape_.k_elements = shape_.v_elements = {8, 8}; }
    std::size_t n_tokens() const override { return n_; }
    const localctx::KVShape &shape() const override { return shape_; }
    const std::int32_t *positions() const override { return nullptr; }
    void write_keys(std::size_t layer, std::size_t, std::size_t n, const localctx::Turn &turn,
                    std::uint16_t *out) const override {
        for (std::size_t row = 0; row < n; ++row) {
            const std::vector<std::uint16_t> ones(shape_.k_elements[layer], 0x3C00);
            localctx::turn_row_f16(turn, row, ones.data(), out + row * ones.size(), ones.size());
        }
    }
    void write_values(std::size_t layer, std::size_t first, std::size_t n, std::uint16_t *out) const override {
        for (std::size_t row = 0; row < n; ++row) {
            for (std::size_t i = 0; i < shape_.v_elements[layer]; ++i) {
                *out++ = static_cast<std::uint16_t>(first + row);
            }
        }
    }

  private:
    std::size_t n_;
    localctx::KVShape shape_;
};

std::vector<std::uint8_t> composed(const State &like, const std::vector<ComposePart> &parts,
                                   const std::vector<std::int32_t> &positions, const Rope &rope = make_rope(),
                                   std::size_t n_threads = 0) {
    std::vector<std::uint8_t> out(localctx::composed_size(like, positions.size()));
    localctx::compose(like, parts, positions.data(), positions.size(), rope, out.data(), n_threads);
    return out;
}

std::string refusal(const State &like, const std::vector<ComposePart> &parts,
                    const std::vector<std::int32_t> &positions, const Rope &rope = make_rope()) {
    try {
        composed(like, parts, positions, rope);
        return "";
    } catch (const std::invalid_argument &error) {
        return error.what();
    }
}

void test_in_place_gives_the_same_bytes() {
    const Bytes blob = plain_blob(form_of(counting(300, 10)));
    const State state(blob.data.data(), blob.data.size());
    for (const std::size_t n_threads : {1U, 0U, 3U}) {
        const std::vector<ComposePart> parts{{&state, 0, 129}, {&state, 129, 0}, {&state, 129, 171}};
        CHECK(composed(state, parts, counting(300, 10), make_rope(1.25), n_threads) == blob.data);
    }
}

void test_moving_there_and_back_and_values_follow() {
    const Bytes blob = plain_blob(form_of({12, 10, 11, 400}));  // cell order is not position order
    const State state(blob.data.data(), blob.data.size());
    const std::vector<std::int32_t> positions{5, 6, 9, 10};
    const auto out = composed(state, {{&state, 1, 3}, {&state, 0, 1}}, positions, make_rope(1.25));
    const State moved(out.data(), out.size());
    CHECK(std::vector<std::int32_t>(moved.positions(), moved.positions() + 4) == positions);
    std::vector<std::uint16_t> values(8);
    moved.write_values(1, 2, 1, values.data());
    CHECK(values[3] == pattern(1, 400, 3, false));
    const auto back = composed(state, {{&moved, 3, 1}, {&moved, 0, 3}}, {10, 11, 12, 400}, make_rope(1.25));
    const State again(back.data(), back.size());
    localctx::Turn identity;
    identity.identity = true;
    std::vector<std::uint16_t> keys(4 * 8), original(4 * 8);
    again.write_keys(1, 0, 4, identity, keys.data());
    state.write_keys(1, 0, 4, identity, original.data());
    for (std::size_t i = 0; i < keys.size(); ++i) {
        const float was = localctx::half_to_float(original[i]), is = localctx::half_to_float(keys[i]);
        CHECK(std::fabs(is - was) <= 0.002F * std::fabs(was) + 0.01F * 8);
    }
}

void test_unrotated_rows_get_position_and_magnitude() {
    const Bytes blob = plain_blob();
    const State like(blob.data.data(), blob.data.size());
    const Ones ones(300);
    const auto out = composed(like, {{&ones, 100, 200}}, counting(200, 1000), make_rope(2.0));
    const State state(out.data(), out.size());
    localctx::Turn identity;
    identity.identity = true;
    std::vector<std::uint16_t> keys(200 * 8), values(200 * 8);
    state.write_keys(0, 0, 200, identity, keys.data());
    state.write_values(0, 0, 200, values.data());
    for (std::size_t row = 0; row < 200; ++row) {
        const double angle = static_cast<double>(1000 + row);
        const auto first = static_cast<float>(2 * std::cos(angle) - 2 * std::sin(angle));
        CHECK(std::fabs(localctx::half_to_float(keys[row * 8]) - first) < 0.003F);
        CHECK(values[row * 8 + 7] == 100 + row);
    }
}

void test_no_rows_is_a_blob_without_cells() {
    const Bytes blob = plain_blob();
    const State like(blob.data.data(), blob.data.size());
    const auto out = composed(like, {}, {});
    CHECK(State(out.data(), out.size()).n_tokens() == 0);
    const State empty(out.data(), out.size());
    CHECK(refusal(empty, {}, {}).find("without cells") != std::string::npos);
}

void test_what_does_not_fit_is_refused() {
    const Bytes blob = plain_blob();
    AttentionForm wide;
    wide.k_elements = {8, 16};
    const Bytes other = plain_blob(wide);
    const State like(blob.data.data(), blob.data.size()), different(other.data.data(), other.data.size());
    const std::size_t huge = ~std::size_t{0};
    CHECK(refusal(like, {{&different, 0, 3}}, {0, 1, 2}).find("layout f16 K 8,16") != std::string::npos);
    CHECK(refusal(like, {{&like, 1, 3}}, {0, 1, 2}).find("rows [1, +3) of 3") != std::string::npos);
    CHECK(!refusal(like, {{&like, 2, huge}}, {0, 1, 2}).empty() && !refusal(like, {{&like, huge, 3}}, {0}).empty());
    CHECK(refusal(like, {{&like, 0, 3}}, {0, 1}).find("2 positions for 3 rows") != std::string::npos);
    CHECK(!refusal(like, {{&like, 0, 3}}, {0, 2, 2}).empty() && !refusal(like, {{&like, 0, 2}}, {-1, 2}).empty());
    Rope rope = make_rope();
    rope.head_dim = 5;
    CHECK(refusal(like, {{&like, 0, 1}}, {0}, rope).find("heads of 5") != std::string::npos);
    Bytes hybrid = plain_blob();
    add_recurrent(hybrid);
    const State both(hybrid.data.data(), hybrid.data.size());
    CHECK(refusal(both, {}, {}).find("attention + recurrent cannot be taken apart") != std::string::npos);
    CHECK(refusal(like, {{&both, 0, 1}}, {0}).find("cannot be taken apart") != std::string::npos);
}

}  // namespace

int main() {
    test_in_place_gives_the_same_bytes();
    test_moving_there_and_back_and_values_follow();
    test_unrotated_rows_get_position_and_magnitude();
    test_no_rows_is_a_blob_without_cells();
    test_what_does_not_fit_is_refused();
    return n_failed != 0;
}

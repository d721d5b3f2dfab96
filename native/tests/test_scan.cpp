#include "scan.h"

#include <cmath>
#include <limits>
#include <random>
#include <stdexcept>
#include <vector>

#include "check.h"
#include "half.h"

using localctx::ScanColumn;

namespace {

struct Column {
    std::vector<std::int8_t> codes;
    std::vector<float> scales;
    std::size_t n_tokens, n_heads, head_dim;

    Column(std::size_t tokens, std::size_t heads, std::size_t dim, unsigned seed)
        : codes(tokens * heads * dim), scales(tokens * heads), n_tokens(tokens), n_heads(heads), head_dim(dim) {
        std::mt19937 random(seed);
        for (std::int8_t &code : codes) {
            code = static_cast<std::int8_t>(static_cast<int>(random() % 255) - 127);
        }
        for (float &scale : scales) {
            scale = static_cast<float>(random() % 1000) / 1000.0F;
        }
    }
    ScanColumn view() const { return {codes.data(), scales.data(), n_tokens, n_heads, head_dim}; }
};

std::vector<float> random_queries(std::size_t n, unsigned seed) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal;
    std::vector<float> values(n);
    for (float &value : values) {
        value = normal(random);
    }
    return values;
}

std::vector<float> scanned(const Column &column, const std::vector<float> &queries,
                           const std::vector<std::int64_t> &starts, std::size_t n_threads = 0) {
    const std::size_t n_queries = queries.size() / (column.n_heads * column.head_dim);
    std::vector<float> out(n_queries * column.n_heads * (starts.size() - 1), 12345.0F);
    localctx::scan(column.view(), queries.data(), n_queries, starts.data(), starts.size() - 1, out.data(), n_threads);
    return out;
}

double exact(const Column &column, const float *query, std::size_t head, std::int64_t from, std::int64_t to) {
    double best = -std::numeric_limits<double>::infinity();
    for (std::int64_t token = from; token < to; ++token) {
        const std::size_t row = static_cast<std::size_t>(token) * column.n_heads + head;
        double sum = 0;
        for (std::size_t i = 0; i < column.head_dim; ++i) {
            sum += static_cast<double>(query[i]) * column.codes[row * column.head_dim + i];
        }
        best = std::max(best, sum * static_cast<double>(column.scales[row]));
    }
    return best;
}

void test_the_best_of_each_block(std::size_t n_tokens, std::size_t n_heads, std::size_t head_dim, std::size_t n_queries,
                                 const std::vector<std::int64_t> &starts) {
    const Column column(n_tokens, n_heads, head_dim, 3);
    const std::vector<float> queries = random_queries(n_queries * n_heads * head_dim, 4);
    const std::vector<float> out = scanned(column, queries, starts);
    CHECK(out == scanned(column, queries, starts, 1));
    const std::size_t n_blocks = starts.size() - 1;
    for (std::size_t query = 0; query < n_queries; ++query) {
        for (std::size_t head = 0; head < n_heads; ++head) {
            const float *const values = queries.data() + (query * n_heads + head) * head_dim;
            for (std::size_t block = 0; block < n_blocks; ++block) {
                const double expected = exact(column, values, head, starts[block], starts[block + 1]);
                const float got = out[(query * n_heads + head) * n_blocks + block];
                const double bound = 1e-3 * std::sqrt(static_cast<double>(head_dim)) * 127;
                CHECK(std::isinf(expected) ? got == static_cast<float>(expected) : std::fabs(got - expected) < bound);
            }
        }
    }
}

// The largest products there are stay within 32 bits.
void test_no_overflow() {
    for (const std::size_t head_dim : {16U, 256U, 512U, 1024U}) {
        Column column(2, 1, head_dim, 1);
        std::fill(column.codes.begin(), column.codes.end(), std::int8_t{-127});
        std::fill(column.scales.begin(), column.scales.end(), 1.0F);
        const std::vector<float> queries(head_dim, -1e30F);
        const float score = scanned(column, queries, {0, 2}).front();
        CHECK(std::fabs(score / (127e30F * static_cast<float>(head_dim)) - 1) < 1e-3F);
    }
}

void test_what_cannot_be_scanned_is_refused() {
    const Column column(10, 1, 16, 1);
    std::vector<float> queries(16, 1.0F);
    const auto refused = [&](const std::vector<std::int64_t> &starts) {
        try {
            scanned(column, queries, starts);
            return false;
        } catch (const std::invalid_argument &) {
            return true;
        }
    };
    CHECK(!refused({0, 10}) && !refused({3}) && refused({0, 11}) && refused({-1, 5}) && refused({5, 4}));
    CHECK(refused({0, std::numeric_limits<std::int64_t>::max()}));
    queries[3] = std::nanf("");
    CHECK(refused({0, 10}));
    queries[3] = std::numeric_limits<float>::infinity();
    CHECK(refused({0, 10}));
    queries.assign(16, 0.0F);
    CHECK(scanned(column, queries, {0, 10}).front() == 0.0F);
    queries.assign(16, 1e-42F);  // too small for its inverse to be finite
    CHECK(std::fabs(scanned(column, queries, {0, 10}).front()) < 1e-38F);
}

// Three tokens, one layer, two heads of 16; rotated by position.
class Rotated final : public localctx::KVSource {
  public:
    explicit Rotated(const localctx::Rope &rope) {
        shape_.k_elements = shape_.v_elements = {32};
        const localctx::Turn turn = localctx::turn_to(rope, positions_.data(), 3);
        for (std::size_t row = 0; row < 3; ++row) {
            std::vector<float> plain = key(row);
            localctx::turn_row(turn, row, plain.data(), 32);
            rows_.resize((row + 1) * 32);
            localctx::floats_to_halves(plain.data(), rows_.data() + row * 32, 32);
        }
    }
    static std::vector<float> key(std::size_t row) {
        std::vector<float> values(32);
        for (std::size_t i = 0; i < 32; ++i) {
            values[i] = static_cast<float>(i + row) - 15.0F;
        }
        if (row == 2) {
            values[20] = std::numeric_limits<float>::infinity();
        }
        return values;
    }
    std::size_t n_tokens() const override { return 3; }
    const localctx::KVShape &shape() const override { return shape_; }
    const std::int32_t *positions() const override { return positions_.data(); }
    void write_keys(std::size_t, std::size_t first, std::size_t n, const localctx::Turn &turn,
                    std::uint16_t *out) const override {
        for (std::size_t row = 0; row < n; ++row) {
            localctx::turn_row_f16(turn, row, rows_.data() + (first + row) * 32, out + row * 32, 32);
        }
    }
    void write_values(std::size_t, std::size_t, std::size_t, std::uint16_t *) const override {}

  private:
    std::vector<std::int32_t> positions_{5, 600, 7000};
    std::vector<std::uint16_t> rows_;
    localctx::KVShape shape_;
};

void test_a_column_holds_unrotated_keys() {
    localctx::Rope rope;
    rope.frequencies = {1.0, 0.3, 0.1, 0.03};
    rope.head_dim = 16;
    rope.magnitude = 1.5;
    const Rotated source(rope);
    std::vector<std::int8_t> codes(2 * 3 * 16);
    std::vector<float> scales(2 * 3);
    localctx::scan_encode(source, 1, 2, rope, {{0, 1}, {0, 0}, {0, 1}}, codes.data(), scales.data());
    for (std::size_t i = 0; i < 16; ++i) {
        CHECK(std::fabs(codes[i] * scales[0] - Rotated::key(1)[16 + i]) < 0.08F);
        CHECK(std::fabs(codes[16 + i] * scales[1] - Rotated::key(1)[i]) < 0.08F);
        CHECK(codes[32 + i] == codes[i] && codes[48 + i] == 0);  // the infinite one is void
    }
    CHECK(scales[3] == 0.0F && scales[4] > 0.0F);
    bool refused = false;
    try {
        localctx::scan_encode(source, 0, 1, rope, {{0, 2}}, codes.data(), scales.data());
    } catch (const std::invalid_argument &) {
        refused = true;
    }
    CHECK(refused);
}

}  // namespace

int main() {
    test_the_best_of_each_block(5000, 8, 64, 11, {0, 128, 128, 130, 4000, 5000});
    test_the_best_of_each_block(700, 3, 80, 1, {5, 6, 700});
    test_the_best_of_each_block(300, 2, 20, 9, {0, 100, 200, 300});
    test_no_overflow();
    test_what_cannot_be_scanned_is_refused();
    test_a_column_holds_unrotated_keys();
    return n_failed != 0;
}

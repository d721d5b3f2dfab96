#include "codec.h"

#include <cmath>
#include <cstring>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "check.h"
#include "codec_format.h"
#include "codec_rows.h"
#include "codec_units.h"
#include "half.h"

using namespace localctx;

namespace {

using Bytes = std::vector<std::uint8_t>;

// Rows of random numbers, rotated to positions 10, 11 ...
class Rows : public KVSource {
  public:
    Rows(std::size_t n_tokens, std::size_t n_layer, std::uint32_t n_elements, unsigned seed) {
        std::mt19937 random(seed);
        std::normal_distribution<float> normal(0.5F, 2.0F);
        shape_.k_elements.assign(n_layer, n_elements);
        shape_.v_elements.assign(n_layer, n_elements);
        tables_.resize(2 * n_layer);
        for (auto &table : tables_) {
            for (std::size_t i = 0; i < n_tokens * n_elements; ++i) {
                table.push_back(float_to_half(normal(random)));
            }
        }
        for (std::size_t i = 0; i < n_tokens; ++i) {
            positions_.push_back(static_cast<std::int32_t>(10 + i));
        }
    }
    std::size_t n_tokens() const override { return positions_.size(); }
    const KVShape &shape() const override { return shape_; }
    const std::int32_t *positions() const override { return positions_.data(); }
    void write_keys(std::size_t layer, std::size_t first, std::size_t n, const Turn &,
                    std::uint16_t *out) const override {
        write(tables_[2 * layer], shape_.k_elements[layer], first, n, out);
    }
    void write_values(std::size_t layer, std::size_t first, std::size_t n, std::uint16_t *out) const override {
        write(tables_[2 * layer + 1], shape_.v_elements[layer], first, n, out);
    }

  private:
    static void write(const std::vector<std::uint16_t> &table, std::size_t n_elements, std::size_t first,
                      std::size_t n, std::uint16_t *out) {
        std::memcpy(out, table.data() + first * n_elements, n * n_elements * sizeof *out);
    }
    KVShape shape_;
    std::vector<std::vector<std::uint16_t>> tables_;
    std::vector<std::int32_t> positions_;
};

Rope rope_of(std::uint32_t head_dim) {
    Rope rope;
    rope.head_dim = head_dim;
    for (std::uint32_t pair = 0; pair < head_dim / 2; ++pair) {
        rope.frequencies.push_back(std::pow(10000.0, -2.0 * pair / head_dim));
    }
    return rope;
}

Bytes encoded(const KVSource &source, Codec codec, float bound = INFINITY, std::uint32_t head_group = 1) {
    EncodeOptions options;
    options.codec = codec;
    options.error_bound = bound;
    options.head_group = head_group;
    return encode(source, 0, source.n_tokens(), rope_of(16), options);
}

// Reads all that a run holds, row by row and at once.
void read_all(const Run &run) {
    Turn turn;
    turn.identity = true;
    for (std::size_t layer = 0; layer < run.shape().n_layer(); ++layer) {
        const std::size_t k_elements = run.shape().k_elements[layer], v_elements = run.shape().v_elements[layer];
        std::vector<std::uint16_t> all(run.n_tokens() * std::max(k_elements, v_elements)), one(all.size());
        run.write_keys(layer, 0, run.n_tokens(), turn, all.data());
        for (std::size_t row = 0; row < run.n_tokens(); ++row) {
            run.write_keys(layer, row, 1, turn, one.data());
            CHECK(std::memcmp(one.data(), all.data() + row * k_elements, k_elements * 2) == 0);
        }
        run.write_values(layer, 0, run.n_tokens(), all.data());
        for (std::size_t row = 0; row < run.n_tokens(); ++row) {
            run.write_values(layer, row, 1, one.data());
            CHECK(std::memcmp(one.data(), all.data() + row * v_elements, v_elements * 2) == 0);
        }
    }
}

bool refused(const Bytes &bytes) {
    try {
        const Run run(bytes.data(), bytes.size());
        read_all(run);
        return false;
    } catch (const std::invalid_argument &) {
        return true;
    }
}

void test_fp8_values() {
    CHECK(fp8_to_float<Codec::fp8_e4m3>(0x7E) == 448.0F);
    CHECK(fp8_to_float<Codec::fp8_e4m3>(0x01) == 0x1p-9F);
    CHECK(fp8_to_float<Codec::fp8_e4m3>(0xB8) == -1.0F);
    CHECK(fp8_to_float<Codec::fp8_e5m2>(0x7B) == 57344.0F);
    CHECK(std::isinf(fp8_to_float<Codec::fp8_e5m2>(0x7C)));
    CHECK(fp8_to_float<Codec::fp8_e5m2>(0x81) == -0x1p-16F);
    for (std::uint32_t code = 0; code < 0x7F; ++code) {  // every finite value is its own nearest
        CHECK(float_to_fp8<Codec::fp8_e4m3>(fp8_to_float<Codec::fp8_e4m3>(code)) == code);
        CHECK(float_to_fp8<Codec::fp8_e4m3>(-fp8_to_float<Codec::fp8_e4m3>(code)) == (code | 0x80));
    }
    for (std::uint32_t code = 0; code < 0x7C; ++code) {
        CHECK(float_to_fp8<Codec::fp8_e5m2>(fp8_to_float<Codec::fp8_e5m2>(code)) == code);
    }
    for (std::uint32_t code = 0; code + 1 < 0x7F; ++code) {  // half-way: the even one; past it: the next
        const float middle = (fp8_to_float<Codec::fp8_e4m3>(code) + fp8_to_float<Codec::fp8_e4m3>(code + 1)) / 2;
        CHECK(float_to_fp8<Codec::fp8_e4m3>(middle) == code + code % 2);
        CHECK(float_to_fp8<Codec::fp8_e4m3>(std::nextafter(middle, 1e9F)) == code + 1);
        CHECK(float_to_fp8<Codec::fp8_e4m3>(std::nextafter(middle, 0.0F)) == code);
    }
    CHECK(float_to_fp8<Codec::fp8_e4m3>(1e30F) == 0x7E);
    CHECK(float_to_fp8<Codec::fp8_e5m2>(-INFINITY) == 0xFB);
}

// All kinds of rows give the same bits, for rows of any length and values of any kind.
void test_instructions_agree(Codec codec, const CodecRows &fast) {
    const CodecRows scalar = codec_rows_scalar(codec);
    std::mt19937 random(static_cast<unsigned>(codec));
    std::uniform_int_distribution<std::uint32_t> any_bits;
    std::normal_distribution<float> normal;
    for (std::size_t n = 1; n <= 67; ++n) {
        for (int round = 0; round < 40; ++round) {
            std::vector<float> values(n), scale(n), inverse(n), zero(n), out(n), out_fast(n);
            for (std::size_t i = 0; i < n; ++i) {
                const std::uint32_t bits = any_bits(random);
                std::memcpy(&values[i], &bits, sizeof bits);
                values[i] = round % 4 == 0 ? values[i] : normal(random);
                scale[i] = i % 7 == 6 ? 0.0F : std::fabs(normal(random)) / 8;
                inverse[i] = scale[i] > 0 ? 1 / scale[i] : 0;
                zero[i] = normal(random);
                values[i] = i % 5 == 4 ? zero[i] + 2.5F * scale[i] : values[i];  // ties
            }
            const std::size_t size = (n + kUnit - 1) / kUnit * code_bits(codec);
            Bytes codes(size), codes_fast(size);  // exactly as long: reading or writing past them is seen
            scalar.encode(values.data(), inverse.data(), zero.data(), n, codes.data());
            fast.encode(values.data(), inverse.data(), zero.data(), n, codes_fast.data());
            CHECK(codes == codes_fast);
            for (std::uint8_t &byte : codes) {
                byte = static_cast<std::uint8_t>(round % 2 == 0 ? byte : any_bits(random));
            }
            scalar.decode(codes.data(), scale.data(), zero.data(), n, out.data());
            fast.decode(codes.data(), scale.data(), zero.data(), n, out_fast.data());
            for (std::size_t i = 0; i < n; ++i) {
                CHECK(std::memcmp(&out[i], &out_fast[i], 4) == 0 || (std::isnan(out[i]) && std::isnan(out_fast[i])));
            }
        }
    }
}

void test_round_trip(Codec codec, std::size_t n_tokens) {
    const Rows rows(n_tokens, 2, 48, 7);
    const Bytes bytes = encoded(rows, codec);
    const Run run(bytes.data(), bytes.size());
    read_all(run);
    CHECK(run.n_tokens() == n_tokens && run.codec() == codec && run.n_outliers() == 0);
    CHECK(run.shape() == rows.shape());
    std::vector<std::uint16_t> before(n_tokens * 48), after(n_tokens * 48);
    rows.write_values(1, 0, n_tokens, before.data());
    run.write_values(1, 0, n_tokens, after.data());
    float largest = 0;
    for (std::size_t i = 0; i < before.size(); ++i) {
        largest = std::max(largest, std::fabs(half_to_float(before[i]) - half_to_float(after[i])));
    }
    CHECK(largest <= run.max_value_error());
    CHECK((codec == Codec::f16) == (run.max_value_error() == 0));
    // Turned back to where they were, f16 keys differ by their own rounding only.
    if (codec == Codec::f16) {
        const Turn turn = turn_to(rope_of(16), rows.positions(), n_tokens);
        run.write_keys(1, 0, n_tokens, turn, after.data());
        Turn none;
        rows.write_keys(1, 0, n_tokens, none, before.data());
        for (std::size_t i = 0; i < before.size(); ++i) {
            CHECK(std::fabs(half_to_float(before[i]) - half_to_float(after[i])) < 0.02F);
        }
    }
}

void test_hostile_bytes() {
    std::mt19937 random(11);
    for (const Codec codec : kCodecs) {
        const Bytes whole = encoded(Rows(9, 2, 32, 3), codec, 0.5F);
        CHECK(!refused(whole));
        for (std::size_t size = 0; size < whole.size(); ++size) {
            CHECK(refused(Bytes(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size))));
        }
        int n_refused = 0;
        for (int round = 0; round < 5000; ++round) {
            Bytes changed = whole;
            const std::size_t n_changes = 1 + random() % 3;
            for (std::size_t i = 0; i < n_changes; ++i) {
                const std::size_t among = random() % 2 == 0 ? 160 : changed.size();
                changed[random() % among] = static_cast<std::uint8_t>(random() % 3 == 0 ? 0xFF : random());
            }
            n_refused += refused(changed) ? 1 : 0;
        }
        CHECK(n_refused > 1000 && n_refused < 5000);
    }
}

void test_head_groups_save_bytes() {
    const Rows rows(128, 1, 48, 5);
    std::size_t before = SIZE_MAX;
    for (const std::uint32_t head_group : {1U, 2U, 3U, 4U, UINT32_MAX}) {
        const Bytes bytes = encoded(rows, Codec::int4, INFINITY, head_group);
        const Run run(bytes.data(), bytes.size());
        read_all(run);
        CHECK(bytes.size() <= before);
        before = bytes.size();
    }
}

void test_the_longest_run() {
    const Rows rows(65536, 1, 16, 1);
    EncodeOptions options;
    options.codec = Codec::int3;
    options.error_bound = 2.0F;
    const Bytes bytes = encode(rows, 1, 65535, rope_of(16), options);
    const Run run(bytes.data(), bytes.size());
    std::vector<std::uint16_t> last(16), wanted(16);
    run.write_values(0, 65534, 1, last.data());
    rows.write_values(0, 65535, 1, wanted.data());
    for (std::size_t i = 0; i < 16; ++i) {
        CHECK(std::fabs(half_to_float(last[i]) - half_to_float(wanted[i])) <= run.max_value_error());
    }
    bool thrown = false;
    try {
        encode(rows, 0, 65536, rope_of(16), options);
    } catch (const std::invalid_argument &) {
        thrown = true;
    }
    CHECK(thrown);
}

}  // namespace

int main() {
    test_fp8_values();
    for (const Codec codec : kCodecs) {
        for (const std::size_t n_tokens : {1, 17, 127, 128, 129, 300}) {
            test_round_trip(codec, n_tokens);
        }
        if (codec != Codec::f16) {
            test_instructions_agree(codec, codec_rows(codec));
        }
    }
    test_hostile_bytes();
    test_head_groups_save_bytes();
    test_the_longest_run();
    return n_failed == 0 ? 0 : 1;
}

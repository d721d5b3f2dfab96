#include "state.h"

#include <cstring>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "check.h"
#include "state_bytes.h"

using localctx::SectionKind;
using localctx::State;

namespace {

using Kinds = std::vector<SectionKind>;

localctx::Turn identity() {
    localctx::Turn turn;
    turn.identity = true;
    return turn;
}

// A copy without slack behind it, so that a sanitizer sees the first byte read beyond the end.
std::string refusal(const std::vector<std::uint8_t> &bytes) {
    const std::vector<std::uint8_t> exact(bytes);
    try {
        const State state(exact.data(), exact.size());
        static_cast<void>(state.shape());
        return "";
    } catch (const std::invalid_argument &error) {
        return error.what();
    }
}

bool refuses(const AttentionForm &form, const char *why) {
    return refusal(plain_blob(form).data).find(why) != std::string::npos;
}

void test_rows_come_by_position() {
    AttentionForm form;
    form.positions = {40, 41, 7, 3, 90};
    form.k_elements = {8, 12, 4};
    form.v_elements = {8, 6, 4};
    const Bytes blob = plain_blob(form);
    const State state(blob.data.data(), blob.data.size());
    const std::vector<std::int32_t> sorted{3, 7, 40, 41, 90};
    CHECK(std::vector<std::int32_t>(state.positions(), state.positions() + state.n_tokens()) == sorted);
    CHECK(state.shape().layout() == "f16 K 8,12,4 V 8,6,4" && state.sections() == Kinds{SectionKind::attention});
    for (std::size_t layer = 0; layer < 3; ++layer) {
        const std::size_t n_k = form.k_elements[layer], n_v = form.v_elements[layer];
        std::vector<std::uint16_t> keys(3 * n_k), values(3 * n_v);
        state.write_keys(layer, 1, 3, identity(), keys.data());
        state.write_values(layer, 1, 3, values.data());
        for (std::size_t row = 0; row < 3; ++row) {
            for (std::size_t i = 0; i < n_k; ++i) {
                CHECK(keys[row * n_k + i] == pattern(layer, sorted[1 + row], i, true));
            }
            for (std::size_t i = 0; i < n_v; ++i) {
                CHECK(values[row * n_v + i] == pattern(layer, sorted[1 + row], i, false));
            }
        }
    }
}

void test_what_is_not_understood_is_named() {
    AttentionForm form;
    CHECK(refuses(form = {}, "") && refusal(plain_blob().data).empty());
    (form = {}).n_stream = 2;
    CHECK(refuses(form, "2 streams"));
    (form = {}).n_sequences = 2;
    CHECK(refuses(form, "cell of 2 sequences"));
    (form = {}).transposed = 1;
    CHECK(refuses(form, "transposed V"));
    (form = {}).type = 8;
    CHECK(refuses(form, "K rows of layer 0 are of ggml type 8, not f16"));
    (form = {}).extended = true;
    CHECK(refuses(form, "M-RoPE"));
    (form = {}).has_values = false;
    CHECK(refuses(form, "no V rows (MLA)"));
    (form = {}).positions = {0, -3};
    CHECK(refuses(form, "position -3"));
    Bytes other = plain_blob();
    other.data[4] = 1;  // the header's sequence, not the cells'
    CHECK(refusal(other.data).find("cell of another sequence") != std::string::npos);
    Bytes wrapping = plain_blob();
    const std::uint64_t third = 0x5555555555555556;  // three rows of it are 2 bytes in 64 bits
    std::memcpy(wrapping.data.data() + 16 + 3 * 12 + 8 + 4, &third, sizeof third);
    CHECK(refusal(wrapping.data).find("K rows beyond the end") != std::string::npos);
    Bytes longer = plain_blob();
    longer.word(std::uint8_t{0});
    CHECK(refusal(longer.data).find("1 bytes after the attention section") != std::string::npos);
    CHECK(refusal({}).find("magic beyond the end") != std::string::npos);
}

void test_several_sections_are_named_and_not_taken_apart() {
    AttentionForm window;
    window.k_elements = window.v_elements = {16};
    window.positions = {1, 2};
    Bytes two = plain_blob(), hybrid = plain_blob(), all = plain_blob(), recurrent = header();
    add_attention(two, window);
    add_recurrent(hybrid);
    add_attention(all, window);
    add_recurrent(all);
    add_recurrent(recurrent);
    const std::pair<Bytes, Kinds> cases[] = {
        {two, {SectionKind::attention, SectionKind::window}},
        {hybrid, {SectionKind::attention, SectionKind::recurrent}},
        {all, {SectionKind::attention, SectionKind::window, SectionKind::recurrent}},
        {recurrent, {SectionKind::recurrent}},
    };
    for (const auto &[blob, kinds] : cases) {
        const State state(blob.data.data(), blob.data.size());
        CHECK(state.sections() == kinds);
        CHECK(refusal(blob.data).find("cannot be taken apart") != std::string::npos);
    }
    const State first(all.data.data(), all.data.size());
    CHECK(first.n_tokens() == 3 && first.n_layer() == 2);
}

void test_a_state_without_cells() {
    AttentionForm none;
    none.positions = {};
    const Bytes blob = plain_blob(none);
    const State state(blob.data.data(), blob.data.size());
    CHECK(state.n_tokens() == 0 && state.shape().n_layer() == 0);
}

std::vector<Bytes> samples() {
    AttentionForm form;
    form.positions = {5, 4, 9};
    Bytes hybrid = plain_blob(form), window = plain_blob(form), recurrent = header();
    add_recurrent(hybrid);
    add_attention(window, {});
    add_recurrent(recurrent);
    return {plain_blob(form), hybrid, window, recurrent};
}

void test_no_cut_blob_is_taken_for_a_whole_one() {
    const Bytes whole = samples().front();
    for (std::size_t size = 0; size < whole.data.size(); ++size) {
        const auto end = whole.data.begin() + static_cast<std::ptrdiff_t>(size);
        CHECK(!refusal(std::vector<std::uint8_t>(whole.data.begin(), end)).empty());
    }
}

// Whatever a damaged blob is taken for, all of its rows can be read.
void read_everything(const std::vector<std::uint8_t> &bytes) {
    try {
        const State state(bytes.data(), bytes.size());
        const localctx::KVShape &shape = state.shape();
        for (std::size_t layer = 0; layer < shape.n_layer(); ++layer) {
            std::vector<std::uint16_t> keys(state.n_tokens() * shape.k_elements[layer]);
            std::vector<std::uint16_t> values(state.n_tokens() * shape.v_elements[layer]);
            state.write_keys(layer, 0, state.n_tokens(), identity(), keys.data());
            state.write_values(layer, 0, state.n_tokens(), values.data());
        }
    } catch (const std::invalid_argument &) {
        return;
    }
}

void test_damaged_blobs_are_never_read_beyond_their_end() {
    std::mt19937 random(11);
    for (const Bytes &whole : samples()) {
        for (std::size_t size = 0; size < whole.data.size(); ++size) {
            const auto end = whole.data.begin() + static_cast<std::ptrdiff_t>(size);
            read_everything(std::vector<std::uint8_t>(whole.data.begin(), end));
        }
        for (std::size_t bit = 0; bit < whole.data.size() * 8; ++bit) {
            std::vector<std::uint8_t> flipped = whole.data;
            flipped[bit / 8] = static_cast<std::uint8_t>(flipped[bit / 8] ^ (1U << bit % 8));
            read_everything(flipped);
        }
        for (std::size_t at = 0; at + 8 <= whole.data.size(); ++at) {
            for (const std::uint64_t hostile : {~std::uint64_t{0}, std::uint64_t{1} << 63, std::uint64_t{0xFFFFFFFE}}) {
                std::vector<std::uint8_t> bytes = whole.data;
                std::memcpy(bytes.data() + at, &hostile, sizeof hostile);
                read_everything(bytes);
                bytes.resize(at + 8 + random() % (bytes.size() - at - 7));
                bytes.shrink_to_fit();
                read_everything(bytes);
            }
        }
    }
}

}  // namespace

int main() {
    test_rows_come_by_position();
    test_what_is_not_understood_is_named();
    test_several_sections_are_named_and_not_taken_apart();
    test_a_state_without_cells();
    test_no_cut_blob_is_taken_for_a_whole_one();
    test_damaged_blobs_are_never_read_beyond_their_end();
    return n_failed != 0;
}

#include "query_capture.h"

#include <cmath>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include "check.h"

using localctx::QueryCapture;

namespace {

struct FakeTensor {
    std::string name;
    std::vector<float> values;
};

bool is_out_of_memory = false;

const char *name_of(const void *tensor) { return static_cast<const FakeTensor *>(tensor)->name.c_str(); }
std::size_t bytes_of(const void *tensor) {
    return is_out_of_memory ? static_cast<std::size_t>(-1) : static_cast<const FakeTensor *>(tensor)->values.size() * 4;
}
void copy(const void *tensor, void *out, std::size_t offset, std::size_t n_bytes) {
    std::memcpy(out, reinterpret_cast<const char *>(static_cast<const FakeTensor *>(tensor)->values.data()) + offset,
                n_bytes);
}

constexpr localctx::TensorFunctions kFunctions{&name_of, &bytes_of, &copy};

// Computes a tensor as a scheduler does: asks, and shows it when it is wanted.
bool compute(QueryCapture &capture, FakeTensor tensor) {
    if (!localctx_capture_callback(&tensor, true, capture.data())) {
        return false;
    }
    CHECK(localctx_capture_callback(&tensor, false, capture.data()));
    return true;
}

localctx::Rope rope_of(std::uint32_t head_dim, bool neox, double magnitude) {
    localctx::Rope rope;
    rope.frequencies = {1.0, 0.25};
    rope.head_dim = head_dim;
    rope.neox = neox;
    rope.magnitude = magnitude;
    return rope;
}

template <typename Error, typename Body>
bool throws(Body body) {
    try {
        body();
        return false;
    } catch (const Error &) {
        return true;
    }
}

void test_only_the_queries_of_chosen_layers_are_wanted() {
    QueryCapture capture(kFunctions, {3, 12});
    for (const char *const name : {"Qcur-3", "Qcur-12"}) {
        CHECK(compute(capture, {name, {1}}));
    }
    for (const char *const name : {"Qcur-1", "Qcur-", "Qcur", "Qcur-3 (view)", "Kcur-3", "xQcur-3", "Qcur-123", "Qcur--3",
                                   "", "Qcur-99999999999999999999999"}) {
        CHECK(!compute(capture, {name, {1}}));
    }
}

void test_the_last_one_is_turned_back(bool neox) {
    const localctx::Rope rope = rope_of(4, neox, 1.5);
    const std::vector<std::int32_t> positions{7, 8, 900};
    std::vector<float> plain(3 * 2 * 4);  // three tokens, two heads
    for (std::size_t i = 0; i < plain.size(); ++i) {
        plain[i] = static_cast<float>(i) - 11.5F;
    }
    std::vector<float> turned = plain;
    const localctx::Turn turn = localctx::turn_to(rope, positions.data(), 3);
    for (std::size_t row = 0; row < 3; ++row) {
        localctx::turn_row(turn, row, turned.data() + row * 8, 8);
    }
    QueryCapture capture(kFunctions, {5});
    CHECK(compute(capture, {"Qcur-5", plain}));  // before the rotation, under the same name
    CHECK(compute(capture, {"Qcur-5", turned}));
    const std::vector<float> rows = capture.unrotated(5, rope, positions.data(), 3);
    CHECK(rows.size() == plain.size());
    for (std::size_t i = 0; i < plain.size(); ++i) {
        CHECK(std::fabs(rows[i] - plain[i]) < 1e-4F);
    }
}

void test_what_is_not_there_is_refused() {
    const localctx::Rope rope = rope_of(4, false, 1.0);
    const std::vector<std::int32_t> positions{0, 1};
    QueryCapture capture(kFunctions, {5});
    const auto rows = [&](std::size_t layer) { return capture.unrotated(layer, rope, positions.data(), 2); };
    CHECK(throws<std::out_of_range>([&] { rows(4); }));
    CHECK(throws<std::runtime_error>([&] { rows(5); }));
    CHECK(compute(capture, {"Qcur-5", std::vector<float>(12)}));  // three tokens' worth, or one and a half heads
    CHECK(throws<std::runtime_error>([&] { rows(5); }));
    CHECK(compute(capture, {"Qcur-5", std::vector<float>(16)}));
    CHECK(rows(5).size() == 16);
    capture.clear();
    CHECK(throws<std::runtime_error>([&] { rows(5); }));
    is_out_of_memory = true;
    CHECK(compute(capture, {"Qcur-5", std::vector<float>(16)}));
    is_out_of_memory = false;
    CHECK(throws<std::runtime_error>([&] { rows(5); }));
    CHECK(throws<std::invalid_argument>([] { QueryCapture({}, {1}); }));
}

}  // namespace

int main() {
    test_only_the_queries_of_chosen_layers_are_wanted();
    test_the_last_one_is_turned_back(false);
    test_the_last_one_is_turned_back(true);
    test_what_is_not_there_is_refused();
    return n_failed != 0;
}

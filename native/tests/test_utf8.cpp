#include "utf8.h"

#include <string>

#include "check.h"

namespace {

const std::uint8_t *bytes_of(const std::string &text) {
    return reinterpret_cast<const std::uint8_t *>(text.data());
}

void test_advance_finds_every_boundary() {
    std::string text;
    for (int i = 0; i < 40; ++i) {
        text += i % 4 == 0 ? "a" : i % 4 == 1 ? "\xC3\xA9" : i % 4 == 2 ? "\xE6\x97\xA5" : "\xF0\x9F\x98\x80";
    }
    std::uint64_t n_code_points = 0;
    for (std::size_t at = 0; at <= text.size(); ++at) {
        if (at == text.size() || !localctx::is_continuation(bytes_of(text)[at])) {
            CHECK(localctx::utf8_advance(bytes_of(text), text.size(), n_code_points) == at);
            ++n_code_points;
        }
    }
    CHECK(n_code_points == 41);
    CHECK(localctx::utf8_advance(bytes_of(text), text.size(), 1000) == text.size());
    CHECK(localctx::utf8_advance(nullptr, 0, 3) == 0);
}

}  // namespace

int main() {
    test_advance_finds_every_boundary();
    return n_failed;
}

#include "utf8_index.h"

#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "check.h"

using localctx::Utf8Index;

namespace {

void append(std::string &text, std::uint32_t code_point) {
    const auto put = [&text](std::uint32_t byte) { text.push_back(static_cast<char>(byte)); };
    if (code_point < 0x80) {
        put(code_point);
    } else if (code_point < 0x800) {
        put(0xC0 | (code_point >> 6));
        put(0x80 | (code_point & 0x3F));
    } else if (code_point < 0x10000) {
        put(0xE0 | (code_point >> 12));
        put(0x80 | ((code_point >> 6) & 0x3F));
        put(0x80 | (code_point & 0x3F));
    } else {
        put(0xF0 | (code_point >> 18));
        put(0x80 | ((code_point >> 12) & 0x3F));
        put(0x80 | ((code_point >> 6) & 0x3F));
        put(0x80 | (code_point & 0x3F));
    }
}

bool feed(Utf8Index &index, const std::string &text, std::size_t piece) {
    bool valid = true;
    for (std::size_t at = 0; at < text.size(); at += piece) {
        const std::size_t size = std::min(piece, text.size() - at);
        valid = index.feed(reinterpret_cast<const std::uint8_t *>(text.data()) + at, size);
    }
    return valid;
}

// Alone, the text takes the path for pieces that end soon; with ASCII behind it, the fast one.
bool is_valid(const std::string &text) {
    Utf8Index alone;
    Utf8Index followed;
    const std::string longer = text + "....";
    const bool valid = feed(alone, text, text.size()) && alone.finish();
    CHECK(valid == (feed(followed, longer, longer.size()) && followed.finish()));
    CHECK(!valid || followed.n_code_points() == alone.n_code_points() + 4);
    return valid;
}

// A sequence is valid exactly when it encodes one code point as `append` would.
void test_every_one_two_and_three_byte_sequence() {
    std::vector<bool> expected(1U << 24, false);
    for (std::uint32_t code_point = 0x800; code_point < 0x10000; ++code_point) {
        if (code_point < 0xD800 || code_point > 0xDFFF) {
            std::string text;
            append(text, code_point);
            expected[(static_cast<std::uint32_t>(static_cast<std::uint8_t>(text[0])) << 16) |
                     (static_cast<std::uint32_t>(static_cast<std::uint8_t>(text[1])) << 8) |
                     static_cast<std::uint8_t>(text[2])] = true;
        }
    }
    std::string three(3, '\0');
    for (std::uint32_t value = 0xE00000; value < 0xF00000; ++value) {
        three[0] = static_cast<char>(value >> 16);
        three[1] = static_cast<char>((value >> 8) & 0xFF);
        three[2] = static_cast<char>(value & 0xFF);
        if (is_valid(three) != expected[value]) {
            CHECK(is_valid(three) == expected[value]);
            return;
        }
    }
    for (std::uint32_t lead = 0; lead < 0x100; ++lead) {
        const std::string one(1, static_cast<char>(lead));
        CHECK(is_valid(one) == (lead < 0x80));
        for (std::uint32_t next = 0; next < 0x100; ++next) {
            const std::string two{static_cast<char>(lead), static_cast<char>(next)};
            const bool two_byte = lead >= 0xC2 && lead <= 0xDF && next >= 0x80 && next <= 0xBF;
            CHECK(is_valid(two) == (two_byte || (lead < 0x80 && next < 0x80)));
        }
    }
}

void test_four_byte_limits() {
    CHECK(is_valid("\xF0\x90\x80\x80"));
    CHECK(!is_valid("\xF0\x8F\xBF\xBF"));  // overlong
    CHECK(is_valid("\xF4\x8F\xBF\xBF"));
    CHECK(!is_valid("\xF4\x90\x80\x80"));  // U+110000
    CHECK(!is_valid("\xF5\x80\x80\x80"));
    CHECK(!is_valid("\xF0\x9F\x98"));
    CHECK(!is_valid("\xF0\x9F\x98" "a"));
}

std::string random_text(unsigned seed, std::vector<std::size_t> &starts) {
    std::mt19937 random(seed);
    std::string text;
    for (int i = 0; i < 3000; ++i) {
        const unsigned kind = (random() >> 5) % 5;
        const std::uint32_t code_point = kind == 0   ? 0x80 + random() % 0x700
                                         : kind == 1 ? 0x4E00 + random() % 0x5000
                                         : kind == 2 ? 0x1F300 + random() % 0x300
                                                     : random() % 0x80;
        const unsigned repeat = kind == 1 || kind == 3 ? 20 : 1;
        for (unsigned j = 0; j < repeat; ++j) {
            starts.push_back(text.size());
            append(text, code_point);
        }
    }
    starts.push_back(text.size());
    return text;
}

void check_checkpoints(const Utf8Index &index, const std::vector<std::size_t> &starts, std::uint64_t step) {
    for (std::size_t code_point = 0; code_point < starts.size(); ++code_point) {
        const auto found = index.checkpoint_for_code_point(static_cast<std::int64_t>(code_point));
        CHECK(found.code_point <= code_point && starts[found.code_point] == found.byte);
        CHECK(starts[code_point] - found.byte < step + 4);
    }
}

void test_any_pieces_give_the_same_index() {
    std::vector<std::size_t> starts;
    const std::string text = random_text(1, starts);
    std::uint64_t n_nul = 0;
    for (const char byte : text) {
        n_nul += byte == 0 ? 1 : 0;
    }
    for (const std::size_t piece : {std::size_t{1}, std::size_t{2}, std::size_t{7}, std::size_t{64}, text.size()}) {
        for (const std::uint64_t step : {std::uint64_t{4}, std::uint64_t{5}, std::uint64_t{100}}) {
            Utf8Index index(step);
            CHECK(feed(index, text, piece) && index.finish());
            CHECK(index.n_bytes() == text.size());
            CHECK(index.n_code_points() == starts.size() - 1);
            CHECK(index.n_nul() == n_nul);
            check_checkpoints(index, starts, step);
        }
    }
}

void test_error_offset_is_the_first_byte_of_the_bad_sequence() {
    const std::string before = std::string(50, 'x') + "\xE6\x97\xA5";
    for (const std::string bad : {"\xC3(", "\xED\xA0\x80", "\xFF", "\x80", "\xF0\x9F\x98z", "\xC0\xAF"}) {
        for (std::size_t piece = 1; piece < 8; ++piece) {
            Utf8Index index;
            CHECK(!feed(index, before + bad + "after", piece));
            CHECK(index.error_offset() == before.size());
            CHECK(index.n_bytes() == before.size() && index.n_code_points() == 51);
            CHECK(!index.finish());
        }
    }
    Utf8Index cut;
    CHECK(feed(cut, before + "\xE6\x97", 4));
    CHECK(!cut.error_offset() && cut.n_code_points() == 51);
    CHECK(!cut.finish() && cut.error_offset() == before.size());
}

template <typename Exception, typename Call>
bool throws(Call call) {
    try {
        call();
    } catch (const Exception &) {
        return true;
    }
    return false;
}

void test_out_of_range() {
    Utf8Index index;
    CHECK(index.checkpoint_for_code_point(0).byte == 0 && index.checkpoint_for_code_point(0).code_point == 0);
    CHECK(throws<std::out_of_range>([&] { index.checkpoint_for_code_point(1); }));
    CHECK(throws<std::out_of_range>([&] { index.checkpoint_for_code_point(-1); }));
    CHECK(throws<std::invalid_argument>([] { Utf8Index(3); }));
}

}  // namespace

int main() {
    test_every_one_two_and_three_byte_sequence();
    test_four_byte_limits();
    test_any_pieces_give_the_same_index();
    test_error_offset_is_the_first_byte_of_the_bad_sequence();
    test_out_of_range();
    return n_failed;
}

#include "utf8.h"

namespace localctx {

std::size_t utf8_advance(const std::uint8_t *bytes, std::size_t size, std::uint64_t n_code_points) {
    std::uint64_t seen = 0;
    std::size_t at = 0;
    for (; at + 8 <= size; at += 8) {
        const unsigned leads = count_leads(load_word(bytes + at));
        if (seen + leads > n_code_points) {
            break;  // the code point that must stay outside starts in this word
        }
        seen += leads;
    }
    for (; at < size; ++at) {
        if (!is_continuation(bytes[at]) && seen++ == n_code_points) {
            return at;
        }
    }
    return size;
}

}  // namespace localctx

#include "utf8_index.h"

#include <algorithm>
#include <stdexcept>

#include "utf8.h"

namespace localctx {
namespace {

constexpr unsigned kAdjustBits = 2;

// The end of the run of ASCII that starts at `at`; adds the NUL bytes passed.
const std::uint8_t *skip_ascii(const std::uint8_t *at, const std::uint8_t *until, std::uint64_t &n_nul) {
    while (until - at >= 16) {
        const std::uint64_t first = load_word(at);
        const std::uint64_t second = load_word(at + 8);
        if (((first | second) & kHighBits) != 0) {
            break;
        }
        // Of ASCII bytes, only NUL lacks the high bit after adding 0x7F.
        const std::uint64_t present = (first + ~kHighBits) & (second + ~kHighBits) & kHighBits;
        if (present != kHighBits) {
            n_nul += static_cast<std::uint64_t>(std::count(at, at + 16, std::uint8_t{0}));
        }
        at += 16;
    }
    while (at < until && *at < 0x80) {
        n_nul += *at++ == 0 ? 1 : 0;
    }
    return at;
}

// Bytes of the valid character of two to four bytes at `at`, 0 for any other; reads at most four bytes.
unsigned plain_character_size(const std::uint8_t *at) {
    const std::uint8_t lead = at[0];
    if (lead >= 0xE1 && lead <= 0xEF && lead != 0xED) {
        return is_continuation(at[1]) && is_continuation(at[2]) ? 3 : 0;
    }
    if (lead >= 0xC2 && lead <= 0xDF) {
        return is_continuation(at[1]) ? 2 : 0;
    }
    if (lead == 0xE0 || lead == 0xED) {  // no overlong form, no surrogate
        const bool second = is_continuation(at[1]) && (lead == 0xE0) == (at[1] >= 0xA0);
        return second && is_continuation(at[2]) ? 3 : 0;
    }
    if (lead >= 0xF0 && lead <= 0xF4) {  // no overlong form, nothing above U+10FFFF
        const bool second = at[1] >= (lead == 0xF0 ? 0x90 : 0x80) && at[1] <= (lead == 0xF4 ? 0x8F : 0xBF);
        return second && is_continuation(at[2]) && is_continuation(at[3]) ? 4 : 0;
    }
    return 0;
}

}  // namespace

Utf8Index::Utf8Index(std::uint64_t step) : step_(step) {
    if (step < 4) {
        throw std::invalid_argument("step must be at least 4 bytes");
    }
    keep_checkpoint();
}

void Utf8Index::keep_checkpoint() {
    const std::uint64_t adjust = n_bytes_ - next_target_;
    checkpoints_.push_back((n_code_points_ << kAdjustBits) | adjust);
    next_target_ += step_;
}

void Utf8Index::fail() {
    error_offset_ = sequence_start_;
    n_bytes_ = sequence_start_;
    n_missing_ = 0;
}

// The bounds of the second byte exclude overlong forms, surrogates and what is above U+10FFFF.
void Utf8Index::begin_sequence(std::uint8_t lead) {
    sequence_start_ = n_bytes_;
    next_low_ = 0x80;
    next_high_ = 0xBF;
    if (lead < 0xC2 || lead > 0xF4) {
        fail();
        return;
    }
    n_missing_ = lead < 0xE0 ? 1 : lead < 0xF0 ? 2 : 3;
    switch (lead) {
        case 0xE0: next_low_ = 0xA0; break;
        case 0xED: next_high_ = 0x9F; break;
        case 0xF0: next_low_ = 0x90; break;
        case 0xF4: next_high_ = 0x8F; break;
        default: break;
    }
    ++n_bytes_;
}

void Utf8Index::step_over(std::uint8_t byte) {
    if (n_missing_ == 0) {
        if (byte >= 0x80) {
            begin_sequence(byte);
            return;
        }
        n_nul_ += byte == 0 ? 1 : 0;
        ++n_bytes_;
        ++n_code_points_;
        return;
    }
    if (byte < next_low_ || byte > next_high_) {
        fail();
        return;
    }
    next_low_ = 0x80;
    next_high_ = 0xBF;
    ++n_bytes_;
    if (--n_missing_ == 0) {
        ++n_code_points_;
    }
}

// Whole, plain characters from a boundary on; stops at the first boundary at or after `until`, and before
// whatever needs a closer look: an invalid byte, or a character too near to `end`.
const std::uint8_t *Utf8Index::scan_characters(const std::uint8_t *at, const std::uint8_t *until,
                                               const std::uint8_t *end) {
    const std::uint8_t *const begin = at;
    std::uint64_t n_code_points = 0;
    while (at < until) {
        const std::uint8_t *const run = at;
        at = skip_ascii(at, until, n_nul_);
        n_code_points += static_cast<std::uint64_t>(at - run);
        if (at >= until || end - at < 4) {
            break;
        }
        const unsigned size = plain_character_size(at);
        if (size == 0) {
            break;
        }
        at += size;
        ++n_code_points;
        while (size == 3 && at < until && end - at >= 4 && plain_character_size(at) == 3) {
            at += 3;  // runs of CJK
            ++n_code_points;
        }
    }
    n_bytes_ += static_cast<std::uint64_t>(at - begin);
    n_code_points_ += n_code_points;
    return at;
}

// Reads on from `at`, on a boundary or not, until the first boundary at or after `until`, an error, or `end`.
const std::uint8_t *Utf8Index::scan(const std::uint8_t *at, const std::uint8_t *until,
                                    const std::uint8_t *end) {
    while (at < end && (at < until || n_missing_ != 0) && !error_offset_) {
        if (n_missing_ == 0) {
            const std::uint8_t *const before = at;
            at = scan_characters(at, until, end);
            if (at != before) {
                continue;
            }
        }
        step_over(*at++);
    }
    return at;
}

bool Utf8Index::feed(const std::uint8_t *bytes, std::size_t size) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const std::uint8_t *at = bytes;
    const std::uint8_t *const end = bytes + size;
    while (at < end && !error_offset_) {
        const auto left = static_cast<std::uint64_t>(end - at);
        const std::uint64_t to_target = next_target_ > n_bytes_ ? next_target_ - n_bytes_ : 0;
        at = scan(at, at + std::min(left, to_target), end);
        if (n_missing_ == 0 && !error_offset_ && n_bytes_ >= next_target_) {
            keep_checkpoint();
        }
    }
    return !error_offset_;
}

bool Utf8Index::finish() {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (n_missing_ != 0) {
        fail();
    }
    return !error_offset_;
}

std::uint64_t Utf8Index::n_bytes() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return n_bytes_;
}

std::uint64_t Utf8Index::n_code_points() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return n_code_points_;
}

std::uint64_t Utf8Index::n_nul() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return n_nul_;
}

std::optional<std::uint64_t> Utf8Index::error_offset() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return error_offset_;
}

Checkpoint Utf8Index::at(std::size_t index) const {
    const std::uint64_t packed = checkpoints_[index];
    const std::uint64_t adjust = packed & ((1U << kAdjustBits) - 1);
    return {index * step_ + adjust, packed >> kAdjustBits};
}

Checkpoint Utf8Index::checkpoint_for_code_point(std::int64_t code_point) const {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (code_point < 0 || static_cast<std::uint64_t>(code_point) > n_code_points_) {
        throw std::out_of_range("code point outside the text");
    }
    const auto wanted = static_cast<std::uint64_t>(code_point);
    const auto after = std::upper_bound(
        checkpoints_.begin(), checkpoints_.end(), wanted,
        [](std::uint64_t value, std::uint64_t packed) { return value < (packed >> kAdjustBits); });
    return at(static_cast<std::size_t>(after - checkpoints_.begin()) - 1);
}

}  // namespace localctx

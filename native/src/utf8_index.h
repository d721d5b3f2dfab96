// Byte <-> code-point map of UTF-8 text fed in order, in pieces of any size. Knows nothing of Python or files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

namespace localctx {

struct Checkpoint {
    std::uint64_t byte;
    std::uint64_t code_point;
};

// Safe to use from several threads; pieces must still come in order.
class Utf8Index {
  public:
    // Throws std::invalid_argument for a step below 4, the longest character.
    explicit Utf8Index(std::uint64_t step = 4096);

    // Validates (RFC 3629) and counts the next bytes; false once the text is invalid.
    bool feed(const std::uint8_t *bytes, std::size_t size);
    // End of text; false when it is invalid or ends inside a character.
    bool finish();

    // Bytes so far; after an error, the bytes before the first invalid sequence.
    std::uint64_t n_bytes() const;
    std::uint64_t n_code_points() const;
    std::uint64_t n_nul() const;
    std::optional<std::uint64_t> error_offset() const;

    // The last checkpoint at or before. Throws std::out_of_range outside the text.
    Checkpoint checkpoint_for_code_point(std::int64_t code_point) const;

  private:
    const std::uint8_t *scan(const std::uint8_t *at, const std::uint8_t *until, const std::uint8_t *end);
    const std::uint8_t *scan_characters(const std::uint8_t *at, const std::uint8_t *until,
                                        const std::uint8_t *end);
    void step_over(std::uint8_t byte);
    void begin_sequence(std::uint8_t lead);
    void fail();
    void keep_checkpoint();
    Checkpoint at(std::size_t index) const;

    mutable std::mutex mutex_;
    std::uint64_t step_;
    std::uint64_t next_target_ = 0;  // the next multiple of step_ that has no checkpoint yet
    // Checkpoint i is the first character boundary at or after byte i * step_. It lies at most 3 bytes
    // further, so those two bits and the code-point offset share one word.
    std::vector<std::uint64_t> checkpoints_;

    std::uint64_t n_bytes_ = 0;
    std::uint64_t n_code_points_ = 0;
    std::uint64_t n_nul_ = 0;
    std::optional<std::uint64_t> error_offset_;

    // The character that straddles two pieces: bytes still missing and what the next one may be.
    unsigned n_missing_ = 0;
    std::uint64_t sequence_start_ = 0;
    std::uint8_t next_low_ = 0x80;
    std::uint8_t next_high_ = 0xBF;
};

}  // namespace localctx

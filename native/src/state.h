// A parsed llama.cpp state blob of one sequence: its rows by position, copied nowhere. Knows no Python.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "kv_source.h"
#include "state_layout.h"

namespace localctx {

class State final : public KVSource {
  public:
    // The bytes are read while the object lives; `owner` keeps them. Throws std::invalid_argument for what is
    // not understood (state_layout.h), for rows that are not f16, and for bytes at an odd address.
    State(const std::uint8_t *blob, std::size_t size, std::shared_ptr<const void> owner = nullptr);

    // Tokens of the first section, and their positions, ascending.
    std::size_t n_tokens() const override { return positions_.size(); }
    const std::int32_t *positions() const override { return positions_.data(); }
    // The shape throws std::invalid_argument unless the blob is one attention section: others are not composed.
    const KVShape &shape() const override;
    void write_keys(std::size_t layer, std::size_t first, std::size_t n, const Turn &turn,
                    std::uint16_t *out) const override;
    void write_values(std::size_t layer, std::size_t first, std::size_t n, std::uint16_t *out) const override;

    // Layers of the first section; 0 for a recurrent or an empty one.
    std::size_t n_layer() const { return shape_.n_layer(); }
    std::vector<SectionKind> sections() const;
    std::uint32_t magic() const { return layout_.magic; }
    std::int32_t sequence() const { return layout_.sequence; }

  private:
    const std::uint16_t *row(const StateRows &rows, std::size_t token) const;

    const std::uint8_t *blob_;
    std::shared_ptr<const void> owner_;
    StateLayout layout_;
    KVShape shape_;
    std::vector<std::int32_t> positions_;
    std::vector<std::uint32_t> cells_;  // the cell of each token; empty: the token's own index
};

const char *section_name(SectionKind kind);

}  // namespace localctx

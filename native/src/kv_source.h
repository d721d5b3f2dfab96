// Rows of K and V of consecutive tokens, in whatever form they are kept. Knows no files and no llama.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "rope.h"

namespace localctx {

// Row sizes in elements; one entry a layer. Sources of equal shapes can stand in one state blob.
struct KVShape {
    std::vector<std::uint32_t> k_elements;
    std::vector<std::uint32_t> v_elements;

    std::size_t n_layer() const { return k_elements.size(); }
    bool operator==(const KVShape &other) const {
        return k_elements == other.k_elements && v_elements == other.v_elements;
    }
    // "f16 K 30x192 V 30x192", or all layers' sizes where they differ.
    std::string layout() const;
    // Throws std::invalid_argument unless every K row is made of heads of that size.
    void require_heads(std::uint32_t head_dim) const;
};

// f16 values are IEEE binary16 bit patterns. Implementations are immutable: calls from many threads are safe.
class KVSource {
  public:
    virtual ~KVSource() = default;
    virtual std::size_t n_tokens() const = 0;
    virtual const KVShape &shape() const = 0;
    // The position that row i's keys are rotated to and scaled for; nullptr: keys are un-rotated, unscaled.
    virtual const std::int32_t *positions() const = 0;
    // Writes rows [first, first + n) of `layer`, keys turned by `turn` (row i of it belongs to row first + i).
    virtual void write_keys(std::size_t layer, std::size_t first, std::size_t n, const Turn &turn,
                            std::uint16_t *out) const = 0;
    virtual void write_values(std::size_t layer, std::size_t first, std::size_t n,
                              std::uint16_t *out) const = 0;
};

}  // namespace localctx

// A state blob put together from rows of other sources, at new positions. Knows no Python.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kv_source.h"
#include "state.h"

namespace localctx {

// Rows [first, first + n) of a source.
struct ComposePart {
    const KVSource *source = nullptr;
    std::size_t first = 0, n = 0;
};

// Bytes of a blob of n_tokens in the layout of `like`. Throws std::invalid_argument when `like` has no layers.
std::size_t composed_size(const State &like, std::size_t n_tokens);

// Writes a blob of composed_size() bytes to `out` (at an even address): the parts' rows in order, row i at
// positions[i]. Throws std::invalid_argument for layouts that differ, rows a part lacks, positions that do not
// ascend from 0 or more, K rows that are not made of the rope's heads.
void compose(const State &like, const std::vector<ComposePart> &parts, const std::int32_t *positions,
             std::size_t n_positions, const Rope &rope, std::uint8_t *out, std::size_t n_threads = 0);

}  // namespace localctx

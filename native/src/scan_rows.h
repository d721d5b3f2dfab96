// The inner loop of a scan, for each kind of instruction; integer sums, so that all agree. Internal to scan.
#pragma once

#include <cstddef>
#include <cstdint>

#include "scan.h"

namespace localctx {

constexpr std::size_t kGroupQueries = 8;
constexpr std::size_t kChunk = 16;  // elements of a head taken at once

inline std::size_t n_chunks(std::size_t head_dim) { return (head_dim + kChunk - 1) / kChunk; }

// best [n_heads, kGroupQueries] becomes the larger of itself and (sum of codes * query) * scale, over tokens
// [first, last). group: eight queries as integers, [n_heads, n_chunks, kGroupQueries, kChunk], zeros behind.
using ScanTokens = void (*)(const ScanColumn &column, std::size_t first, std::size_t last,
                            const std::int16_t *group, float *best);

// The fastest for this processor, head size and number of queries in the group, from 1 on; those beyond n_queries
// may be left out.
ScanTokens scan_tokens(std::size_t head_dim, std::size_t n_queries);

}  // namespace localctx

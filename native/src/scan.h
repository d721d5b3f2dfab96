// A column of INT8 keys, and the best match of each query in each block of tokens. Knows no files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kv_source.h"

namespace localctx {

// A KV head of a layer.
struct ScanHead {
    std::size_t layer = 0, head = 0;
};

// Un-rotated keys of some heads: codes [n_tokens, n_heads, head_dim], each times scales [n_tokens, n_heads].
struct ScanColumn {
    const std::int8_t *codes = nullptr;
    const float *scales = nullptr;
    std::size_t n_tokens = 0, n_heads = 0, head_dim = 0;
};

// Writes the column of rows [first, first + n) of the source, un-rotated and without magnitude. A head's key that
// is not finite becomes 0. Throws std::invalid_argument for rows and heads that are not there.
void scan_encode(const KVSource &source, std::size_t first, std::size_t n, const Rope &rope,
                 const std::vector<ScanHead> &heads, std::int8_t *codes, float *scales, std::size_t n_threads = 0);

// out [n_queries, n_heads, n_blocks]: the largest query . key over tokens [starts[b], starts[b + 1]) of each block
// b, minus infinity for an empty one; queries [n_queries, n_heads, head_dim]. The same bits with all instructions.
// Throws std::invalid_argument for starts that do not ascend within the column and queries that are not finite.
void scan(const ScanColumn &column, const float *queries, std::size_t n_queries, const std::int64_t *starts,
          std::size_t n_blocks, float *out, std::size_t n_threads = 0);

}  // namespace localctx

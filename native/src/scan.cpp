#include "scan.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>

#include "half.h"
#include "scan_rows.h"
#include "thread_pool.h"

namespace localctx {
namespace {

constexpr float kMaxCode = 127.0F;
constexpr std::size_t kTileBytes = std::size_t{128} << 10;  // keys that stay cached while all queries pass
constexpr std::size_t kTaskBytes = std::size_t{1} << 20;
constexpr std::size_t kPieceRows = 128;
constexpr float kNone = -std::numeric_limits<float>::infinity();

std::int32_t nearest(float value) { return static_cast<std::int32_t>(value + std::copysign(0.5F, value)); }

float largest(const float *values, std::size_t n) {
    float most = 0.0F;
    for (std::size_t i = 0; i < n; ++i) {
        const float magnitude = std::fabs(values[i]);
        most = magnitude <= most ? most : magnitude;  // NaN stays
        if (std::isnan(most)) {
            break;
        }
    }
    return most;
}

void encode_head(const float *key, std::size_t head_dim, std::int8_t *codes, float *scale) {
    const float most = largest(key, head_dim);
    *scale = std::isfinite(most) ? most / kMaxCode : 0.0F;
    const float by = *scale > 0.0F ? kMaxCode / most : 0.0F;
    for (std::size_t i = 0; i < head_dim; ++i) {
        codes[i] = by > 0.0F ? static_cast<std::int8_t>(nearest(key[i] * by)) : std::int8_t{0};
    }
}

void check_heads(const KVShape &shape, const Rope &rope, const std::vector<ScanHead> &heads) {
    shape.require_heads(rope.head_dim);
    for (const ScanHead &head : heads) {
        if (head.layer >= shape.n_layer() || head.head >= shape.k_elements[head.layer] / rope.head_dim) {
            throw std::invalid_argument("no head " + std::to_string(head.head) + " of layer " +
                                        std::to_string(head.layer) + " in " + shape.layout());
        }
    }
}

// Queries as integers, eight a group, as scan_rows.h wants them.
class Queries {
  public:
    Queries(const float *queries, std::size_t n_queries, std::size_t n_heads, std::size_t head_dim)
        : n_queries_(n_queries),
          n_heads_(n_heads),
          group_size_(n_heads * n_chunks(head_dim) * kGroupQueries * kChunk),
          n_groups_((n_queries + kGroupQueries - 1) / kGroupQueries),
          codes_(n_groups_ * group_size_),
          steps_(n_groups_ * n_heads * kGroupQueries) {
        for (std::size_t query = 0; query < n_queries; ++query) {
            for (std::size_t head = 0; head < n_heads; ++head) {
                add(queries + (query * n_heads + head) * head_dim, query, head, head_dim);
            }
        }
    }

    std::size_t n_groups() const { return n_groups_; }
    std::size_t n_in_group(std::size_t index) const {
        return std::min(kGroupQueries, n_queries_ - index * kGroupQueries);
    }
    const std::int16_t *group(std::size_t index) const { return codes_.data() + index * group_size_; }
    // What one unit of a code stands for.
    float step(std::size_t query, std::size_t head) const { return steps_[place(query, head)]; }
    // Where (query, head) stands among [n_groups, n_heads, kGroupQueries].
    std::size_t place(std::size_t query, std::size_t head) const {
        return (query / kGroupQueries * n_heads_ + head) * kGroupQueries + query % kGroupQueries;
    }

  private:
    void add(const float *values, std::size_t query, std::size_t head, std::size_t head_dim) {
        const float most = largest(values, head_dim);
        if (!std::isfinite(most)) {
            throw std::invalid_argument("query " + std::to_string(query) + " is not finite");
        }
        // As large as a sum over the head can be without passing 32 bits.
        const std::size_t most_code = std::min<std::size_t>(32767, 0x7FFFFFFF / (127 * head_dim));
        const auto range = static_cast<float>(most_code);
        steps_[place(query, head)] = most / range;
        const float by = most > 0.0F && std::isfinite(range / most) ? range / most : 0.0F;
        std::int16_t *const codes = codes_.data() + query / kGroupQueries * group_size_ +
                                    head * n_chunks(head_dim) * kGroupQueries * kChunk;
        for (std::size_t i = 0; i < head_dim; ++i) {
            const std::size_t at = (i / kChunk * kGroupQueries + query % kGroupQueries) * kChunk + i % kChunk;
            codes[at] = static_cast<std::int16_t>(nearest(values[i] * by));
        }
    }

    std::size_t n_queries_, n_heads_, group_size_, n_groups_;
    std::vector<std::int16_t> codes_;
    std::vector<float> steps_;
};

void check_starts(const std::int64_t *starts, std::size_t n_blocks, std::size_t n_tokens) {
    for (std::size_t i = 0; i <= n_blocks; ++i) {
        if (starts[i] < (i == 0 ? 0 : starts[i - 1]) || static_cast<std::uint64_t>(starts[i]) > n_tokens) {
            throw std::invalid_argument("block starts do not ascend within " + std::to_string(n_tokens) + " tokens");
        }
    }
}

// Blocks [tasks[i], tasks[i + 1]) hold about kTaskBytes of keys.
std::vector<std::size_t> cut_blocks(const std::int64_t *starts, std::size_t n_blocks, std::size_t token_bytes) {
    std::vector<std::size_t> tasks{0};
    for (std::size_t block = 1; block <= n_blocks; ++block) {
        const auto n_tokens = static_cast<std::size_t>(starts[block] - starts[tasks.back()]);
        if (block == n_blocks || n_tokens * token_bytes >= kTaskBytes) {
            tasks.push_back(block);
        }
    }
    return tasks;
}

// best, as Queries::place() orders it, of the tokens [first, last); a tile at a time, so that keys are fetched once.
void best_of_tokens(const ScanColumn &column, const Queries &queries, std::size_t first, std::size_t last,
                    std::vector<float> &best) {
    const std::size_t group_best = column.n_heads * kGroupQueries;
    const std::size_t tile = std::max<std::size_t>(1, kTileBytes / (column.n_heads * column.head_dim));
    best.assign(queries.n_groups() * group_best, kNone);
    for (std::size_t at = first; at < last; at += tile) {
        for (std::size_t group = 0; group < queries.n_groups(); ++group) {
            scan_tokens(column.head_dim, queries.n_in_group(group))(column, at, std::min(at + tile, last),
                                                                    queries.group(group),
                                                                    best.data() + group * group_best);
        }
    }
}

}  // namespace

void scan_encode(const KVSource &source, std::size_t first, std::size_t n, const Rope &rope,
                 const std::vector<ScanHead> &heads, std::int8_t *codes, float *scales, std::size_t n_threads) {
    const KVShape &shape = source.shape();
    if (first > source.n_tokens() || n > source.n_tokens() - first) {
        throw std::invalid_argument("rows [" + std::to_string(first) + ", +" + std::to_string(n) + ") of " +
                                    std::to_string(source.n_tokens()));
    }
    check_heads(shape, rope, heads);
    const std::size_t n_pieces = (n + kPieceRows - 1) / kPieceRows;
    const auto encode = [&](std::size_t item) {
        const std::size_t index = item % heads.size(), start = item / heads.size() * kPieceRows;
        const std::size_t n_rows = std::min(kPieceRows, n - start), d = rope.head_dim;
        const std::size_t n_elements = shape.k_elements[heads[index].layer];
        Turn turn;
        turn.identity = true;
        if (source.positions() != nullptr) {
            turn = turn_from(rope, source.positions() + first + start, n_rows);
        }
        std::vector<std::uint16_t> rows(n_rows * n_elements);
        source.write_keys(heads[index].layer, first + start, n_rows, turn, rows.data());
        std::vector<float> key(d);
        for (std::size_t row = 0; row < n_rows; ++row) {
            halves_to_floats(rows.data() + row * n_elements + heads[index].head * d, key.data(), d);
            const std::size_t at = (start + row) * heads.size() + index;
            encode_head(key.data(), d, codes + at * d, scales + at);
        }
    };
    parallel_for(n_pieces * heads.size(), encode, n_threads);
}

void scan(const ScanColumn &column, const float *queries, std::size_t n_queries, const std::int64_t *starts,
          std::size_t n_blocks, float *out, std::size_t n_threads) {
    check_starts(starts, n_blocks, column.n_tokens);
    if (n_blocks == 0 || n_queries == 0 || column.n_heads == 0) {
        return;
    }
    const Queries prepared(queries, n_queries, column.n_heads, column.head_dim);
    const std::vector<std::size_t> tasks = cut_blocks(starts, n_blocks, column.n_heads * column.head_dim);
    const auto scan_task = [&](std::size_t task) {
        std::vector<float> best;
        for (std::size_t block = tasks[task]; block < tasks[task + 1]; ++block) {
            best_of_tokens(column, prepared, static_cast<std::size_t>(starts[block]),
                           static_cast<std::size_t>(starts[block + 1]), best);
            for (std::size_t query = 0; query < n_queries; ++query) {
                for (std::size_t head = 0; head < column.n_heads; ++head) {
                    const float score = best[prepared.place(query, head)];
                    out[(query * column.n_heads + head) * n_blocks + block] =
                        score == kNone ? kNone : score * prepared.step(query, head);
                }
            }
        }
    };
    parallel_for(tasks.size() - 1, scan_task, n_threads);
}

}  // namespace localctx

#include "compose.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <string>

#include "thread_pool.h"

namespace localctx {
namespace {

constexpr std::size_t kPieceRows = 128;  // K or V of one layer then fits a second-level cache
constexpr std::size_t kWord = sizeof(std::uint32_t);
constexpr std::size_t kCellBytes = 3 * kWord;
constexpr std::size_t kEmptyBytes = 4 * kWord;  // a blob without cells ends after their count
constexpr std::size_t kRowsHeader = kWord + sizeof(std::uint64_t);

// At most kPieceRows rows of a part, and the row of the blob that they begin at.
struct Piece {
    const KVSource *source;
    std::size_t first, n, row;
};

class Writer {
  public:
    explicit Writer(std::uint8_t *at) : at_(at) {}
    template <typename T>
    void word(T value) {
        std::memcpy(at_, &value, sizeof value);
        at_ += sizeof value;
    }
    std::uint16_t *rows(std::size_t n_bytes) {
        std::uint8_t *const start = at_;
        at_ += n_bytes;
        return reinterpret_cast<std::uint16_t *>(start);
    }

  private:
    std::uint8_t *at_;
};

// Where each layer's K and V rows go.
struct Target {
    std::vector<std::uint16_t *> keys, values;
};

Target write_headers(const State &like, const std::int32_t *positions, std::size_t n, std::uint8_t *out) {
    const KVShape &shape = like.shape();
    Writer to(out);
    to.word(like.magic());
    to.word(like.sequence());
    to.word(std::uint32_t{1});  // streams
    to.word(static_cast<std::uint32_t>(n));
    if (n == 0) {
        return {};
    }
    for (std::size_t row = 0; row < n; ++row) {
        to.word(positions[row]);
        to.word(std::uint32_t{1});  // sequences of the cell
        to.word(like.sequence());
    }
    to.word(std::uint32_t{0});  // V is not transposed
    to.word(static_cast<std::uint32_t>(shape.n_layer()));
    Target target;
    for (const bool is_key : {true, false}) {
        for (const std::uint32_t n_elements : is_key ? shape.k_elements : shape.v_elements) {
            const std::uint64_t row_bytes = std::uint64_t{n_elements} * 2;
            to.word(kTypeF16);
            to.word(row_bytes);
            (is_key ? target.keys : target.values).push_back(to.rows(n * row_bytes));
        }
    }
    return target;
}

// Cut at multiples of kPieceRows of the source, where its own groups end.
std::vector<Piece> cut(const std::vector<ComposePart> &parts) {
    std::vector<Piece> pieces;
    std::size_t row = 0;
    for (const ComposePart &part : parts) {
        for (std::size_t at = part.first; at < part.first + part.n;) {
            const std::size_t n = std::min(part.first + part.n - at, kPieceRows - at % kPieceRows);
            pieces.push_back({part.source, at, n, row});
            at += n;
            row += n;
        }
    }
    return pieces;
}

Turn turn_of(const Piece &piece, const Rope &rope, const std::int32_t *positions) {
    const std::int32_t *const to = positions + piece.row;
    const std::int32_t *const from = piece.source->positions();
    return from == nullptr ? turn_to(rope, to, piece.n) : turn_between(rope, from + piece.first, to, piece.n);
}

void check_parts(const State &like, const std::vector<ComposePart> &parts, std::size_t n_positions) {
    std::size_t n_rows = 0;
    for (std::size_t i = 0; i < parts.size(); ++i) {
        const ComposePart &part = parts[i];
        const std::string name = "part " + std::to_string(i);
        const std::size_t n_held = part.source->n_tokens();
        if (part.first > n_held || part.n > n_held - part.first) {
            throw std::invalid_argument(name + ": rows [" + std::to_string(part.first) + ", +" +
                                        std::to_string(part.n) + ") of " + std::to_string(n_held));
        }
        if (!(part.source->shape() == like.shape())) {
            throw std::invalid_argument(name + ": layout " + part.source->shape().layout() + " is not " +
                                        like.shape().layout());
        }
        n_rows += part.n;
    }
    if (n_rows != n_positions) {
        throw std::invalid_argument(std::to_string(n_positions) + " positions for " + std::to_string(n_rows) +
                                    " rows");
    }
}

void check_positions(const std::int32_t *positions, std::size_t n) {
    for (std::size_t row = 0; row < n; ++row) {
        if (positions[row] < 0 || (row > 0 && positions[row] <= positions[row - 1])) {
            throw std::invalid_argument("positions do not ascend: " + std::to_string(positions[row]) + " at row " +
                                        std::to_string(row));
        }
    }
}

}  // namespace

std::size_t composed_size(const State &like, std::size_t n_tokens) {
    const KVShape &shape = like.shape();
    if (shape.n_layer() == 0) {
        throw std::invalid_argument("a state without cells has no layout to compose in");
    }
    if (n_tokens > std::size_t{std::numeric_limits<std::int32_t>::max()}) {
        throw std::invalid_argument(std::to_string(n_tokens) + " tokens do not fit a state");
    }
    std::size_t row_bytes = kCellBytes;
    for (std::size_t layer = 0; layer < shape.n_layer(); ++layer) {
        row_bytes += 2 * (std::size_t{shape.k_elements[layer]} + shape.v_elements[layer]);
    }
    if (n_tokens == 0) {
        return kEmptyBytes;
    }
    const std::size_t headers = kEmptyBytes + 2 * kWord + 2 * shape.n_layer() * kRowsHeader;
    if (n_tokens > (std::numeric_limits<std::size_t>::max() - headers) / row_bytes) {
        throw std::invalid_argument(std::to_string(n_tokens) + " tokens do not fit an address space");
    }
    return headers + n_tokens * row_bytes;
}

void compose(const State &like, const std::vector<ComposePart> &parts, const std::int32_t *positions,
             std::size_t n_positions, const Rope &rope, std::uint8_t *out, std::size_t n_threads) {
    static_cast<void>(composed_size(like, n_positions));  // refuses what has no layout
    const std::size_t n_layer = like.shape().n_layer();
    check_parts(like, parts, n_positions);
    check_positions(positions, n_positions);
    like.shape().require_heads(rope.head_dim);
    const Target target = write_headers(like, positions, n_positions, out);
    const std::vector<Piece> pieces = cut(parts);
    std::vector<Turn> turns(pieces.size());
    parallel_for(
        pieces.size(), [&](std::size_t i) { turns[i] = turn_of(pieces[i], rope, positions); }, n_threads);
    const KVShape &shape = like.shape();
    const auto write = [&](std::size_t item) {
        const std::size_t index = item / (2 * n_layer), layer = item / 2 % n_layer;
        const Piece &piece = pieces[index];
        if (item % 2 == 0) {
            piece.source->write_keys(layer, piece.first, piece.n, turns[index],
                                     target.keys[layer] + piece.row * shape.k_elements[layer]);
        } else {
            piece.source->write_values(layer, piece.first, piece.n,
                                       target.values[layer] + piece.row * shape.v_elements[layer]);
        }
    };
    parallel_for(pieces.size() * 2 * n_layer, write, n_threads);
}

}  // namespace localctx

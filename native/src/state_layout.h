// Where everything lies in a llama.cpp state blob of one sequence. Reads headers only; knows no rows' meaning.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace localctx {

// The rows of one tensor of one layer: one a cell, in cell order, `row_bytes` each, from `offset` of the blob.
struct StateRows {
    std::int32_t type = 0;  // ggml_type
    std::uint64_t row_bytes = 0;
    std::size_t offset = 0;
};

enum class SectionKind { attention, window, recurrent };

struct StateSection {
    SectionKind kind = SectionKind::attention;
    std::vector<std::int32_t> positions;  // of the cells, in cell order
    std::vector<StateRows> keys, values;  // one a layer; of a recurrent section: neither
};

struct StateLayout {
    std::uint32_t magic = 0;
    std::int32_t sequence = 0;
    std::vector<StateSection> sections;
};

constexpr std::int32_t kTypeF16 = 1;  // ggml_type

// Throws std::invalid_argument, saying what is not understood, unless all of the blob is.
StateLayout read_state_layout(const std::uint8_t *blob, std::size_t size);

}  // namespace localctx

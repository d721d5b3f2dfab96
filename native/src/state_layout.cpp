#include "state_layout.h"

#include <cstring>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string>

namespace localctx {
namespace {

// llama.cpp writes, for one sequence (llama_state_seq_get_data):
//   u32 magic, i32 sequence, then the sections of its memory:
//   attention or window: u32 n_stream, u32 n_cells, and unless there are none
//     a cell: i32 position, u32 n_sequences, [i32 x, i32 y, i32 token], i32 sequence...
//     u32 v_transposed, u32 n_layer, per layer K {i32 type, u64 row_bytes, rows}, per layer V the same
//   recurrent: u32 n_cells, a cell: i32 position, u32 0
//     u32 s_transposed, u32 n_layer, per layer that has them R {i32 type, u64 row_bytes, rows}, then S the same
// Nothing says which sections follow, so each reading is tried until one takes all bytes.

[[noreturn]] void refuse(const std::string &what) {
    throw std::invalid_argument("state blob not understood: " + what);
}

std::string count(std::uint64_t n, const char *noun) { return std::to_string(n) + " " + noun; }

class Reader {
  public:
    Reader(const std::uint8_t *blob, std::size_t size, std::size_t at) : blob_(blob), size_(size), at_(at) {}

    template <typename T>
    T word(const char *name) {
        require(sizeof(T), name);
        T value;
        std::memcpy(&value, blob_ + at_, sizeof value);
        at_ += sizeof value;
        return value;
    }

    void require(std::uint64_t n_bytes, const char *name) const {
        if (n_bytes > left()) {
            refuse(std::string(name) + " beyond the end (" + count(left(), "bytes left") + ")");
        }
    }

    // n rows of row_bytes each are skipped; returns where they start.
    std::size_t rows(std::uint64_t n, std::uint64_t row_bytes, const char *name) {
        if (n != 0 && row_bytes > left() / n) {
            refuse(std::string(name) + " rows beyond the end (" + count(n, "rows of ") + count(row_bytes, "bytes, ") +
                   count(left(), "bytes left") + ")");
        }
        const std::size_t start = at_;
        at_ += static_cast<std::size_t>(n * row_bytes);
        return start;
    }

    std::size_t left() const { return size_ - at_; }
    std::size_t at() const { return at_; }

  private:
    const std::uint8_t *blob_;
    std::size_t size_, at_;
};

enum class Cells { plain, extended };  // extended: with two more position words and a token

void read_cells(Reader &reader, Cells form, std::int32_t sequence, std::uint32_t n_cells, StateSection &section) {
    const std::uint64_t cell_bytes = form == Cells::plain ? 12 : 24;
    reader.require(cell_bytes * n_cells, "cells");
    section.positions.reserve(n_cells);
    for (std::uint32_t cell = 0; cell < n_cells; ++cell) {
        section.positions.push_back(reader.word<std::int32_t>("position"));
        if (section.positions.back() < 0) {
            refuse("a cell at position " + std::to_string(section.positions.back()));
        }
        const auto n_sequences = reader.word<std::uint32_t>("sequence count");
        if (n_sequences != 1) {
            refuse("a cell of " + count(n_sequences, "sequences"));
        }
        if (form == Cells::extended) {
            reader.rows(3, sizeof(std::int32_t), "cell extension");
        }
        if (reader.word<std::int32_t>("sequence") != sequence) {
            refuse("a cell of another sequence");
        }
    }
}

StateRows read_rows(Reader &reader, std::uint64_t n_cells, const char *name) {
    StateRows rows;
    rows.type = reader.word<std::int32_t>(name);
    rows.row_bytes = reader.word<std::uint64_t>(name);
    if (rows.type < 0 || rows.type > 255) {
        refuse(std::string(name) + " rows of type " + std::to_string(rows.type) + " and " +
               count(rows.row_bytes, "bytes"));
    }
    rows.offset = reader.rows(n_cells, rows.row_bytes, name);
    return rows;
}

StateSection read_attention(Reader &reader, Cells form, std::int32_t sequence) {
    StateSection section;
    const auto n_stream = reader.word<std::uint32_t>("stream count");
    if (n_stream != 1) {
        refuse(count(n_stream, "streams (the cache is not unified)"));
    }
    const auto n_cells = reader.word<std::uint32_t>("cell count");
    if (n_cells == 0) {
        return section;
    }
    read_cells(reader, form, sequence, n_cells, section);
    const auto transposed = reader.word<std::uint32_t>("V transposition");
    if (transposed == 1) {
        refuse("transposed V (flash attention is off)");
    }
    const auto n_layer = reader.word<std::uint32_t>("layer count");
    if (transposed != 0 || n_layer == 0 || n_layer > reader.left() / 12) {
        refuse("V transposition " + std::to_string(transposed) + ", " + count(n_layer, "layers"));
    }
    for (std::uint32_t layer = 0; layer < n_layer; ++layer) {
        section.keys.push_back(read_rows(reader, n_cells, "K"));
        if (section.keys.back().row_bytes == 0) {
            refuse("K rows of 0 bytes");
        }
    }
    if (reader.left() == 0) {
        refuse("no V rows (MLA)");
    }
    for (std::uint32_t layer = 0; layer < n_layer; ++layer) {
        section.values.push_back(read_rows(reader, n_cells, "V"));
    }
    return section;
}

// Which layers have rows is not written: they are read until the end, where a recurrent section always is.
StateSection read_recurrent(Reader &reader) {
    StateSection section;
    section.kind = SectionKind::recurrent;
    const auto n_cells = reader.word<std::uint32_t>("cell count");
    reader.require(std::uint64_t{n_cells} * 8, "recurrent cells");
    for (std::uint32_t cell = 0; cell < n_cells; ++cell) {
        section.positions.push_back(reader.word<std::int32_t>("position"));
        if (reader.word<std::uint32_t>("sequence count") != 0) {
            refuse("a recurrent cell with sequences");
        }
    }
    const auto transposed = reader.word<std::uint32_t>("S transposition");
    const auto n_layer = reader.word<std::uint32_t>("layer count");
    if (transposed != 0 || n_layer == 0) {
        refuse("recurrent S transposition " + std::to_string(transposed) + ", " + count(n_layer, "layers"));
    }
    std::uint64_t n_tensors = 0;
    for (; reader.left() != 0; ++n_tensors) {
        if (n_tensors == 2 * std::uint64_t{n_layer}) {
            refuse(count(reader.left(), "bytes after the recurrent section"));
        }
        read_rows(reader, n_cells, "recurrent");
    }
    if (n_tensors % 2 != 0) {
        refuse("recurrent layers of which one has R or S alone");
    }
    return section;
}

// The sections after the first one; std::nullopt where no reading takes all bytes.
std::optional<std::vector<StateSection>> read_rest(Reader reader, Cells form, std::int32_t sequence,
                                                   bool after_window) {
    if (reader.left() == 0) {
        return std::vector<StateSection>{};
    }
    if (!after_window) {
        try {
            Reader further = reader;
            StateSection window = read_attention(further, form, sequence);
            window.kind = SectionKind::window;
            if (auto rest = read_rest(further, form, sequence, true)) {
                rest->insert(rest->begin(), std::move(window));
                return rest;
            }
        } catch (const std::invalid_argument &) {
            // not a window section: a recurrent one is tried
        }
    }
    try {
        return std::vector<StateSection>{read_recurrent(reader)};
    } catch (const std::invalid_argument &) {
        return std::nullopt;
    }
}

std::vector<StateSection> read_from_attention(Reader reader, Cells form, std::int32_t sequence) {
    StateSection first = read_attention(reader, form, sequence);
    auto rest = read_rest(reader, form, sequence, false);
    if (!rest) {
        refuse(count(reader.left(), "bytes after the attention section"));
    }
    rest->insert(rest->begin(), std::move(first));
    return *std::move(rest);
}

// What `read` gives; std::nullopt where it refuses.
template <typename Read>
auto attempt(const Read &read) -> std::optional<decltype(read())> {
    try {
        return read();
    } catch (const std::invalid_argument &) {
        return std::nullopt;
    }
}

}  // namespace

StateLayout read_state_layout(const std::uint8_t *blob, std::size_t size) {
    StateLayout layout;
    Reader reader(blob, size, 0);
    layout.magic = reader.word<std::uint32_t>("magic");
    layout.sequence = reader.word<std::int32_t>("sequence");
    try {
        layout.sections = read_from_attention(reader, Cells::plain, layout.sequence);
        return layout;
    } catch (const std::invalid_argument &) {
        if (attempt([&] { return read_from_attention(reader, Cells::extended, layout.sequence); })) {
            refuse("cells with two-dimensional positions or tokens (M-RoPE)");
        }
        if (auto section = attempt([&] { Reader from = reader; return read_recurrent(from); })) {
            layout.sections.push_back(*std::move(section));
            return layout;
        }
        throw;
    }
}

}  // namespace localctx

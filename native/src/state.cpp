#include "state.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <string>
#include <utility>

namespace localctx {
namespace {

std::uint32_t f16_elements(const StateRows &rows, const char *name, std::size_t layer) {
    const std::string where = std::string(name) + " rows of layer " + std::to_string(layer);
    if (rows.type != kTypeF16) {
        throw std::invalid_argument("state blob not understood: " + where + " are of ggml type " +
                                    std::to_string(rows.type) + ", not f16");
    }
    if (rows.row_bytes % 2 != 0 || rows.row_bytes / 2 > std::numeric_limits<std::uint32_t>::max()) {
        throw std::invalid_argument("state blob not understood: " + where + " have " +
                                    std::to_string(rows.row_bytes) + " bytes");
    }
    return static_cast<std::uint32_t>(rows.row_bytes / 2);
}

KVShape shape_of(const StateSection &section) {
    KVShape shape;
    for (std::size_t layer = 0; layer < section.keys.size(); ++layer) {
        shape.k_elements.push_back(f16_elements(section.keys[layer], "K", layer));
        shape.v_elements.push_back(f16_elements(section.values[layer], "V", layer));
    }
    return shape;
}

// The cells in order of position; empty when they already are.
std::vector<std::uint32_t> cells_by_position(const std::vector<std::int32_t> &positions) {
    if (std::is_sorted(positions.begin(), positions.end())) {
        return {};
    }
    std::vector<std::uint32_t> cells(positions.size());
    std::iota(cells.begin(), cells.end(), 0U);
    std::stable_sort(cells.begin(), cells.end(),
                     [&](std::uint32_t a, std::uint32_t b) { return positions[a] < positions[b]; });
    return cells;
}

}  // namespace

State::State(const std::uint8_t *blob, std::size_t size, std::shared_ptr<const void> owner)
    : blob_(blob), owner_(std::move(owner)), layout_(read_state_layout(blob, size)) {
    if (reinterpret_cast<std::uintptr_t>(blob) % alignof(std::uint16_t) != 0) {
        throw std::invalid_argument("state blob at an odd address");
    }
    const StateSection &first = layout_.sections.front();
    shape_ = shape_of(first);
    cells_ = cells_by_position(first.positions);
    positions_ = first.positions;
    std::sort(positions_.begin(), positions_.end());
}

const KVShape &State::shape() const {
    if (layout_.sections.size() != 1 || layout_.sections.front().kind != SectionKind::attention) {
        std::string names;
        for (const SectionKind kind : sections()) {
            names += (names.empty() ? "" : " + ") + std::string(section_name(kind));
        }
        throw std::invalid_argument("a state of sections " + names + " cannot be taken apart: only attention can");
    }
    return shape_;
}

std::vector<SectionKind> State::sections() const {
    std::vector<SectionKind> kinds;
    for (const StateSection &section : layout_.sections) {
        kinds.push_back(section.kind);
    }
    return kinds;
}

const std::uint16_t *State::row(const StateRows &rows, std::size_t token) const {
    const std::size_t cell = cells_.empty() ? token : cells_[token];
    return reinterpret_cast<const std::uint16_t *>(blob_ + rows.offset + cell * rows.row_bytes);
}

void State::write_keys(std::size_t layer, std::size_t first, std::size_t n, const Turn &turn,
                       std::uint16_t *out) const {
    const StateRows &rows = layout_.sections.front().keys[layer];
    const std::size_t n_elements = shape_.k_elements[layer];
    if (turn.identity && cells_.empty()) {
        std::copy_n(row(rows, first), n * n_elements, out);
        return;
    }
    for (std::size_t i = 0; i < n; ++i) {
        turn_row_f16(turn, i, row(rows, first + i), out + i * n_elements, n_elements);
    }
}

void State::write_values(std::size_t layer, std::size_t first, std::size_t n, std::uint16_t *out) const {
    const StateRows &rows = layout_.sections.front().values[layer];
    const std::size_t n_elements = shape_.v_elements[layer];
    if (cells_.empty()) {
        std::copy_n(row(rows, first), n * n_elements, out);
        return;
    }
    for (std::size_t i = 0; i < n; ++i) {
        std::copy_n(row(rows, first + i), n_elements, out + i * n_elements);
    }
}

const char *section_name(SectionKind kind) {
    switch (kind) {
        case SectionKind::window: return "window";
        case SectionKind::recurrent: return "recurrent";
        default: return "attention";
    }
}

}  // namespace localctx

// State blobs for tests, written as llama.cpp writes them.
#pragma once

#include <cstdint>
#include <cstring>
#include <vector>

struct Bytes {
    std::vector<std::uint8_t> data;

    template <typename T>
    Bytes &word(T value) {
        const std::size_t at = data.size();
        data.resize(at + sizeof value);
        std::memcpy(data.data() + at, &value, sizeof value);
        return *this;
    }
};

// The f16 pattern that stands at (layer, position, element) of K or V in the blobs below.
inline std::uint16_t pattern(std::size_t layer, std::int32_t position, std::size_t element, bool is_key) {
    const std::size_t mixed = layer * 7919 + static_cast<std::size_t>(position) * 131 + element * 17 + (is_key ? 5 : 0);
    return static_cast<std::uint16_t>(mixed % 0x7000);  // finite
}

struct AttentionForm {
    std::vector<std::int32_t> positions{0, 1, 2};
    std::vector<std::uint32_t> k_elements{8, 8}, v_elements{8, 8};
    std::uint32_t n_stream = 1, n_sequences = 1, transposed = 0;
    std::int32_t type = 1, sequence = 0;
    bool extended = false, has_values = true;
};

inline void add_attention(Bytes &out, const AttentionForm &form) {
    out.word(form.n_stream).word(static_cast<std::uint32_t>(form.positions.size()));
    if (form.positions.empty()) {
        return;
    }
    for (const std::int32_t position : form.positions) {
        out.word(position).word(form.n_sequences);
        if (form.extended) {
            out.word(std::int32_t{0}).word(position).word(std::int32_t{-1});
        }
        out.word(form.sequence);
    }
    out.word(form.transposed).word(static_cast<std::uint32_t>(form.k_elements.size()));
    for (const bool is_key : {true, false}) {
        const auto &sizes = is_key ? form.k_elements : form.v_elements;
        for (std::size_t layer = 0; layer < sizes.size() && (is_key || form.has_values); ++layer) {
            out.word(form.type).word(std::uint64_t{sizes[layer]} * 2);
            for (const std::int32_t position : form.positions) {
                for (std::size_t element = 0; element < sizes[layer]; ++element) {
                    out.word(pattern(layer, position, element, is_key));
                }
            }
        }
    }
}

// One cell; layers 0 and 2 of `n_layer` have rows.
inline void add_recurrent(Bytes &out, std::uint32_t n_layer = 3) {
    out.word(std::uint32_t{1}).word(std::int32_t{41}).word(std::uint32_t{0});
    out.word(std::uint32_t{0}).word(n_layer);
    for (const std::uint64_t row_bytes : {12U, 12U, 40U, 40U}) {
        out.word(std::int32_t{0}).word(row_bytes);
        out.data.resize(out.data.size() + row_bytes, 0x3C);
    }
}

inline Bytes header(std::int32_t sequence = 0) {
    Bytes out;
    out.word(std::uint32_t{0xAF143CD8}).word(sequence);
    return out;
}

inline Bytes plain_blob(const AttentionForm &form = {}) {
    Bytes out = header(form.sequence);
    add_attention(out, form);
    return out;
}

#include "kv_source.h"

#include <algorithm>
#include <stdexcept>

namespace localctx {
namespace {

std::string sizes(const std::vector<std::uint32_t> &elements) {
    if (elements.empty()) {
        return "0";
    }
    if (std::all_of(elements.begin(), elements.end(), [&](std::uint32_t n) { return n == elements.front(); })) {
        return std::to_string(elements.size()) + "x" + std::to_string(elements.front());
    }
    std::string text;
    for (const std::uint32_t n : elements) {
        text += (text.empty() ? "" : ",") + std::to_string(n);
    }
    return text;
}

}  // namespace

std::string KVShape::layout() const { return "f16 K " + sizes(k_elements) + " V " + sizes(v_elements); }

void KVShape::require_heads(std::uint32_t head_dim) const {
    for (std::size_t layer = 0; layer < n_layer(); ++layer) {
        if (head_dim == 0 || k_elements[layer] % head_dim != 0) {
            throw std::invalid_argument("layer " + std::to_string(layer) + ": K rows of " +
                                        std::to_string(k_elements[layer]) + " elements are not made of heads of " +
                                        std::to_string(head_dim));
        }
    }
}

}  // namespace localctx

#include "query_capture.h"

#include <cstring>
#include <exception>
#include <stdexcept>
#include <string>

namespace localctx {
namespace {

constexpr char kPrefix[] = "Qcur-";
constexpr std::size_t kMaxLayer = 1U << 20;

// The layer of a name such as "Qcur-12"; false for every other name, "Qcur-12 (reshaped)" too.
bool parse_name(const char *name, std::size_t *layer) {
    if (name == nullptr || std::strncmp(name, kPrefix, sizeof(kPrefix) - 1) != 0) {
        return false;
    }
    const char *digit = name + sizeof(kPrefix) - 1;
    if (*digit == '\0') {
        return false;
    }
    std::size_t number = 0;
    for (; *digit != '\0'; ++digit) {
        if (*digit < '0' || *digit > '9' || number > kMaxLayer) {
            return false;
        }
        number = number * 10 + static_cast<std::size_t>(*digit - '0');
    }
    *layer = number;
    return true;
}

}  // namespace

QueryCapture::QueryCapture(const TensorFunctions &functions, std::vector<std::size_t> layers) : functions_(functions) {
    if (functions.name == nullptr || functions.n_bytes == nullptr || functions.get == nullptr) {
        throw std::invalid_argument("a function of ggml is missing");
    }
    for (const std::size_t layer : layers) {
        layers_.push_back({layer, {}});
    }
}

void QueryCapture::clear() {
    has_failed_ = false;
    for (Layer &layer : layers_) {
        layer.values.clear();
    }
}

QueryCapture::Layer *QueryCapture::find(const char *name) {
    std::size_t number = 0;
    if (!parse_name(name, &number)) {
        return nullptr;
    }
    for (Layer &layer : layers_) {
        if (layer.number == number) {
            return &layer;
        }
    }
    return nullptr;
}

bool QueryCapture::take(void *tensor, bool ask) noexcept {
    Layer *const layer = find(functions_.name(tensor));
    if (ask || layer == nullptr) {
        return ask ? layer != nullptr : true;
    }
    try {
        const std::size_t n_bytes = functions_.n_bytes(tensor);
        layer->values.resize(n_bytes / sizeof(float));
        functions_.get(tensor, layer->values.data(), 0, layer->values.size() * sizeof(float));
    } catch (const std::exception &) {  // no memory; must not pass through C
        has_failed_ = true;
    }
    return true;
}

std::vector<float> QueryCapture::unrotated(std::size_t layer, const Rope &rope, const std::int32_t *positions,
                                           std::size_t n_tokens) const {
    const Layer *found = nullptr;
    for (const Layer &one : layers_) {
        found = one.number == layer ? &one : found;
    }
    if (found == nullptr) {
        throw std::out_of_range("layer " + std::to_string(layer) + " was not asked for");
    }
    const std::size_t n_values = found->values.size();
    if (has_failed_ || n_values == 0 || n_tokens == 0 || n_values % (n_tokens * rope.head_dim) != 0) {
        throw std::runtime_error("layer " + std::to_string(layer) + "'s queries are not there: " +
                                 std::to_string(n_values) + " values for " + std::to_string(n_tokens) + " tokens");
    }
    std::vector<float> rows = found->values;
    const Turn turn = turn_from(rope, positions, n_tokens);
    const std::size_t n_elements = n_values / n_tokens;
    for (std::size_t row = 0; row < n_tokens; ++row) {
        turn_row(turn, row, rows.data() + row * n_elements, n_elements);
    }
    return rows;
}

}  // namespace localctx

extern "C" bool localctx_capture_callback(void *tensor, bool ask, void *data) {
    return static_cast<localctx::QueryCapture *>(data)->take(tensor, ask);
}

// The queries of chosen layers, copied while a graph is computed by a C callback. Knows no Python; ggml's functions
// are handed over.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "rope.h"

// Of ggml_backend_sched_eval_callback's type; `data` is QueryCapture::data().
extern "C" bool localctx_capture_callback(void *tensor, bool ask, void *data);

namespace localctx {

// ggml_get_name, ggml_nbytes and ggml_backend_tensor_get.
struct TensorFunctions {
    const char *(*name)(const void *) = nullptr;
    std::size_t (*n_bytes)(const void *) = nullptr;
    void (*get)(const void *, void *, std::size_t, std::size_t) = nullptr;
};

class QueryCapture {
  public:
    // Throws std::invalid_argument where a function is missing.
    QueryCapture(const TensorFunctions &functions, std::vector<std::size_t> layers);

    // What the callback is to be given; valid as long as this object lives.
    void *data() { return this; }
    // Forgets what was captured; to be called before every evaluation.
    void clear();
    // The callback's body: whether the tensor is wanted (ask), or its copy. Of tensors of one name the last computed
    // one stays: queries are named before and after bias and rotation. Never throws.
    bool take(void *tensor, bool ask) noexcept;
    // The queries of the last evaluation's tokens turned back from their positions, [n_tokens, n_heads, head_dim]: the
    // number of heads comes from what was captured. Throws std::out_of_range for a layer that was not asked for,
    // std::runtime_error where nothing was captured or its size does not fit.
    std::vector<float> unrotated(std::size_t layer, const Rope &rope, const std::int32_t *positions,
                                 std::size_t n_tokens) const;

  private:
    struct Layer {
        std::size_t number = 0;
        std::vector<float> values;
    };
    Layer *find(const char *name);

    TensorFunctions functions_;
    std::vector<Layer> layers_;
    bool has_failed_ = false;
};

}  // namespace localctx

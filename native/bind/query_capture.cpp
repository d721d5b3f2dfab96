#include "query_capture.h"

#include <nanobind/stl/vector.h>

#include <algorithm>

#include "bind.h"

namespace nb = nanobind;

namespace localctx {
namespace {

void make(QueryCapture *self, std::uintptr_t name, std::uintptr_t n_bytes, std::uintptr_t get,
          std::vector<std::size_t> layers) {
    TensorFunctions functions;
    functions.name = reinterpret_cast<decltype(functions.name)>(name);
    functions.n_bytes = reinterpret_cast<decltype(functions.n_bytes)>(n_bytes);
    functions.get = reinterpret_cast<decltype(functions.get)>(get);
    new (self) QueryCapture(functions, std::move(layers));
}

nb::object unrotated(const QueryCapture &capture, std::size_t layer, const Rope &rope, const Positions &positions) {
    const std::size_t n_tokens = positions.shape(0);
    const std::vector<float> rows = capture.unrotated(layer, rope, positions.data(), n_tokens);
    const std::size_t n_heads = rows.size() / n_tokens / rope.head_dim, head_dim = rope.head_dim;
    const auto out = ArrayOut<float>::make("float32", n_tokens, n_heads, head_dim);
    std::copy(rows.begin(), rows.end(), out.data);
    return out.array;
}

}  // namespace

void bind_query_capture(nb::module_ &module) {
    nb::class_<QueryCapture>(module, "QueryCapture",
                             "The queries of some layers, copied by a C evaluation callback; must outlive the context "
                             "that was given its addresses.")
        .def("__init__", &make, nb::arg("name"), nb::arg("n_bytes"), nb::arg("get"), nb::arg("layers"))
        .def_prop_ro("callback_address",
                     [](QueryCapture &) { return reinterpret_cast<std::uintptr_t>(&localctx_capture_callback); })
        .def_prop_ro("data_address",
                     [](QueryCapture &capture) { return reinterpret_cast<std::uintptr_t>(capture.data()); })
        .def("clear", &QueryCapture::clear, "Forget what was captured; before every evaluation.")
        .def("unrotated", &unrotated, nb::arg("layer"), nb::arg("rope"), nb::arg("positions").noconvert(),
             "Queries of the last evaluation turned back from their positions, [n_tokens, n_heads, head_dim].");
}

}  // namespace localctx

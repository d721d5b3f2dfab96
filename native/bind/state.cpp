#include "state.h"

#include <algorithm>
#include <string>

#include "bind.h"

namespace nb = nanobind;

namespace localctx {
namespace {

void make(State *self, nb::handle blob) {
    auto bytes = keep_bytes(blob);
    const std::uint8_t *const data = bytes->data();
    const std::size_t size = bytes->size();
    new (self) State(data, size, std::move(bytes));
}

nb::object positions(const State &state) {
    const auto out = ArrayOut<std::int32_t>::make("int32", state.n_tokens());
    std::copy_n(state.positions(), state.n_tokens(), out.data);
    return out.array;
}

nb::tuple sections(const State &state) {
    nb::list names;
    for (const SectionKind kind : state.sections()) {
        names.append(section_name(kind));
    }
    return nb::tuple(names);
}

nb::object rows(const State &state, std::int64_t layer, bool is_key) {
    const KVShape &shape = state.shape();
    if (layer < 0 || static_cast<std::uint64_t>(layer) >= shape.n_layer()) {
        throw nb::index_error(("no layer " + std::to_string(layer)).c_str());
    }
    const auto index = static_cast<std::size_t>(layer);
    const std::size_t n_elements = is_key ? shape.k_elements[index] : shape.v_elements[index];
    const auto out = ArrayOut<std::uint16_t>::make("float16", state.n_tokens(), n_elements);
    const nb::gil_scoped_release released;
    if (is_key) {
        Turn as_they_are;
        as_they_are.identity = true;
        state.write_keys(index, 0, state.n_tokens(), as_they_are, out.data);
    } else {
        state.write_values(index, 0, state.n_tokens(), out.data);
    }
    return out.array;
}

}  // namespace

void bind_state(nb::module_ &module) {
    nb::class_<State, KVSource>(module, "State", "A parsed llama.cpp state blob of one sequence; rows are by position.")
        .def("__init__", &make, nb::arg("blob"))
        .def_prop_ro("n_tokens", &State::n_tokens)
        .def_prop_ro("n_layer", &State::n_layer)
        .def_prop_ro("positions", &positions, "Ascending.")
        .def_prop_ro("layout", [](const State &state) { return nb::str(state.shape().layout().c_str()); })
        .def_prop_ro("sections", &sections, "What the blob holds, in order.")
        .def("keys", [](const State &state, std::int64_t layer) { return rows(state, layer, true); }, nb::arg("layer"),
             "A copy, [n_tokens, row elements], rotated as in the cache.")
        .def("values", [](const State &state, std::int64_t layer) { return rows(state, layer, false); },
             nb::arg("layer"), "A copy, [n_tokens, row elements].");
}

}  // namespace localctx

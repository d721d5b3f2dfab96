#include "codec.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <cmath>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string>

#include "bind.h"

namespace nb = nanobind;

namespace localctx {
namespace {

void make(Run *self, nb::handle data) {
    auto bytes = keep_bytes(data);
    const std::uint8_t *const at = bytes->data();
    const std::size_t size = bytes->size();
    new (self) Run(at, size, std::move(bytes));
}

nb::object rows(const Run &run, std::int64_t layer, bool is_key) {
    const KVShape &shape = run.shape();
    if (layer < 0 || static_cast<std::uint64_t>(layer) >= shape.n_layer()) {
        throw nb::index_error(("no layer " + std::to_string(layer)).c_str());
    }
    const auto index = static_cast<std::size_t>(layer);
    const std::size_t n_elements = is_key ? shape.k_elements[index] : shape.v_elements[index];
    const auto out = ArrayOut<std::uint16_t>::make("float16", run.n_tokens(), n_elements);
    const nb::gil_scoped_release released;
    if (is_key) {
        Turn as_they_are;
        as_they_are.identity = true;
        run.write_keys(index, 0, run.n_tokens(), as_they_are, out.data);
    } else {
        run.write_values(index, 0, run.n_tokens(), out.data);
    }
    return out.array;
}

std::size_t not_negative(std::int64_t value, const char *name) {
    if (value < 0) {
        throw std::invalid_argument(std::string(name) + " must not be negative");
    }
    return static_cast<std::size_t>(value);
}

EncodeOptions options(const std::string &codec, std::int64_t head_group, std::optional<double> error_bound,
                      std::int64_t n_threads) {
    EncodeOptions options;
    options.codec = codec_named(codec);
    if (head_group < 1 || head_group > std::numeric_limits<std::uint32_t>::max()) {
        throw std::invalid_argument("head_group must be at least 1");
    }
    options.head_group = static_cast<std::uint32_t>(head_group);
    if (error_bound) {
        const auto nearest = static_cast<float>(*error_bound);
        options.error_bound = nearest > *error_bound ? std::nextafter(nearest, 0.0F) : nearest;
    }
    options.n_threads = not_negative(n_threads, "n_threads");
    return options;
}

nb::bytes encode_rows(const KVSource &state, std::int64_t first, std::int64_t n_tokens, const Rope &rope,
                      const std::string &codec, std::int64_t head_group, std::optional<double> error_bound,
                      std::int64_t n_threads) {
    const EncodeOptions how = options(codec, head_group, error_bound, n_threads);
    const std::size_t from = not_negative(first, "first"), n = not_negative(n_tokens, "n_tokens");
    std::vector<std::uint8_t> run;
    {
        const nb::gil_scoped_release released;
        run = encode(state, from, n, rope, how);
    }
    return nb::bytes(run.data(), run.size());
}

}  // namespace

void bind_codec(nb::module_ &module) {
    nb::class_<Run, KVSource>(module, "Run", "An encoded run: un-rotated keys, and values, of consecutive tokens.")
        .def("__init__", &make, nb::arg("data"))
        .def_prop_ro("n_tokens", &Run::n_tokens)
        .def_prop_ro("n_layer", [](const Run &run) { return run.shape().n_layer(); })
        .def_prop_ro("layout", [](const Run &run) { return nb::str(run.shape().layout().c_str()); })
        .def_prop_ro("codec", [](const Run &run) { return codec_name(run.codec()); })
        .def_prop_ro("head_group", &Run::head_group, "KV heads that share scale and zero point.")
        .def_prop_ro("max_error",
                     [](const Run &run) { return nb::make_tuple(run.max_key_error(), run.max_value_error()); },
                     "Largest absolute error of any key (un-rotated) and any value.")
        .def_prop_ro("n_outliers", &Run::n_outliers, "Values kept in f16.")
        .def("keys", [](const Run &run, std::int64_t layer) { return rows(run, layer, true); }, nb::arg("layer"),
             "Decoded, un-rotated, [n_tokens, row elements].")
        .def("values", [](const Run &run, std::int64_t layer) { return rows(run, layer, false); }, nb::arg("layer"),
             "Decoded, [n_tokens, row elements].");

    nb::list names;
    for (const Codec codec : kCodecs) {
        names.append(codec_name(codec));
    }
    module.attr("CODECS") = nb::tuple(names);
    module.def("encode", &encode_rows, nb::arg("state"), nb::arg("first"), nb::arg("n_tokens"), nb::arg("rope"),
               nb::arg("codec"), nb::kw_only(), nb::arg("head_group") = 1, nb::arg("error_bound") = nb::none(),
               nb::arg("n_threads") = 0, "Rows of a state (or of a run), un-rotated and encoded.");
}

}  // namespace localctx

#include "utf8_index.h"

#include <nanobind/stl/optional.h>

#include "bind.h"

namespace nb = nanobind;

namespace localctx {
namespace {

bool feed(Utf8Index &index, nb::handle data) {
    const ByteView view(data);
    const nb::gil_scoped_release released;
    return index.feed(view.data(), view.size());
}

nb::tuple as_tuple(const Checkpoint &checkpoint) { return nb::make_tuple(checkpoint.byte, checkpoint.code_point); }

}  // namespace

void bind_utf8_index(nb::module_ &module) {
    nb::class_<Utf8Index>(module, "Utf8Index",
                          "Byte <-> code-point map of UTF-8 text that is fed once, in order, in pieces of any size.")
        .def(nb::init<std::uint64_t>(), nb::arg("step") = 4096)
        .def("feed", &feed, nb::arg("data"), "Validate and count the next bytes; False once invalid.")
        .def("finish", &Utf8Index::finish, "End of text; False when it ends inside a character.")
        .def_prop_ro("n_bytes", &Utf8Index::n_bytes)
        .def_prop_ro("n_code_points", &Utf8Index::n_code_points)
        .def_prop_ro("n_nul", &Utf8Index::n_nul)
        .def_prop_ro("error_offset", &Utf8Index::error_offset)
        .def("checkpoint_for_code_point",
             [](const Utf8Index &index, std::int64_t code_point) {
                 return as_tuple(index.checkpoint_for_code_point(code_point));
             },
             nb::arg("code_point"), "(byte, code point) of the last checkpoint at or before `code_point`.");
}

}  // namespace localctx

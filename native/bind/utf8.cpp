#include "utf8.h"

#include "bind.h"

namespace nb = nanobind;

namespace localctx {
namespace {

std::size_t advance(nb::handle data, std::int64_t n_code_points) {
    if (n_code_points < 0) {
        throw nb::value_error("n_code_points must not be negative");
    }
    const ByteView view(data);
    const nb::gil_scoped_release released;
    return utf8_advance(view.data(), view.size(), static_cast<std::uint64_t>(n_code_points));
}

}  // namespace

void bind_utf8(nb::module_ &module) {
    module.def("utf8_advance", &advance, nb::arg("data"), nb::arg("n_code_points"),
               "Bytes taken by the first `n_code_points` of `data`; len(data) when it holds fewer.");
}

}  // namespace localctx

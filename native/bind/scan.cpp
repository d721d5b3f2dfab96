#include "scan.h"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include <stdexcept>
#include <utility>
#include <vector>

#include "bind.h"

namespace nb = nanobind;

namespace localctx {
namespace {

std::size_t index_of(std::int64_t value) {
    if (value < 0) {
        throw std::invalid_argument("layers, heads and rows count from 0");
    }
    return static_cast<std::size_t>(value);
}

nb::tuple encode_column(const KVSource &source, std::int64_t first, std::int64_t n_tokens, const Rope &rope,
                        const std::vector<std::pair<std::int64_t, std::int64_t>> &pairs, std::size_t n_threads) {
    std::vector<ScanHead> heads;
    for (const auto &[layer, head] : pairs) {
        heads.push_back({index_of(layer), index_of(head)});
    }
    const std::size_t start = index_of(first), n = index_of(n_tokens);
    if (start > source.n_tokens() || n > source.n_tokens() - start) {
        throw std::invalid_argument("rows that the source does not have");  // before their memory is asked for
    }
    const auto codes = ArrayOut<std::int8_t>::make("int8", n, heads.size(), rope.head_dim);
    const auto scales = ArrayOut<float>::make("float32", n, heads.size());
    {
        const nb::gil_scoped_release released;
        scan_encode(source, start, n, rope, heads, codes.data, scales.data, n_threads);
    }
    return nb::make_tuple(codes.array, scales.array);
}

nb::object scan_column(const ArrayIn<std::int8_t, 3> &codes, const ArrayIn<float, 2> &scales,
                       const ArrayIn<float, 3> &queries, const ArrayIn<std::int64_t, 1> &block_starts,
                       std::size_t n_threads) {
    const ScanColumn column{codes.data(), scales.data(), codes.shape(0), codes.shape(1), codes.shape(2)};
    if (scales.shape(0) != column.n_tokens || scales.shape(1) != column.n_heads ||
        queries.shape(1) != column.n_heads || queries.shape(2) != column.head_dim || column.head_dim == 0) {
        throw std::invalid_argument(
            "codes are [n_tokens, n_heads, head_dim], scales [n_tokens, n_heads], queries [n_queries, n_heads, "
            "head_dim]");
    }
    if (block_starts.shape(0) == 0) {
        throw std::invalid_argument("block_starts are [n_blocks + 1]");
    }
    const std::size_t n_queries = queries.shape(0), n_blocks = block_starts.shape(0) - 1;
    const auto out = ArrayOut<float>::make("float32", n_queries, column.n_heads, n_blocks);
    const nb::gil_scoped_release released;
    scan(column, queries.data(), n_queries, block_starts.data(), n_blocks, out.data, n_threads);
    return out.array;
}

}  // namespace

void bind_scan(nb::module_ &module) {
    module.def("scan_encode", &encode_column, nb::arg("source"), nb::arg("first"), nb::arg("n_tokens"), nb::arg("rope"),
               nb::arg("heads"), nb::kw_only(), nb::arg("n_threads") = 0,
               "INT8 keys of some (layer, KV head) pairs, un-rotated: codes and scales.");
    module.def("scan", &scan_column, nb::arg("codes").noconvert(), nb::arg("scales").noconvert(),
               nb::arg("queries").noconvert(), nb::arg("block_starts").noconvert(), nb::kw_only(),
               nb::arg("n_threads") = 0, "The largest query . key of each query, head and block.");
}

}  // namespace localctx

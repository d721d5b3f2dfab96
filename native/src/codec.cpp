// Encoding: sections are made one by one, in parallel, and put behind a header.
#include "codec.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "codec_format.h"
#include "codec_section.h"
#include "half.h"
#include "thread_pool.h"

namespace localctx {
namespace {

void require(bool good, const char *why) {
    if (!good) {
        throw std::invalid_argument(why);
    }
}

void check(const KVSource &source, std::size_t first, std::size_t n, const Rope &rope,
           const EncodeOptions &options) {
    require(n >= 1 && n <= kMaxTokens, "a run holds 1 to 65535 tokens");
    require(first <= source.n_tokens() && n <= source.n_tokens() - first, "the source has not so many rows");
    require(options.head_group >= 1, "head_group must be at least 1");
    require(options.error_bound >= 0, "error_bound must not be negative");  // NaN too is refused
    require(rope.head_dim >= 1, "the rotation has no head size");
    const KVShape &shape = source.shape();
    for (std::size_t layer = 0; layer < shape.n_layer(); ++layer) {
        const std::uint32_t k_elements = shape.k_elements[layer], v_elements = shape.v_elements[layer];
        const std::uint32_t n_heads = k_elements / rope.head_dim;
        require(n_heads > 0 && k_elements % rope.head_dim == 0 && v_elements % n_heads == 0,
                "rows are no whole number of heads");
        require(std::uint64_t{std::max(k_elements, v_elements)} * n <= UINT32_MAX &&
                    std::max(k_elements, v_elements) <= kMaxElements,
                "rows are too long");
    }
}

class Encoder {
  public:
    Encoder(const KVSource &source, std::size_t first, std::size_t n, const Rope &rope,
            const EncodeOptions &options)
        : source_(source), options_(options), head_dim_(rope.head_dim), first_(first), n_(n) {
        if (source.positions() == nullptr) {
            turn_.identity = true;
        } else {
            turn_ = turn_from(rope, source.positions() + first, n);
        }
        as_kept_.identity = true;
    }

    std::vector<std::uint8_t> run() {
        std::vector<EncodedSection> sections(2 * source_.shape().n_layer());
        parallel_for(
            sections.size(), [&](std::size_t i) { sections[i] = encode(i / 2, i % 2 == 0); }, options_.n_threads);
        return put_together(sections);
    }

  private:
    EncodedSection encode(std::size_t layer, bool is_key) const {
        const KVShape &shape = source_.shape();
        const std::size_t n_heads = shape.k_elements[layer] / head_dim_;
        Section section;
        section.codec = options_.codec;
        section.is_key = is_key;
        section.n_tokens = n_;
        section.n_elements = is_key ? shape.k_elements[layer] : shape.v_elements[layer];
        section.width = section.n_elements / n_heads;
        section.head_group = options_.head_group;
        EncodedSection encoded = encode(section, layer);
        section.codec = Codec::f16;
        if (encoded.section.n_outliers > 0 && encoded.section.size() >= section.size()) {
            return encode(section, layer);  // mostly outliers: all in f16 is smaller
        }
        return encoded;
    }

    EncodedSection encode(const Section &section, std::size_t layer) const {
        SectionEncoder encoder(section, options_.error_bound);
        const std::size_t n_elements = section.n_elements;
        // Not filled with zeros, as a vector would be.
        const std::unique_ptr<std::uint16_t[]> halves(new std::uint16_t[kBlockTokens * n_elements]);
        const std::unique_ptr<float[]> values(new float[kBlockTokens * n_elements]);
        for (std::size_t row = 0; row < n_; row += kBlockTokens) {
            const std::size_t n_rows = std::min(kBlockTokens, n_ - row);
            if (section.is_key) {
                source_.write_keys(layer, first_ + row, n_rows, as_kept_, halves.get());
            } else {
                source_.write_values(layer, first_ + row, n_rows, halves.get());
            }
            halves_to_floats(halves.get(), values.get(), n_rows * n_elements);
            for (std::size_t i = 0; section.is_key && i < n_rows; ++i) {
                turn_row(turn_, row + i, values.get() + i * n_elements, n_elements);
            }
            encoder.add(values.get(), n_rows);
        }
        return encoder.finish();
    }

    std::vector<std::uint8_t> put_together(const std::vector<EncodedSection> &sections) const {
        const KVShape &shape = source_.shape();
        std::size_t size = align_up(kHeaderSize + shape.n_layer() * kEntrySize);
        for (const EncodedSection &encoded : sections) {
            size += encoded.bytes.size();
        }
        std::vector<std::uint8_t> out(size);
        std::size_t end = align_up(kHeaderSize + shape.n_layer() * kEntrySize);
        std::uint64_t n_outliers = 0;
        float errors[2] = {};
        for (std::size_t i = 0; i < sections.size(); ++i) {
            const Section &section = sections[i].section;
            std::uint8_t *const entry = out.data() + kHeaderSize + i / 2 * kEntrySize;
            std::uint8_t *const place = entry + (section.is_key ? 8 : 24);
            store(entry + (section.is_key ? 0 : 4), static_cast<std::uint32_t>(section.n_elements));
            store(place, std::uint64_t{end});
            store(place + 8, static_cast<std::uint32_t>(section.n_outliers));
            store(place + 12, static_cast<std::uint32_t>(section.codec));
            std::copy(sections[i].bytes.begin(), sections[i].bytes.end(),
                      out.begin() + static_cast<std::ptrdiff_t>(end));
            end += sections[i].bytes.size();
            n_outliers += section.codec == options_.codec ? section.n_outliers : section.n_values();
            errors[i % 2] = std::max(errors[i % 2], sections[i].max_error);
        }
        write_header(out.data(), errors, n_outliers, size);
        return out;
    }

    void write_header(std::uint8_t *out, const float *errors, std::uint64_t n_outliers, std::uint64_t size) const {
        std::memcpy(out, "LCKV", 4);
        store(out + 4, kVersion);
        store(out + 6, options_.codec);
        store(out + 8, static_cast<std::uint32_t>(n_));
        store(out + 12, static_cast<std::uint32_t>(source_.shape().n_layer()));
        store(out + 16, head_dim_);
        store(out + 20, options_.head_group);
        store(out + 24, errors[0]);
        store(out + 28, errors[1]);
        store(out + 32, n_outliers);
        store(out + 40, size);
    }

    const KVSource &source_;
    const EncodeOptions &options_;
    std::uint32_t head_dim_;
    std::size_t first_, n_;
    Turn turn_, as_kept_;
};

}  // namespace

std::vector<std::uint8_t> encode(const KVSource &source, std::size_t first, std::size_t n, const Rope &rope,
                                 const EncodeOptions &options) {
    check(source, first, n, rope, options);
    return Encoder(source, first, n, rope, options).run();
}

}  // namespace localctx

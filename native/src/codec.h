// KV at rest: keys un-rotated, per channel over 128 tokens; values per token; 16 to 2 bits each. Knows no files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "kv_source.h"

namespace localctx {

enum class Codec : std::uint8_t { f16, fp8_e4m3, fp8_e5m2, int8, int4, int3, int2 };
constexpr Codec kCodecs[] = {Codec::f16,  Codec::fp8_e4m3, Codec::fp8_e5m2, Codec::int8,
                             Codec::int4, Codec::int3,     Codec::int2};

const char *codec_name(Codec codec);
Codec codec_named(const std::string &name);  // std::invalid_argument for others
std::size_t code_bits(Codec codec);

struct EncodeOptions {
    Codec codec = Codec::int4;
    std::uint32_t head_group = 1;  // neighbouring KV heads that share scale and zero point
    // A value that the codec would miss by more is kept in f16.
    float error_bound = std::numeric_limits<float>::infinity();
    std::size_t n_threads = 0;
};

// Rows [first, first + n) of the source as one run. Throws std::invalid_argument for rows that are not there,
// row sizes that are no whole number of heads, and options out of range.
std::vector<std::uint8_t> encode(const KVSource &source, std::size_t first, std::size_t n, const Rope &rope,
                                 const EncodeOptions &options);

// An encoded run, read in place.
class Run final : public KVSource {
  public:
    // The bytes are read while the object lives; `owner` keeps them. Throws std::invalid_argument for bytes that
    // are no run of this version or do not add up.
    Run(const std::uint8_t *data, std::size_t size, std::shared_ptr<const void> owner = nullptr);
    ~Run() override;
    Run(const Run &) = delete;
    Run &operator=(const Run &) = delete;

    std::size_t n_tokens() const override { return n_tokens_; }
    const KVShape &shape() const override { return shape_; }
    const std::int32_t *positions() const override { return nullptr; }
    void write_keys(std::size_t layer, std::size_t first, std::size_t n, const Turn &turn,
                    std::uint16_t *out) const override;
    void write_values(std::size_t layer, std::size_t first, std::size_t n, std::uint16_t *out) const override;

    Codec codec() const { return codec_; }
    std::uint32_t head_dim() const { return head_dim_; }
    std::uint32_t head_group() const { return head_group_; }
    // Largest absolute error of any f16 value decoded, against the f32 un-rotated key or the f16 value encoded.
    float max_key_error() const { return max_key_error_; }
    float max_value_error() const { return max_value_error_; }
    // Values kept in f16 that the codec would have missed by more than the bound, NaN and infinities.
    std::uint64_t n_outliers() const { return n_outliers_; }

  private:
    struct Part;  // keys or values of one layer
    void read_layers();
    void write(const Part &part, std::size_t first, std::size_t n, const Turn *turn, std::uint16_t *out) const;

    const std::uint8_t *data_;
    std::size_t size_;
    std::shared_ptr<const void> owner_;
    std::size_t n_tokens_ = 0;
    KVShape shape_;
    Codec codec_ = Codec::f16;
    std::uint32_t head_dim_ = 0, head_group_ = 1;
    float max_key_error_ = 0, max_value_error_ = 0;
    std::uint64_t n_outliers_ = 0;
    std::vector<Part> parts_;  // K and V of layer 0, of layer 1 ...
};

}  // namespace localctx

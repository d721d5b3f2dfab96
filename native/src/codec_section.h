// One section in the making: keys or values of one layer, rows in, bytes out. Internal to codec.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "codec_format.h"
#include "codec_rows.h"

namespace localctx {

struct EncodedSection {
    Section section;
    std::vector<std::uint8_t> bytes;
    float max_error = 0;  // of the f16 values decoded; NaN and infinities aside
};

class SectionEncoder {
  public:
    SectionEncoder(const Section &section, float error_bound);
    // The next rows, kBlockTokens of them except at the end; overwritten.
    void add(float *values, std::size_t n_rows);
    EncodedSection finish();

  private:
    void add_halves(const float *values, std::size_t n_rows);
    void set_strange_aside(float *row, std::size_t index);
    void add_block(float *values, std::size_t n_rows);
    void find_key_bounds(const float *values, std::size_t n_rows);
    void find_value_bounds(const float *row);
    void write_parameters(std::uint8_t *block) const;
    void add_row(const float *values, std::size_t row);
    void keep(std::size_t index, float value);

    EncodedSection encoded_;
    Section &section_;
    float error_bound_;
    std::size_t n_rows_ = 0;  // added so far
    Parameters parameters_;
    std::vector<float> inverse_of_scales_, inverse_;  // [n_scales], [n_elements]
    std::vector<float> low_, high_;  // of each scale; room for each element
    std::vector<float> decoded_;
    std::vector<std::uint16_t> halves_;
    std::vector<std::pair<std::uint32_t, std::uint16_t>> outliers_;
};

}  // namespace localctx

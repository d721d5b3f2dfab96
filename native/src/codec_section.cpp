#include "codec_section.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "half.h"

namespace localctx {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr std::uint16_t kHalfSign = 0x8000;

// f16 next to a value, on the given side; not beyond the range.
std::uint16_t half_at_most(float value) {
    const std::uint16_t half = float_to_half(value);
    if (half_to_float(half) <= value) {
        return half;
    }
    return static_cast<std::uint16_t>((half & kHalfSign) != 0 ? half + 1 : half - 1);
}

std::uint16_t half_at_least(float value) {
    return static_cast<std::uint16_t>(half_at_most(-value) ^ kHalfSign);
}

float largest_code(Codec codec) {
    switch (codec) {
        case Codec::fp8_e4m3: return 448.0F;
        case Codec::fp8_e5m2: return 57344.0F;
        default: return static_cast<float>((1U << code_bits(codec)) - 1);
    }
}

// Values beyond f16's range become its largest.
std::uint16_t to_half(float value) {
    const bool finite = std::fabs(value) <= std::numeric_limits<float>::max();
    return float_to_half(finite ? std::clamp(value, -kMaxHalf, kMaxHalf) : value);
}

float fp8_scale(Codec codec, float low, float high) {
    const float largest = std::max(-low, high);
    return largest > 0x1p-60F ? largest / largest_code(codec) : 0.0F;  // so that its inverse is a number
}

}  // namespace

SectionEncoder::SectionEncoder(const Section &section, float error_bound)
    : encoded_{section, std::vector<std::uint8_t>(section.size()), 0},
      section_(encoded_.section),
      error_bound_(std::min(error_bound, std::numeric_limits<float>::max())),
      parameters_(section),
      inverse_of_scales_(section.n_scales()),
      inverse_(section.n_elements),
      low_(section.n_elements),
      high_(section.n_elements),
      decoded_(section.n_elements),
      halves_(section.n_elements) {}

void SectionEncoder::add(float *values, std::size_t n_rows) {
    if (section_.codec == Codec::f16) {
        add_halves(values, n_rows);
        return;
    }
    const std::size_t n_elements = section_.n_elements;
    for (std::size_t i = 0; i < n_rows; ++i) {
        if (!all_ordinary(values + i * n_elements, n_elements)) {
            set_strange_aside(values + i * n_elements, (n_rows_ + i) * n_elements);
        }
    }
    const std::size_t step = section_.block_tokens();
    for (std::size_t i = 0; i < n_rows; i += step) {
        add_block(values + i * n_elements, std::min(step, n_rows - i));
    }
}

void SectionEncoder::add_halves(const float *values, std::size_t n_rows) {
    const std::size_t n_elements = section_.n_elements;
    for (std::size_t i = 0; i < n_rows; ++i, ++n_rows_, values += n_elements) {
        if (all_ordinary(values, n_elements)) {
            floats_to_halves(values, halves_.data(), n_elements);
        } else {
            std::transform(values, values + n_elements, halves_.begin(), to_half);
        }
        halves_to_floats(halves_.data(), decoded_.data(), n_elements);
        encoded_.max_error = std::max(encoded_.max_error, largest_error(values, decoded_.data(), n_elements));
        std::memcpy(encoded_.bytes.data() + n_rows_ * section_.row_size(), halves_.data(), n_elements * 2);
    }
}

// NaN, infinities and what f16 cannot hold would spoil a whole block: they are kept apart, and NaN stands in for
// them, which bounds, codes and errors pass over.
void SectionEncoder::set_strange_aside(float *row, std::size_t index) {
    for (std::size_t i = 0; i < section_.n_elements; ++i) {
        if (!(std::fabs(row[i]) <= kMaxHalf)) {
            keep(index + i, row[i]);
            row[i] = std::numeric_limits<float>::quiet_NaN();
        }
    }
}

void SectionEncoder::keep(std::size_t index, float value) {
    const std::uint16_t half = to_half(value);
    outliers_.emplace_back(static_cast<std::uint32_t>(index), half);
    const float kept = half_to_float(half);
    encoded_.max_error = std::max(encoded_.max_error, largest_error(&value, &kept, 1));
}

void SectionEncoder::add_block(float *values, std::size_t n_rows) {
    std::uint8_t *const block =
        encoded_.bytes.data() + n_rows_ / section_.block_tokens() * section_.block_size();
    if (section_.is_key) {
        find_key_bounds(values, n_rows);
    } else {
        find_value_bounds(values);
    }
    write_parameters(block);
    parameters_.read(section_, block);
    std::transform(parameters_.of_scales.begin(), parameters_.of_scales.begin() + section_.n_scales(),
                   inverse_of_scales_.begin(), [](float scale) { return scale > 0 ? 1 / scale : 0; });
    section_.expand(inverse_of_scales_.data(), inverse_.data());
    for (std::size_t i = 0; i < n_rows; ++i, ++n_rows_) {
        add_row(values + i * section_.n_elements, n_rows_);
    }
}

// Of every channel over the rows, then over the heads that share it.
void SectionEncoder::find_key_bounds(const float *values, std::size_t n_rows) {
    std::fill(low_.begin(), low_.end(), kInfinity);
    std::fill(high_.begin(), high_.end(), -kInfinity);
    for (std::size_t i = 0; i < n_rows; ++i) {
        widen_bounds(values + i * section_.n_elements, section_.n_elements, low_.data(), high_.data());
    }
    for (std::size_t head = 1; head < section_.n_heads(); ++head) {
        float *const low = low_.data() + head / section_.head_group * section_.width;
        float *const high = high_.data() + head / section_.head_group * section_.width;
        for (std::size_t i = 0; i < section_.width; ++i) {
            const float head_low = low_[head * section_.width + i], head_high = high_[head * section_.width + i];
            const bool begins = head % section_.head_group == 0;
            low[i] = begins ? head_low : std::min(low[i], head_low);
            high[i] = begins ? head_high : std::max(high[i], head_high);
        }
    }
}

void SectionEncoder::find_value_bounds(const float *row) {
    const std::size_t group_elements = section_.head_group * section_.width;
    for (std::size_t group = 0; group < section_.n_head_groups(); ++group) {
        const std::size_t from = group * group_elements;
        const Bounds bounds = bounds_of(row + from, std::min(group_elements, section_.n_elements - from));
        low_[group] = bounds.low;
        high_[group] = bounds.high;
    }
}

// From the bounds: the zero rounded down and the scale rounded up to f16, so that every value is covered. Clipping
// or fitting the range by least squares, measured on SmolLM2, brings INT4 and INT3 nothing or harm, although the
// squared error falls. It does help INT2 keys, for which it is not done.
void SectionEncoder::write_parameters(std::uint8_t *block) const {
    const std::size_t n_scales = section_.n_scales();
    for (std::size_t i = 0; i < n_scales; ++i) {
        const float low = low_[i], high = high_[i];
        if (!(low <= high)) {
            continue;  // nothing but strange values: scale and zero stay 0
        }
        if (is_fp8(section_.codec)) {
            store(block + i * 4, fp8_scale(section_.codec, low, high));
            continue;
        }
        const std::uint16_t zero = half_at_most(low);
        store(block + i * 2, half_at_least((high - half_to_float(zero)) / largest_code(section_.codec)));
        store(block + (n_scales + i) * 2, zero);
    }
}

void SectionEncoder::add_row(const float *values, std::size_t row) {
    const std::size_t n = section_.n_elements;
    const CodecRows rows = codec_rows(section_.codec);
    std::uint8_t *const codes = encoded_.bytes.data() + section_.codes_offset() + row * section_.row_size();
    rows.encode(values, inverse_.data(), parameters_.zero.data(), n, codes);
    rows.decode(codes, parameters_.scale.data(), parameters_.zero.data(), n, decoded_.data());
    floats_to_halves(decoded_.data(), halves_.data(), n);
    halves_to_floats(halves_.data(), decoded_.data(), n);
    const float error = largest_error(values, decoded_.data(), n);
    if (error <= error_bound_) {
        encoded_.max_error = std::max(encoded_.max_error, error);
        return;
    }
    for (std::size_t i = 0; i < n; ++i) {
        const float missed = std::fabs(values[i] - decoded_[i]);
        if (missed > error_bound_) {
            keep(row * n + i, values[i]);
        } else if (missed > encoded_.max_error) {
            encoded_.max_error = missed;
        }
    }
}

EncodedSection SectionEncoder::finish() {
    std::sort(outliers_.begin(), outliers_.end());
    section_.n_outliers = outliers_.size();
    encoded_.bytes.resize(section_.size());
    std::uint8_t *index = encoded_.bytes.data() + section_.outliers_offset();
    std::uint8_t *half = index + 4 * outliers_.size();
    for (const auto &[at, kept] : outliers_) {
        store(index, at);
        store(half, kept);
        index += sizeof at;
        half += sizeof kept;
    }
    return std::move(encoded_);
}

}  // namespace localctx

#include "codec_format.h"

#include <algorithm>
#include <stdexcept>

#include "half.h"

namespace localctx {
namespace {

struct Named {
    const char *name;
    std::size_t bits;
};

constexpr Named kNamed[] = {{"f16", 16}, {"fp8_e4m3", 8}, {"fp8_e5m2", 8}, {"int8", 8},
                            {"int4", 4}, {"int3", 3},     {"int2", 2}};

const Named &named(Codec codec) { return kNamed[static_cast<std::size_t>(codec)]; }

}  // namespace

const char *codec_name(Codec codec) { return named(codec).name; }

std::size_t code_bits(Codec codec) { return named(codec).bits; }

Codec codec_named(const std::string &name) {
    for (const Codec codec : kCodecs) {
        if (name == codec_name(codec)) {
            return codec;
        }
    }
    throw std::invalid_argument("no codec is called " + name);
}

void Section::expand(const float *of_scales, float *of_elements) const {
    for (std::size_t head = 0; head < n_heads(); ++head) {
        float *const out = of_elements + head * width;
        const std::size_t group = head / head_group;
        if (is_key) {
            std::copy_n(of_scales + group * width, width, out);
        } else {
            std::fill_n(out, width, of_scales[group]);
        }
    }
}

void Parameters::read(const Section &section, const std::uint8_t *block) {
    const std::size_t n = section.n_scales();
    if (is_fp8(section.codec)) {
        std::memcpy(of_scales.data(), block, n * sizeof(float));
    } else {
        std::memcpy(halves.data(), block, 2 * n * sizeof(std::uint16_t));
        halves_to_floats(halves.data(), of_scales.data(), 2 * n);
        section.expand(of_scales.data() + n, zero.data());
    }
    section.expand(of_scales.data(), scale.data());
}

}  // namespace localctx

// An encoded run: its bytes are checked once, so that reading rows needs no checks.
#include <algorithm>
#include <stdexcept>

#include "codec.h"
#include "codec_format.h"
#include "codec_rows.h"
#include "half.h"

namespace localctx {
namespace {

[[noreturn]] void refuse(const std::string &why) { throw std::invalid_argument("no run of KV: " + why); }

void require(bool good, const char *why) {
    if (!good) {
        refuse(why);
    }
}

Codec codec_numbered(std::uint32_t number) {
    require(number < std::size(kCodecs), "a codec that is not known");
    return kCodecs[number];
}

bool all_zero(const std::uint8_t *from, const std::uint8_t *until) {
    return std::all_of(from, until, [](std::uint8_t byte) { return byte == 0; });
}

void check_outliers(const std::uint8_t *indices, std::size_t n_outliers, std::uint64_t n_values) {
    std::uint64_t next = 0;
    for (std::size_t i = 0; i < n_outliers; ++i) {
        const std::uint64_t index = load<std::uint32_t>(indices + i * 4);
        require(index >= next && index < n_values, "outliers out of order");
        next = index + 1;
    }
}

}  // namespace

struct Run::Part {
    Section section;
    const std::uint8_t *at;

    const std::uint8_t *outliers() const { return at + section.outliers_offset(); }
    // The first outlier of row `row` or a later one.
    std::size_t first_outlier(std::size_t row) const {
        const std::uint64_t wanted = std::uint64_t{row} * section.n_elements;
        std::size_t low = 0, high = section.n_outliers;
        while (low < high) {
            const std::size_t middle = low + (high - low) / 2;
            if (load<std::uint32_t>(outliers() + middle * 4) < wanted) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        return low;
    }
};

Run::Run(const std::uint8_t *data, std::size_t size, std::shared_ptr<const void> owner)
    : data_(data), size_(size), owner_(std::move(owner)) {
    require(size >= kHeaderSize && std::memcmp(data, "LCKV", 4) == 0, "it does not begin as one");
    if (const auto version = load<std::uint16_t>(data + 4); version != kVersion) {
        refuse("version " + std::to_string(version) + ", not " + std::to_string(kVersion));
    }
    codec_ = codec_numbered(data[6]);
    n_tokens_ = load<std::uint32_t>(data + 8);
    const std::size_t n_layer = load<std::uint32_t>(data + 12);
    head_dim_ = load<std::uint32_t>(data + 16);
    head_group_ = load<std::uint32_t>(data + 20);
    max_key_error_ = load<float>(data + 24);
    max_value_error_ = load<float>(data + 28);
    n_outliers_ = load<std::uint64_t>(data + 32);
    require(n_tokens_ >= 1 && n_tokens_ <= kMaxTokens, "its number of tokens");
    require(head_dim_ >= 1 && head_group_ >= 1, "its head size");
    require(max_key_error_ >= 0 && max_value_error_ >= 0, "its errors");  // NaN too is refused
    require(load<std::uint64_t>(data + 40) == size, "its length is not what it says");
    require(data[7] == 0 && all_zero(data + 48, data + kHeaderSize), "reserved bytes");
    require(n_layer <= (size - kHeaderSize) / kEntrySize, "more layers than it has room for");
    shape_.k_elements.resize(n_layer);
    shape_.v_elements.resize(n_layer);
    parts_.reserve(2 * n_layer);
    read_layers();
}

Run::~Run() = default;

// Every section stands where the sections before it end; sizes cannot overflow: each is below 2^39, and the sum
// is compared with the length before the next is added.
void Run::read_layers() {
    const std::size_t n_layer = shape_.n_layer();
    std::size_t end = align_up(kHeaderSize + n_layer * kEntrySize);
    std::uint64_t n_outliers = 0;
    for (std::size_t layer = 0; layer < n_layer; ++layer) {
        const std::uint8_t *const entry = data_ + kHeaderSize + layer * kEntrySize;
        const auto k_elements = shape_.k_elements[layer] = load<std::uint32_t>(entry);
        const auto v_elements = shape_.v_elements[layer] = load<std::uint32_t>(entry + 4);
        const std::uint32_t n_heads = k_elements / head_dim_;
        require(k_elements <= kMaxElements && v_elements <= kMaxElements, "its row sizes");
        require(n_heads > 0 && k_elements % head_dim_ == 0 && v_elements % n_heads == 0, "its row sizes");
        for (const bool is_key : {true, false}) {
            const std::uint8_t *const place = entry + (is_key ? 8 : 24);
            Section section;
            section.codec = codec_numbered(load<std::uint32_t>(place + 12));
            section.is_key = is_key;
            section.n_tokens = n_tokens_;
            section.n_elements = is_key ? k_elements : v_elements;
            section.width = section.n_elements / n_heads;
            section.head_group = head_group_;
            section.n_outliers = load<std::uint32_t>(place + 8);
            require(section.codec == codec_ || section.codec == Codec::f16, "codecs that do not belong together");
            require(section.codec != Codec::f16 || section.n_outliers == 0, "outliers of f16");
            require(load<std::uint64_t>(place) == end && end <= size_, "its sections");
            require(section.size() <= size_ - end, "it is cut");
            const Part &part = parts_.emplace_back(Part{section, data_ + end});
            check_outliers(part.outliers(), section.n_outliers, section.n_values());
            n_outliers += section.codec == codec_ ? section.n_outliers : section.n_values();
            end += section.size();
        }
    }
    require(end == size_, "its length");
    require(n_outliers == n_outliers_, "its number of outliers");
}

void Run::write(const Part &part, std::size_t first, std::size_t n, const Turn *turn, std::uint16_t *out) const {
    const Section &section = part.section;
    const std::size_t n_elements = section.n_elements;
    const std::uint8_t *const codes = part.at + section.codes_offset();
    if (section.codec == Codec::f16) {
        for (std::size_t i = 0; i < n; ++i, out += n_elements) {
            std::memcpy(out, codes + (first + i) * section.row_size(), n_elements * sizeof *out);
            if (turn != nullptr) {
                turn_row_f16(*turn, i, out, out, n_elements);
            }
        }
        return;
    }
    const CodecRows rows = codec_rows(section.codec);
    Parameters parameters(section);
    std::vector<float> values(n_elements);
    std::size_t outlier = part.first_outlier(first);
    for (std::size_t row = first; row < first + n; ++row, out += n_elements) {
        if (row == first || row % section.block_tokens() == 0) {
            parameters.read(section, part.at + row / section.block_tokens() * section.block_size());
        }
        rows.decode(codes + row * section.row_size(), parameters.scale.data(), parameters.zero.data(), n_elements,
                    values.data());
        for (; outlier < section.n_outliers; ++outlier) {
            // Compared again, so that even bytes changed since they were checked write to no other place.
            const std::uint64_t index = load<std::uint32_t>(part.outliers() + outlier * 4);
            const std::uint64_t column = index - std::uint64_t{row} * n_elements;
            if (column >= n_elements) {
                break;
            }
            const std::uint8_t *const kept = part.outliers() + section.n_outliers * 4 + outlier * 2;
            values[column] = half_to_float(load<std::uint16_t>(kept));
        }
        if (turn != nullptr) {
            turn_row(*turn, row - first, values.data(), n_elements);
        }
        floats_to_halves(values.data(), out, n_elements);
    }
}

void Run::write_keys(std::size_t layer, std::size_t first, std::size_t n, const Turn &turn,
                     std::uint16_t *out) const {
    write(parts_[2 * layer], first, n, &turn, out);
}

void Run::write_values(std::size_t layer, std::size_t first, std::size_t n, std::uint16_t *out) const {
    write(parts_[2 * layer + 1], first, n, nullptr, out);
}

}  // namespace localctx

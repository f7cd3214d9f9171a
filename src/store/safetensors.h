// Snapshots in the safetensors format, which every tool of the field reads. Written atomically; read as if a stranger had written it.
//
//   file := header_bytes:u64 header data                  numbers little-endian; header padded with spaces to a multiple of 8
//   header := {"__metadata__": {text: text, ...}, name: {"dtype": "F32", "shape": [...], "data_offsets": [begin, end]}, ...}
//             begin and end count bytes of data; together the tensors cover all of it, without gaps
//   metadata "sha256" := SHA-256 of the whole file as it is with 64 zeros in place of these digits
#pragma once
#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/model_shape.h"
#include "base/result.h"

namespace motley::store {

/// Values [offset, offset + product of shape) of a flat buffer.
struct NamedTensor {
  std::string name;
  std::vector<std::int64_t> shape;
  std::uint64_t offset{};
  bool operator==(const NamedTensor&) const = default;
};

/// The tensors of a model, in the order of its flat buffer.
[[nodiscard]] std::vector<NamedTensor> named_tensors(const ModelShape& shape);

using Metadata = std::map<std::string, std::string>;
inline constexpr const char* checksum_key = "sha256";

struct TensorFile {
  std::vector<NamedTensor> tensors;  // offsets ascend, no gaps
  std::vector<float> values;
  Metadata metadata;     // without the checksum
  bool checked = false;  // it has a checksum, which fits
};

/// Writes beside `path`, then renames: whoever looks sees the old file or the whole new one. `tensors` cover the values of all pieces, one
/// behind the other, in order and without gaps, and their names differ (else our bug). A full disk or a missing folder gives up and leaves
/// the old file as it was; see write_atomically(). Copies no value; SHA-256 takes 0.5 to 2 s a GB.
Outcome write_safetensors(const std::filesystem::path& path, std::span<const NamedTensor> tensors,
                          std::span<const std::span<const float>> pieces, const Metadata& metadata);
/// The same of values that lie in one piece.
Outcome write_safetensors(const std::filesystem::path& path, std::span<const NamedTensor> tensors, std::span<const float> values,
                          const Metadata& metadata);

/// Only F32 is understood. Anything else, and any damage (that a checksum finds, where there is one), is refused with the file, the tensor
/// and what was expected. Allocates no more than a few times the size of the file.
Result<TensorFile> read_safetensors(const std::filesystem::path& path);

}  // namespace motley::store

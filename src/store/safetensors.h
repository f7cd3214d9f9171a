// Reads and writes models in the safetensors format. Writing is atomic; reading trusts nothing in the file.
//
//   file := header_bytes:u64 header data                  numbers little-endian; header padded with spaces to a multiple of 8
//   header := {"__metadata__": {text: text, ...}, name: {"dtype": "F32", "shape": [...], "data_offsets": [begin, end]}, ...}
//             begin and end count bytes of data; together the tensors cover all of it, without gaps
//   metadata "sha256" := SHA-256 of the whole file with 64 zeros in place of these digits
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
  bool checked = false;  // the file has a checksum, and it matches
};

/// Writes atomically, see write_atomically(): fails on a full disk or a missing folder and then leaves the old file unchanged. `tensors`
/// cover the values of the concatenated pieces in order, without gaps, and have different names (checked). Copies no value; SHA-256 takes
/// 0.5 to 2 s per GB.
Outcome write_safetensors(const std::filesystem::path& path, std::span<const NamedTensor> tensors,
                          std::span<const std::span<const float>> pieces, const Metadata& metadata);
/// The same for values in one piece.
Outcome write_safetensors(const std::filesystem::path& path, std::span<const NamedTensor> tensors, std::span<const float> values,
                          const Metadata& metadata);

/// Reads F32 tensors only. Any other type, and any damage (also of values, if there is a checksum), is an error that names the file, the
/// tensor and the expected content. Allocates at most a few times the size of the file.
Result<TensorFile> read_safetensors(const std::filesystem::path& path);

}  // namespace motley::store

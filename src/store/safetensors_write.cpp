#include <bit>
#include <boost/json.hpp>

#include "base/check.h"
#include "store/atomic_file.h"
#include "store/file_hash.h"
#include "store/safetensors.h"

namespace motley::store {
namespace {

namespace json = boost::json;

static_assert(std::endian::native == std::endian::little, "safetensors are little-endian and written as they lie in memory");

std::uint64_t count_of(const NamedTensor& tensor) {
  std::uint64_t count = 1;
  for (std::int64_t extent : tensor.shape) {
    check(extent >= 0, "no extent of a tensor is negative");
    count *= static_cast<std::uint64_t>(extent);
  }
  return count;
}

std::string header_of(std::span<const NamedTensor> tensors, std::uint64_t values, const Metadata& metadata) {
  json::object header;
  json::object& about = header["__metadata__"].emplace_object();
  about.emplace(checksum_key, std::string(hash_digits, '0'));  // first, so that zeros in other metadata are not mistaken for its place
  for (const auto& [key, text] : metadata) about.emplace(key, text);

  std::uint64_t end = 0;
  for (const NamedTensor& tensor : tensors) {
    check(tensor.offset == end, "the tensors of a snapshot follow each other without gaps");
    end += count_of(tensor);
    const json::object entry{{"dtype", "F32"},
                             {"shape", json::value_from(tensor.shape)},
                             {"data_offsets", {tensor.offset * sizeof(float), end * sizeof(float)}}};
    const bool added = header.emplace(tensor.name, entry).second;
    check(added, "the tensors of a snapshot have names of their own");
  }
  check(end == values, "the tensors of a snapshot cover all its values");

  std::string text = json::serialize(header);
  text.resize((text.size() + 7) / 8 * 8, ' ');
  return text;
}

}  // namespace

std::vector<NamedTensor> named_tensors(const ModelShape& shape) {
  std::vector<NamedTensor> tensors;
  for (const Tensor& tensor : shape.tensors) tensors.push_back({tensor.name, tensor.shape, tensor.offset});
  return tensors;
}

Outcome write_safetensors(const std::filesystem::path& path, std::span<const NamedTensor> tensors,
                          std::span<const std::span<const float>> pieces, const Metadata& metadata) {
  std::uint64_t values = 0;
  for (const std::span<const float> piece : pieces) values += piece.size();
  std::string header = header_of(tensors, values, metadata);
  const std::uint64_t header_bytes = header.size();
  std::vector<std::span<const std::byte>> bytes{std::as_bytes(std::span(&header_bytes, 1)), std::as_bytes(std::span(header))};
  for (const std::span<const float> piece : pieces) bytes.push_back(std::as_bytes(piece));
  FileHash hash;
  for (const std::span<const std::byte> each : bytes) hash.add(each);
  header.replace(header.find(std::string(hash_digits, '0')), hash_digits, hash.digits());
  return write_atomically(path, bytes);
}

Outcome write_safetensors(const std::filesystem::path& path, std::span<const NamedTensor> tensors, std::span<const float> values,
                          const Metadata& metadata) {
  return write_safetensors(path, tensors, std::span(&values, 1), metadata);
}

}  // namespace motley::store

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <boost/json.hpp>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/check.h"
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

bool write_bytes(std::FILE* file, std::span<const std::byte> bytes) {
  return bytes.empty() || std::fwrite(bytes.data(), 1, bytes.size(), file) == bytes.size();
}

/// On false errno says why.
bool write_file(const std::filesystem::path& path, const std::string& header, std::span<const std::span<const float>> pieces) {
  std::FILE* const file = std::fopen(path.c_str(), "wb");
  if (file == nullptr) return false;
  const std::uint64_t header_bytes = header.size();
  const bool written = write_bytes(file, std::as_bytes(std::span(&header_bytes, 1))) &&
                       write_bytes(file, std::as_bytes(std::span(header))) &&
                       std::all_of(pieces.begin(), pieces.end(), [&](auto piece) { return write_bytes(file, std::as_bytes(piece)); }) &&
                       std::fflush(file) == 0 && fsync(fileno(file)) == 0;  // or a crash soon after could leave the new name on empty bytes
  const int reason = errno;
  const bool closed = std::fclose(file) == 0;
  if (!written) errno = reason;
  return written && closed;
}

}  // namespace

Outcome write_safetensors(const std::filesystem::path& path, std::span<const NamedTensor> tensors,
                          std::span<const std::span<const float>> pieces, const Metadata& metadata) {
  std::uint64_t values = 0;
  for (const std::span<const float> piece : pieces) values += piece.size();
  const std::string header = header_of(tensors, values, metadata);
  std::filesystem::path beside = path;
  beside += ".part";
  if (write_file(beside, header, pieces) && std::rename(beside.c_str(), path.c_str()) == 0) return Done{};
  const std::string reason = std::strerror(errno);
  std::error_code ignored;
  std::filesystem::remove(beside, ignored);
  return world_failed(fmt::format("writing {}: {}; is there space, and may this user write there?", path.string(), reason));
}

Outcome write_safetensors(const std::filesystem::path& path, std::span<const NamedTensor> tensors, std::span<const float> values,
                          const Metadata& metadata) {
  return write_safetensors(path, tensors, std::span(&values, 1), metadata);
}

}  // namespace motley::store

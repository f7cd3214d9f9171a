#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <fstream>
#include <optional>

#include "store/file_hash.h"
#include "store/safetensors.h"

namespace motley::store {
namespace {

namespace json = boost::json;

constexpr std::uint64_t length_bytes = 8;
constexpr std::uint64_t max_header_bytes = 100'000'000;  // the limit of the reference implementation

/// Whole numbers only.
std::optional<std::vector<std::uint64_t>> numbers(const json::object& entry, std::string_view key) {
  const json::value* found = entry.if_contains(key);
  if (found == nullptr || !found->is_array()) return std::nullopt;
  std::vector<std::uint64_t> out;
  for (const json::value& item : found->get_array()) {
    json::error_code wrong;
    out.push_back(item.to_number<std::uint64_t>(wrong));
    if (wrong) return std::nullopt;
  }
  return out;
}

/// Number of values of a shape; none if no file could hold as many.
std::optional<std::uint64_t> product(std::span<const std::uint64_t> shape) {
  std::uint64_t count = 1;
  for (std::uint64_t extent : shape)
    if (extent > INT64_MAX || __builtin_mul_overflow(count, extent, &count)) return std::nullopt;
  return count;
}

/// The byte range of a tensor within the data.
struct SlicePlacement {
  NamedTensor tensor;
  std::uint64_t begin{};
  std::uint64_t end{};
};

Result<SlicePlacement> placed(std::string_view name, const json::value& value, std::uint64_t data_bytes) {
  const auto refused = [&](std::string why) { return bad_input(fmt::format("tensor '{}': {}", name, why)); };
  const json::object* entry = value.if_object();
  if (entry == nullptr) return refused("expected an object with dtype, shape and data_offsets");
  const json::value* dtype = entry->if_contains("dtype");
  if (dtype == nullptr || !dtype->is_string() || dtype->get_string() != "F32")
    return refused(fmt::format("dtype {}, only \"F32\" is understood", dtype == nullptr ? "missing" : json::serialize(*dtype)));
  const auto shape = numbers(*entry, "shape");
  if (!shape) return refused("shape is not a list of whole numbers");
  const auto offsets = numbers(*entry, "data_offsets");
  if (!offsets || offsets->size() != 2) return refused("data_offsets is not a pair of whole numbers");
  const std::uint64_t begin = offsets->front(), end = offsets->back();
  if (begin > end || end > data_bytes)
    return refused(fmt::format("data_offsets [{}, {}] lie outside the {} bytes of data", begin, end, data_bytes));
  const auto count = product(*shape);
  if (!count || *count > data_bytes / sizeof(float) || *count * sizeof(float) != end - begin)
    return refused(fmt::format("shape {} does not fill data_offsets [{}, {}]", json::serialize(*entry->if_contains("shape")), begin, end));
  return SlicePlacement{{std::string(name), {shape->begin(), shape->end()}, begin / sizeof(float)}, begin, end};
}

Result<Metadata> metadata_of(const json::value& value) {
  Metadata out;
  if (!value.is_object()) return bad_input("__metadata__ is not an object");
  for (const auto& [key, text] : value.get_object()) {
    if (!text.is_string()) return bad_input(fmt::format("__metadata__: '{}' is not a text", std::string_view(key)));
    out.emplace(key, text.get_string());
  }
  return out;
}

Outcome require_cover(std::span<const SlicePlacement> tensors, std::uint64_t data_bytes) {
  std::uint64_t end = 0;
  for (const SlicePlacement& each : tensors) {
    if (each.begin != end)
      return bad_input(
          fmt::format("tensor '{}' begins at byte {} of the data, expected {}: tensors leave no gaps", each.tensor.name, each.begin, end));
    end = each.end;
  }
  if (end != data_bytes) return bad_input(fmt::format("the tensors end at byte {} of {} bytes of data", end, data_bytes));
  return Done{};
}

/// Reads the header: everything except the values.
Result<TensorFile> parse_header(const std::string& text, std::uint64_t data_bytes) {
  json::error_code wrong;
  const json::value header = json::parse(text, wrong);
  if (wrong) return bad_input("the header is not JSON: " + wrong.message());
  if (!header.is_object()) return bad_input("the header is not a JSON object");

  TensorFile file;
  std::vector<SlicePlacement> tensors;
  for (const auto& [key, value] : header.get_object()) {
    if (key == "__metadata__") {
      Result<Metadata> metadata = metadata_of(value);
      if (!metadata.ok()) return metadata.error();
      file.metadata = std::move(*metadata);
    } else {
      Result<SlicePlacement> tensor = placed(key, value, data_bytes);
      if (!tensor.ok()) return tensor.error();
      tensors.push_back(std::move(*tensor));
    }
  }
  std::stable_sort(tensors.begin(), tensors.end(),
                   [](const SlicePlacement& a, const SlicePlacement& b) { return std::pair(a.begin, a.end) < std::pair(b.begin, b.end); });
  if (const Outcome covered = require_cover(tensors, data_bytes); !covered.ok()) return covered.error();
  for (SlicePlacement& each : tensors) file.tensors.push_back(std::move(each.tensor));
  return file;
}

/// Removes the checksum from the metadata, if there is one, and compares it with the file.
Outcome check_hash(std::string header, TensorFile& file) {
  const auto found = file.metadata.find(checksum_key);
  if (found == file.metadata.end()) return Done{};
  const std::string claimed = found->second;
  const std::size_t at = header.find(claimed);
  if (claimed.size() != hash_digits || at == std::string::npos) return bad_input("its checksum is no SHA-256");
  header.replace(at, hash_digits, hash_digits, '0');
  const std::uint64_t header_bytes = header.size();
  FileHash hash;
  hash.add(std::as_bytes(std::span(&header_bytes, 1)));
  hash.add(std::as_bytes(std::span(header)));
  hash.add(std::as_bytes(std::span(file.values)));
  if (const std::string is = hash.digits(); is != claimed)
    return bad_input(fmt::format("its bytes are not those that were written: found SHA-256 {}, expected {}", is, claimed));
  file.metadata.erase(found);
  file.checked = true;
  return Done{};
}

bool read_bytes(std::istream& in, std::span<std::byte> out) {
  return static_cast<bool>(in.read(reinterpret_cast<char*>(out.data()), static_cast<std::streamsize>(out.size())));
}

Result<TensorFile> read_stream(std::istream& in, std::uint64_t file_bytes) {
  const Error ended = bad_input("the file ended early");
  if (file_bytes < length_bytes) return bad_input(fmt::format("{} bytes are too few for a header", file_bytes));
  std::uint64_t header_bytes = 0;
  if (!read_bytes(in, std::as_writable_bytes(std::span(&header_bytes, 1)))) return ended;
  if (header_bytes > std::min(max_header_bytes, file_bytes - length_bytes))
    return bad_input(fmt::format("claims a header of {} bytes in a file of {}", header_bytes, file_bytes));
  std::string text(header_bytes, '\0');
  if (!read_bytes(in, std::as_writable_bytes(std::span(text)))) return ended;

  const std::uint64_t data_bytes = file_bytes - length_bytes - header_bytes;
  Result<TensorFile> file = parse_header(text, data_bytes);
  if (!file.ok()) return file;
  file->values.resize(data_bytes / sizeof(float));
  if (!read_bytes(in, std::as_writable_bytes(std::span(file->values)))) return ended;
  if (const Outcome fits = check_hash(std::move(text), *file); !fits) return fits.error();
  return file;
}

}  // namespace

Result<TensorFile> read_safetensors(const std::filesystem::path& path) {
  std::error_code wrong;
  const std::uint64_t file_bytes = std::filesystem::file_size(path, wrong);
  if (wrong) return bad_input(fmt::format("reading {}: {}", path.string(), wrong.message()));
  std::ifstream in(path, std::ios::binary);
  if (!in) return bad_input(fmt::format("reading {}: it cannot be opened", path.string()));
  Result<TensorFile> file = read_stream(in, file_bytes);
  if (!file.ok()) return bad_input(fmt::format("reading {}: {}", path.string(), file.error().message));
  return file;
}

}  // namespace motley::store

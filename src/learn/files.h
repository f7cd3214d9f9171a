// Reads data files as bytes, unpacking gzip, and words the errors about them.
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace motley::learn {

using Bytes = std::vector<std::uint8_t>;

/// "cannot read FILE: found F, expected E; REMEDY"
Error bad_file(const std::filesystem::path& file, std::string_view found, std::string_view expected, std::string_view remedy);

/// All of `file`, unpacked if it is gzip. `expected` and `remedy` go into the error about a file that is absent, unreadable, truncated,
/// damaged, or larger than 1 GiB unpacked (a gzip bomb: no built-in data set is so large).
Result<Bytes> read_file(const std::filesystem::path& file, std::string_view expected, std::string_view remedy);

/// `folder/name`, or `folder/name.gz` where only that exists; `folder/name` if neither does, for read_file() to refuse.
std::filesystem::path plain_or_packed(const std::filesystem::path& folder, std::string_view name);

}  // namespace motley::learn

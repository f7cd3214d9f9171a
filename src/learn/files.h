// Data files as bytes, and the one shape of complaint about them. Knows gzip, not what the bytes mean.
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

/// The whole of `file`, unpacked when it is gzip. `expected` and `remedy` go into the complaint about a file that is
/// absent, unreadable, cut short, damaged, or larger than 1 GiB unpacked (no data set here is; a gzip bomb would be).
Result<Bytes> read_file(const std::filesystem::path& file, std::string_view expected, std::string_view remedy);

/// `folder/name`, or `folder/name.gz` where only that exists; when neither does, the name that read_file() should complain about.
std::filesystem::path plain_or_packed(const std::filesystem::path& folder, std::string_view name);

}  // namespace motley::learn

// A file that is on the disk whole or not at all, whatever is killed or unplugged meanwhile.
#pragma once
#include <cstddef>
#include <filesystem>
#include <span>
#include <string_view>

#include "base/result.h"

namespace motley::store {

/// Writes the pieces, one behind the other, beside `path` (.part), brings them to the disk, renames, and brings the folder to the disk.
/// Gives up on a full disk or a missing folder, and leaves the old file as it was.
Outcome write_atomically(const std::filesystem::path& path, std::span<const std::span<const std::byte>> pieces);
Outcome write_atomically(const std::filesystem::path& path, std::string_view text);

}  // namespace motley::store

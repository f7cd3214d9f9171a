// Writes a file such that after a crash or power failure the disk holds either the old file or the whole new one.
#pragma once
#include <cstddef>
#include <filesystem>
#include <span>
#include <string_view>

#include "base/result.h"

namespace motley::store {

/// Writes the concatenated pieces to `path`.part, syncs it, renames it to `path`, and syncs the folder. Fails on a full disk or a missing
/// folder, and then leaves the old file unchanged.
Outcome write_atomically(const std::filesystem::path& path, std::span<const std::span<const std::byte>> pieces);
Outcome write_atomically(const std::filesystem::path& path, std::string_view text);

}  // namespace motley::store

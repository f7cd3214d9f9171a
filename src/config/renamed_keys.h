// Keys of jobs written for older versions: they are refused, and the error names the new key.
#pragma once
#include <optional>
#include <string_view>

namespace motley::config {

/// The present name of the key; none when it was never renamed.
[[nodiscard]] std::optional<std::string_view> renamed_key(std::string_view key);

}  // namespace motley::config

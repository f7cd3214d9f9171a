// Keys of jobs written for older versions: they are refused under their old names, with the new one in the message.
#pragma once
#include <optional>
#include <string_view>

namespace motley::config {

/// The name that `key` has today; none when it was never renamed.
[[nodiscard]] std::optional<std::string_view> renamed_key(std::string_view key);

}  // namespace motley::config

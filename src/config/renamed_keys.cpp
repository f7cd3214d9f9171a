#include "config/renamed_keys.h"

#include <array>
#include <utility>

namespace motley::config {

std::optional<std::string_view> renamed_key(std::string_view key) {
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 5> renamed{{{"box", "time_limited"},
                                                                                         {"delay", "overlap"},
                                                                                         {"grain", "batch_multiple"},
                                                                                         {"new_size_s", "new_batch_size_s"},
                                                                                         {"variate", "control_variate"}}};
  for (const auto& [before, now] : renamed)
    if (before == key) return now;
  return std::nullopt;
}

}  // namespace motley::config

// The nearest of some words to a mistyped one, by edit distance (insert, delete, replace, swap of neighbours).
#pragma once
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace motley::config {

/// Letters to change to get from `a` to `b`. Costs |a| * |b|.
std::size_t edit_distance(std::string_view a, std::string_view b);

/// The candidate fewest edits away, the first among equals; none when even that one shares too little with `word` to be meant.
std::optional<std::string> nearest(std::string_view word, std::span<const std::string> candidates);

/// "; did you mean steps?", or nothing when no candidate is near.
std::string did_you_mean(std::string_view word, std::span<const std::string> candidates);

}  // namespace motley::config

// The nearest word to a mistyped one, by edit distance (insert, delete, replace, swap of neighbours).
#pragma once
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace motley::config {

/// Number of edits that turn `a` into `b`. Costs |a| * |b|.
std::size_t edit_distance(std::string_view a, std::string_view b);

/// The candidate with the fewest edits, the first among equals; none when more than a third of the word would change.
std::optional<std::string> nearest(std::string_view word, std::span<const std::string> candidates);

/// "; did you mean steps?", or "" when no candidate is similar.
std::string did_you_mean(std::string_view word, std::span<const std::string> candidates);

}  // namespace motley::config

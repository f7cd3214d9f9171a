#include "policy/saved_state.h"

#include <fmt/format.h>

#include <utility>

#include "base/check.h"

namespace motley::policy {

void StateWriter::number(std::string_view name, double value) {
  check(state_.emplace(name, value).second, "each name of a saved state is written once");
}

void StateWriter::count(std::string_view name, std::uint64_t value) {
  check(state_.emplace(name, value).second, "each name of a saved state is written once");
}

void StateReader::fail(std::string problem) {
  if (problem_.empty()) problem_ = std::move(problem);
}

const SavedValue* StateReader::find(std::string_view name) {
  const auto found = state_.find(name);
  if (found == state_.end()) {
    fail(fmt::format("{}: found nothing of this name, which this strategy saves", name));
    return nullptr;
  }
  read_.emplace(name);
  return problem_.empty() ? &found->second : nullptr;
}

double StateReader::number(std::string_view name, double least, double most) {
  const SavedValue* saved = find(name);
  if (saved == nullptr) return 0;
  const double* value = std::get_if<double>(saved);
  if (value != nullptr && *value >= least && *value <= most) return *value;  // NaN fails both comparisons
  if (value == nullptr)
    fail(fmt::format("{}: found the count {}, expected a number with a fraction or exponent", name, std::get<std::uint64_t>(*saved)));
  else
    fail(fmt::format("{}: found {}, expected a number from {} to {}", name, *value, least, most));
  return 0;
}

std::uint64_t StateReader::count(std::string_view name, std::uint64_t most) {
  const SavedValue* saved = find(name);
  if (saved == nullptr) return 0;
  const std::uint64_t* value = std::get_if<std::uint64_t>(saved);
  if (value != nullptr && *value <= most) return *value;
  if (value == nullptr)
    fail(fmt::format("{}: found the number {}, expected a count", name, std::get<double>(*saved)));
  else
    fail(fmt::format("{}: found {}, expected a count up to {}", name, *value, most));
  return 0;
}

Outcome StateReader::finish() const {
  if (!problem_.empty()) return bad_input(problem_);
  for (const auto& [name, value] : state_)
    if (!read_.contains(name)) return bad_input(fmt::format("{}: found an unknown name, expected only what this strategy saves", name));
  return Done{};
}

}  // namespace motley::policy

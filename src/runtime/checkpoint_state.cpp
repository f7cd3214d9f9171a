#include "runtime/checkpoint_state.h"

#include <fmt/format.h>

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <cmath>
#include <variant>

namespace motley::runtime {

namespace json = boost::json;

namespace {

constexpr std::size_t members = 8;
constexpr std::uint64_t format = 3;  // 2 and older stored a strategy's state as a list without names

}  // namespace

std::string chief_state_json(const protocol::ChiefState& state) {
  json::array counted;
  for (const auto& [first, last] : state.counted) counted.push_back(json::array{first, last});
  json::object strategy;
  for (const auto& [name, value] : state.strategy) std::visit([&](auto saved) { strategy[name] = saved; }, value);
  return json::serialize(json::object{{"format", format},
                                      {"version", state.version.value},
                                      {"counted", counted},
                                      {"next_evaluation", state.next_evaluation},
                                      {"evaluated", state.evaluated.value},
                                      {"next_worker", state.next_worker.value},
                                      {"trained_ns", state.trained.count()},
                                      {"strategy", strategy}});
}

Result<protocol::ChiefState> read_chief_state(const std::string& text) {
  try {
    const json::object held = json::parse(text).as_object();
    const auto number = [&](const char* key) { return held.at(key).to_number<std::uint64_t>(); };
    if (const json::value* made = held.if_contains("format"); made == nullptr || made->to_number<std::uint64_t>() != format)
      return bad_input(fmt::format("format: found {}, expected {}: another version of Motley has saved it; resume with that version",
                                   made == nullptr ? "none" : json::serialize(*made), format));
    protocol::ChiefState state;
    state.version = Version{number("version")};
    for (const json::value& range : held.at("counted").as_array()) {
      const json::array& ends = range.as_array();
      const auto [at, added] = state.counted.emplace(ends.at(0).to_number<std::uint64_t>(), ends.at(1).to_number<std::uint64_t>());
      if (!added || ends.size() != 2) return bad_input(fmt::format("counted: found no pair, or twice the same, at {}", at->first));
    }
    state.next_evaluation = number("next_evaluation");
    state.evaluated = Version{number("evaluated")};
    state.next_worker = WorkerId{held.at("next_worker").to_number<std::uint32_t>()};
    state.trained = Duration{held.at("trained_ns").to_number<std::int64_t>()};
    for (const auto& [name, value] : held.at("strategy").as_object()) {
      const bool has_fraction = value.is_double();
      if (has_fraction && !std::isfinite(value.get_double()))
        return bad_input(fmt::format("strategy.{}: found a number that is not finite", name));
      policy::SavedValue saved =
          has_fraction ? policy::SavedValue(value.get_double()) : policy::SavedValue(value.to_number<std::uint64_t>());
      state.strategy.emplace(std::string(name), saved);
    }
    if (held.size() != members) return bad_input(fmt::format("found {} members, expected {}", held.size(), members));
    return state;
  } catch (const std::exception& wrong) {  // of boost::json
    return bad_input(fmt::format("found text that is not the state of a chief ({}); expected that of a checkpoint", wrong.what()));
  }
}

}  // namespace motley::runtime

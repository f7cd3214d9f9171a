#include "runtime/checkpoint_state.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <cmath>

namespace motley::runtime {

namespace json = boost::json;

namespace {

constexpr std::size_t members = 8;
constexpr std::uint64_t format = 2;  // of the strategy's numbers: changes with their order or meaning

}  // namespace

std::string chief_state_json(const protocol::ChiefState& state) {
  json::array counted;
  for (const auto& [first, last] : state.counted) counted.push_back(json::array{first, last});
  json::array strategy;
  for (const double x : state.strategy) strategy.emplace_back(x);
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
      return bad_input(
          "found a state that another version of Motley has saved; expected one of this version: resume with the one it was made by");
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
    for (const json::value& x : held.at("strategy").as_array()) state.strategy.push_back(x.to_number<double>());
    if (!std::all_of(state.strategy.begin(), state.strategy.end(), [](double x) { return std::isfinite(x); }))
      return bad_input("strategy: found a number that is not finite");
    if (held.size() != members) return bad_input(fmt::format("found {} members, expected {}", held.size(), members));
    return state;
  } catch (const std::exception& wrong) {  // of boost::json
    return bad_input(fmt::format("found text that is not the state of a chief ({}); expected that of a checkpoint", wrong.what()));
  }
}

}  // namespace motley::runtime

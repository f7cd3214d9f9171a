// What a run with states or groups went through: the state of the whole, who straggled when and why, what was cancelled or discarded, how
// late contributions were in each state, who was in which group and at what rate each group's updates were made. Reads events alone and
// knows no strategy; memory does not grow with the length of the run.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "trace/event.h"
#include "trace/members.h"
#include "trace/run_history.h"
#include "trace/state_timeline.h"

namespace motley::trace {

class StateTimelines : public Sink {
 public:
  static constexpr std::size_t states_known = 3;  // in step, lagging, over-stale: numbers of Kind::state
  static constexpr std::size_t most_delays = 1024;
  static constexpr std::uint64_t most_groups = 64;  // whoever is in a later one is told with the last

  struct Mark {
    double time_s = 0;
    bool cancelled = false;  // a step; else a contribution was discarded
    std::uint8_t why = 0;
  };
  struct Worker {
    std::uint32_t node = 0;
    std::vector<StateTimeline::Stretch> straggling;  // value = why
    std::vector<StateTimeline::Stretch> groups;      // value = group
    std::vector<Mark> marks;                         // thinned; the counts below are not
    double straggled_s = 0;
    std::uint64_t cancelled = 0;
    std::uint64_t discarded = 0;
  };
  struct Rate {
    double time_s = 0;
    double rate = 0;  // times the sum of the weights of one update
  };
  using Delays = std::vector<std::uint64_t>;  // [k]: contributions applied k versions late; the last of most_delays gathers the rest

  void on_event(const Event& event) override;

  [[nodiscard]] bool has_states() const { return has_states_; }
  [[nodiscard]] bool has_groups() const { return has_groups_; }

  /// From the first joining on; in step until another state is told. Nobody here, no state.
  [[nodiscard]] std::vector<StateTimeline::Stretch> states() const { return states_.stretches(last_s_); }
  [[nodiscard]] std::array<double, states_known> state_lasted_s() const;
  [[nodiscard]] const std::array<Delays, states_known>& staleness() const { return staleness_; }
  [[nodiscard]] std::vector<Worker> workers() const;  // in order of joining
  /// By group. An update belongs to the group that has the most weight in it: somebody may have gone over meanwhile.
  [[nodiscard]] std::map<std::uint32_t, std::vector<Rate>> rates() const;

 private:
  struct Lane {
    std::uint32_t node = 0;
    bool here = false;
    StateTimeline straggling;
    StateTimeline groups;
    std::optional<std::uint32_t> group;
    Downsampled<Mark> marks;
    std::uint64_t cancelled = 0;
    std::uint64_t discarded = 0;
  };
  void on_event(const Event& e, Lane& lane, double now_s);
  void joined(const Event& e, Lane& lane, double now_s);
  void left(Lane& lane, double now_s);
  void counted(const Event& e, const Lane& lane);
  void applied(const Event& e);

  bool has_states_ = false;
  bool has_groups_ = false;
  Members<Lane> lanes_;
  std::size_t here_ = 0;
  std::uint32_t state_ = 0;
  StateTimeline states_;
  std::array<Delays, states_known> staleness_;
  std::map<std::uint32_t, double> weights_;  // of the update being told, by group
  std::map<std::uint32_t, Downsampled<Rate>> rates_;
  double last_s_ = 0;
};

}  // namespace motley::trace

// Timelines of strategies with states or groups: the strategy's state, when and why workers straggled, cancelled steps and discarded
// contributions, staleness by state, membership in groups and the learning rate of each group. Memory does not grow with the length of the
// run.
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
  static constexpr std::size_t states_known = 3;  // in step, lagging, over-stale: StateEntered::state
  static constexpr std::size_t most_delays = 1024;
  static constexpr std::uint64_t most_groups = 64;  // members of later groups are recorded in the last

  struct Mark {
    double time_s = 0;
    bool cancelled = false;  // else a contribution was discarded
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
    double rate = 0;  // learning rate times the sum of the weights of one update
  };
  using Delays = std::vector<std::uint64_t>;  // [k]: contributions of staleness k; the last of most_delays counts the rest

  void on_event(const Event& event) override;

  [[nodiscard]] bool has_states() const { return has_states_; }
  [[nodiscard]] bool has_groups() const { return has_groups_; }

  /// From the first member on, beginning in step; no state while there are no members.
  [[nodiscard]] std::vector<StateTimeline::Stretch> states() const { return states_.stretches(last_s_); }
  [[nodiscard]] std::array<double, states_known> state_lasted_s() const;
  [[nodiscard]] const std::array<Delays, states_known>& staleness() const { return staleness_; }
  [[nodiscard]] std::vector<Worker> workers() const;  // in order of joining
  /// By group. An update belongs to the group with the most weight in it, since workers may have changed groups meanwhile.
  [[nodiscard]] std::map<std::uint32_t, std::vector<Rate>> rates() const;

 private:
  struct Lane {
    std::uint32_t node = 0;
    bool member = false;
    StateTimeline straggling;
    StateTimeline groups;
    std::optional<std::uint32_t> group;
    Downsampled<Mark> marks;
    std::uint64_t cancelled = 0;
    std::uint64_t discarded = 0;
  };
  void update(Lane& lane, const Event& event, double now_s);
  void joined(Lane& lane, const Joined& joined, double now_s);
  void left(Lane& lane, double now_s);
  void straggles(Lane& lane, const Straggles& change, double now_s);
  void cancelled(Lane& lane, const Cancelled& step, double now_s);
  void discarded(Lane& lane, const Discarded& step, double now_s);
  void grouped(Lane& lane, const Grouped& change, double now_s);
  void counted(const Lane& lane, const Counted& contribution);
  void applied(const Applied& update, double now_s);
  void state_entered(const StateEntered& entered, double now_s);

  bool has_states_ = false;
  bool has_groups_ = false;
  Members<Lane> lanes_;
  std::size_t members_ = 0;
  std::uint32_t state_ = 0;
  StateTimeline states_;
  std::array<Delays, states_known> staleness_;
  std::map<std::uint32_t, double> weights_;  // of the next update, by group
  std::map<std::uint32_t, Downsampled<Rate>> rates_;
  double last_s_ = 0;
};

}  // namespace motley::trace

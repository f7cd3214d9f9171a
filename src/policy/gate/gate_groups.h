// Gate `groups`: a barrier within each group of workers of similar speed, none between groups. After Grouping-SGD and GSSP.
//
// Rule: groups are formed as in policy/gate/groups.h. A group's update is made when its last member has contributed, whatever the other
//   groups do. A worker that belongs to another group now moves there once it has contributed, and begins with that group's next round.
//   With K groups, a group more than 4K updates ahead of the slowest waits for another group's update. Groups whose rounds begin at the
//   same time share the servers' links: after three such rounds in a row a group waits once for a part of a step, so that from then on the
//   groups' transfers alternate.
// Each group's update covers its part of the global batch, so the rate of group k is eta*B_k/B; the momentum is divided among the groups
//   (Strategy::momentum). Parameters look as many steps ahead as other groups usually make updates meanwhile.
// Guarantee: no worker waits for one of a much different speed.
// Cost: staleness of about K-1 versions. O(log P) per contribution.
#pragma once
#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "policy/gate/gate_all.h"
#include "policy/gate/groups.h"

namespace motley::policy {

class GateGroups : public Gate {
 public:
  struct Rules {
    bool regroup = true;          // workers change their group when their speed does
    bool hold = true;             // a group that is far ahead waits
    bool look_ahead_more = true;  // pulls look ahead by the staleness of the group
    bool rates = true;            // the momentum is divided among the groups
    bool turns = true;            // groups whose transfers collide are moved apart
  };
  explicit GateGroups(const Rules& rules) : rules_(rules), groups_(rules.regroup) {}
  void joined(Instant now, std::span<const WorkerId> workers, Decisions& out) override;
  void left(Instant now, WorkerId worker, Decisions& out) override;
  void ordered(Instant now, WorkerId worker, Duration expected) override;
  void idled(Instant now, WorkerId worker, Decisions& out) override;
  void contributed(Instant now, const Contribution& contribution, Decisions& out) override;
  void refused(Instant now, WorkerId worker, Decisions& out) override;
  void updated(const Monitor& monitor) override;
  void woken(Instant now, Decisions& out) override { release_waiting(now, out); }
  [[nodiscard]] std::optional<std::uint32_t> cohort(WorkerId worker) const override { return places_[worker.value].group; }
  [[nodiscard]] std::uint32_t staleness(WorkerId worker) const override;
  [[nodiscard]] std::uint32_t streams() const override;

 private:
  struct GroupState {
    GateAll gate;
    std::set<WorkerId> members;
    std::uint64_t updates = 0;
    double staleness = 0;              // of its contributions, moving
    std::size_t busy = 0;              // steps ordered and not contributed
    std::vector<Release> waiting;      // for another group's update, or for not_before
    Why held = Why::ahead_of_slowest;  // why it waits, or waited last
    Instant not_before{};              // of its next round
    Instant released{};                // of its last round
    std::uint32_t collisions = 0;      // rounds in a row that began at the time of another group's
  };
  struct Place {
    Group group = 0;       // in which it works
    std::size_t busy = 0;  // steps
    Version base{};        // when its last step was ordered, counted as version_ is
  };
  [[nodiscard]] GroupState& group_state_of(WorkerId worker) { return group_states_[places_[worker.value].group]; }
  /// Adds the decisions of a group's gate to `out`.
  void take(Instant now, GroupState& group_state, Decisions& mine, Decisions& out);
  void enter(Instant now, std::span<const WorkerId> workers, Group group, Decisions& out);
  void change_group_if_due(Instant now, WorkerId worker, Decisions& out);
  void leave_group(Instant now, WorkerId worker, Decisions& out);
  void keep_apart(Instant now, GroupState& group_state);
  [[nodiscard]] bool too_far_ahead(const GroupState& group_state) const;
  [[nodiscard]] bool waits(Instant now, const GroupState& group_state, Decisions& out) const;
  void release_waiting(Instant now, Decisions& out);
  void done_with_a_step(WorkerId worker);
  [[nodiscard]] std::uint32_t at_work() const;  // groups that have members

  Rules rules_;
  Groups groups_;
  std::map<Group, GroupState> group_states_;
  std::vector<Place> places_;           // by id
  std::vector<WorkerId> since_update_;  // workers that have contributed
  Duration step_{};                     // expected time of the last order
  Version version_;                     // counts updates since this process started
};

}  // namespace motley::policy

// Gate `groups`: a barrier inside each group of workers of similar speed, nothing between the groups. After Grouping-SGD and GSSP.
//
// Rule: groups as in policy/gate/groups.h. A group's update is made when its last member has contributed, whatever the others do. A worker
//   that belongs elsewhere now goes over when it has contributed, and begins with the next round there. A group more than 4K updates ahead
//   of the slowest one (K groups) waits until another has made an update. Groups whose rounds begin together share the servers' links; who
//   has done so three times in a row waits a part of a step, once, so that from then on their values travel by turns.
// Each of the K groups makes updates of its part of the global batch, so the rate of group k is eta*B_k/B; momentum is shared out among
//   them (Strategy::momentum). A pull looks as many steps ahead as others' updates are usually made meanwhile.
// Guarantee: nobody waits for anybody much slower or faster than itself.
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
    bool hold = true;             // who is far ahead waits
    bool look_ahead_more = true;  // pulls look ahead by the staleness of the group
    bool rates = true;            // momentum is shared out among the groups
    bool turns = true;            // groups keep out of each other's way
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
  struct GroupState {  // one group at work
    GateAll gate;
    std::set<WorkerId> members;
    std::uint64_t updates = 0;
    double staleness = 0;              // of its contributions, moving
    std::size_t busy = 0;              // steps ordered and not contributed
    std::vector<Release> waiting;      // for somebody else's update, or for its time
    Why held = Why::ahead_of_slowest;  // why it waits, or did last
    Instant not_before{};              // its next round
    Instant released{};                // its last round
    std::uint32_t collisions = 0;      // rounds in a row that began together with another group's
  };
  struct Place {
    Group group = 0;       // that it works with
    std::size_t busy = 0;  // steps
    Version base{};        // when it was ordered its last one, counted as version_ is
  };
  [[nodiscard]] GroupState& group_state_of(WorkerId worker) { return group_states_[places_[worker.value].group]; }
  /// Takes what a lane's gate has decided into `out`.
  void take(Instant now, GroupState& group_state, Decisions& mine, Decisions& out);
  void enter(Instant now, std::span<const WorkerId> workers, Group group, Decisions& out);
  void change_group_if_due(Instant now, WorkerId worker, Decisions& out);
  void leave_group(Instant now, WorkerId worker, Decisions& out);
  void keep_apart(Instant now, GroupState& group_state);
  [[nodiscard]] bool too_far_ahead(const GroupState& group_state) const;
  [[nodiscard]] bool waits(Instant now, const GroupState& group_state, Decisions& out) const;
  void release_waiting(Instant now, Decisions& out);
  void done_with_a_step(WorkerId worker);
  [[nodiscard]] std::uint32_t at_work() const;  // groups with members

  Rules rules_;
  Groups groups_;
  std::map<Group, GroupState> group_states_;
  std::vector<Place> places_;           // by id
  std::vector<WorkerId> since_update_;  // who has contributed
  Duration step_{};                     // that an order is expected to take, the last one
  Version version_;                     // as many as were applied here: not those before a restart
};

}  // namespace motley::policy

// A shard: one server's share of the protocol. It counts slices in, commits what the chief says, streams parameters out. Which slices make
// a contribution whole it knows; what is in them it does not.
#pragma once
#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <variant>
#include <vector>

#include "protocol/peers.h"
#include "protocol/speculative_update.h"
#include "wire/permissions.h"

namespace motley::protocol {

/// Sum the parts into the parameters, then free them.
struct Commit {
  wire::Apply update;
  bool speculated = false;    // it is the expected update: slices of earlier Speculate actions are summed and applied already
  bool expects_next = false;  // an update like this one, at update.next_rate, is expected next; Speculate actions may follow
};
/// All parts of the expected update have this slice: sum and apply it beside the current parameters.
struct Speculate {
  SliceId slice;
  std::vector<wire::Part> parts;  // of the expected update, the same for all of its slices
};
/// Free the payload of this contribution.
struct Free {
  WorkerId worker;
  Step step;
};
/// Take this worker's copy of the parameters as they are now, looking rho ahead; the Pulled messages that follow carry it.
struct Snapshot {
  WorkerId worker;
  Step step;
  double rho{};
  std::uint8_t bits = 32;      // fewer: the class moves on by what fits into so many bits a value
  std::uint32_t pull_class{};  // whose members hold the same values; nothing when bits are 32
  bool first_of_class = true;  // nobody of the class has had this state yet: it moves on now
  bool whole = true;           // this worker gets the values as its class holds them, not the change
  bool keep = false;           // what it gets is to be remembered
  bool bf16_transfer = false;  // bits are 32: it gets the values rounded to 16, where those will do
};
/// Work out how far this contribution, which is here whole, goes the way of the momentum; tell the chief by AlignmentResult.
struct Compare {
  WorkerId worker;
  Step step;
};
/// Nothing that this worker was sent is needed any more.
struct ForgetSent {
  WorkerId worker;
};
/// Hand out the parameters as they are now.
struct ExportNow {
  Version version;
  bool state{};  // with the optimizer's
};
/// Tell the chief by Probe, when everything above is done.
struct ProveAlive {};
using ShardAction = std::variant<Send, Commit, Free, Snapshot, ExportNow, Compare, ForgetSent, ProveAlive, Speculate>;
using ShardActions = std::vector<ShardAction>;  // carry out in order

class Shard {
 public:
  /// `slices`: those that live here, ascending: the order in which they are streamed.
  /// `version`: of the parameters it begins with.
  Shard(ServerId server, std::vector<SliceId> slices, Version version = {});

  /// Total: messages of forgotten workers, and such as a server is never sent, change nothing.
  void step(const wire::Message& message, ShardActions& out);
  /// The bytes of this slice, to which there is no objection, are in memory. Its values may not be checked yet: step(push) follows when
  /// they are. A driver that does not speculate need not call this.
  void slice_arrived(const wire::Push& push, ShardActions& out);

  /// Why a message of a chief elsewhere must not be stepped: it speaks of what is not here. None: it may. For pushes, whatever came before
  /// from this worker: slices of a step that is over are let pass, and freed by step().
  [[nodiscard]] wire::Objection objection(const wire::Message& message) const;
  /// This slice will be freed at once when it comes: nobody is waiting for it any more.
  [[nodiscard]] bool is_over(const wire::Push& push) const;

  /// What was sent to this worker last has not reached it: the next parameters go to it as values, not as a change.
  void lost_pulls(WorkerId worker) { holds_.erase(worker); }

  [[nodiscard]] Version version() const { return version_; }
  /// Here, whole or in part, and neither applied nor discarded.
  [[nodiscard]] std::size_t contributions_held() const { return arrived_.size(); }

 private:
  void pushed(const wire::Push& push, ShardActions& out);
  void apply(const wire::Apply& update, ShardActions& out);
  void discard(WorkerId worker, Step step, ShardActions& out);
  void release(const wire::Release& release, ShardActions& out);
  [[nodiscard]] Snapshot snapshot_for(const wire::Release& release);
  void forget(WorkerId worker, ShardActions& out);
  void free(WorkerId worker, Step step, ShardActions& out);
  void end(WorkerId worker, Step step);
  [[nodiscard]] bool ended(WorkerId worker, Step step) const;
  [[nodiscard]] wire::Objection objection_to_push(const wire::Push& push) const;
  [[nodiscard]] wire::Objection objection_to_update(const wire::Apply& update) const;

  ServerId server_;
  std::vector<SliceId> slices_;
  /// What is here of one contribution. Whole: gathered, waiting for the chief's word.
  struct PartialContribution {
    std::vector<bool> here;  // by place in slices_
    std::size_t count = 0;
  };
  [[nodiscard]] bool whole(const PartialContribution& partial) const { return partial.count == slices_.size(); }
  std::map<std::pair<WorkerId, Step>, PartialContribution> arrived_;
  std::set<std::pair<WorkerId, Step>> unwanted_;  // discarded before all of it was here
  /// Steps of a worker that were applied or discarded: all below one, and some beyond it.
  struct Ended {
    Step below;
    std::set<Step> beyond;
  };
  std::map<WorkerId, Ended> ended_;
  /// What the members of a pull class hold: how often it has moved on, and to what.
  struct Class {
    std::uint64_t moves = 0;
    Version version;
    double rho = 0;
  };
  struct Holds {
    std::uint32_t pull_class = 0;
    std::uint64_t moves = 0;
  };
  std::map<std::uint32_t, Class> classes_;
  std::map<WorkerId, Holds> holds_;  // of members that were sent coded values last
  std::set<WorkerId> forgotten_;     // ids are never used again
  Version version_;
  SpeculativeUpdate speculative_update_;
};

}  // namespace motley::protocol

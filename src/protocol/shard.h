// The protocol of one server: collects pushed slices, commits the updates that the chief orders, and sends parameters. It knows which
// slices make a contribution complete, but not their values.
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
/// Copy the present parameters for this worker, with look-ahead rho; the following Pulled messages send the copy.
struct Snapshot {
  WorkerId worker;
  Step step;
  double rho{};
  std::uint8_t bits = 32;      // fewer: encode the change since the last parameters of the pull class in so many bits per value
  std::uint32_t pull_class{};  // the members of a class hold the same values; unused when bits are 32
  bool first_of_class = true;  // the first pull of this state in the class: it advances now
  bool whole = true;           // the worker gets the values of the class, not the difference
  bool keep = false;           // keep a copy for delay compensation
  bool bf16_transfer = false;  // with 32 bits: the values that may be rounded are sent as bf16
};
/// Compute the inner product of this complete contribution with the momentum, and send it to the chief as AlignmentResult.
struct Compare {
  WorkerId worker;
  Step step;
};
/// Copies of parameters sent to this worker are not needed any more.
struct ForgetSent {
  WorkerId worker;
};
/// Send the present parameters to the chief.
struct ExportNow {
  Version version;
  bool state{};  // with the optimizer's state
};
/// Return the Probe to the chief when all earlier actions are done.
struct ProveAlive {};
using ShardAction = std::variant<Send, Commit, Free, Snapshot, ExportNow, Compare, ForgetSent, ProveAlive, Speculate>;
using ShardActions = std::vector<ShardAction>;  // carry out in order

class Shard {
 public:
  /// `slices`: those of this server, ascending. The transport sends them by their priority (store/layout.h).
  /// `version`: of the initial parameters.
  Shard(ServerId server, std::vector<SliceId> slices, Version version = {});

  /// Accepts every message: those of former members, and those that a server is never sent, change nothing.
  void step(const wire::Message& message, ShardActions& out);
  /// The bytes of this slice, to which there is no objection, are in memory. Its values may not be checked yet: step(push) follows when
  /// they are. A driver that does not speculate need not call this.
  void slice_arrived(const wire::Push& push, ShardActions& out);

  /// The reason to refuse a chief's message because it refers to things that this shard does not have. None: it may be processed. For
  /// pushes, the reason to refuse it from this worker: slices of an ended step are accepted, and freed by step().
  [[nodiscard]] wire::Objection objection(const wire::Message& message) const;
  /// This slice will be freed on arrival: its contribution has ended.
  [[nodiscard]] bool is_over(const wire::Push& push) const;

  /// The last parameters sent to this worker were lost: the next ones are sent as values, not as a difference.
  void lost_pulls(WorkerId worker) { holds_.erase(worker); }

  [[nodiscard]] Version version() const { return version_; }
  /// Contributions that are here, completely or in part, neither applied nor discarded.
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
  /// The received slices of one contribution. Complete: gathered, waiting for the chief's decision.
  struct PartialContribution {
    std::vector<bool> here;  // by index in slices_
    std::size_t count = 0;
  };
  [[nodiscard]] bool whole(const PartialContribution& partial) const { return partial.count == slices_.size(); }
  std::map<std::pair<WorkerId, Step>, PartialContribution> arrived_;
  std::set<std::pair<WorkerId, Step>> unwanted_;  // discarded before they were complete
  /// The steps of a worker that were applied or discarded: all below one, and some above it.
  struct Ended {
    Step below;
    std::set<Step> beyond;
  };
  std::map<WorkerId, Ended> ended_;
  /// The state of a pull class: how often it has advanced, and to which version.
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
  std::map<WorkerId, Holds> holds_;  // of members whose last pull was encoded
  std::set<WorkerId> forgotten_;     // ids are never reused
  Version version_;
  SpeculativeUpdate speculative_update_;
};

}  // namespace motley::protocol

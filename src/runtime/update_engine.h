// Applies updates to a server's parameters on its store thread, together with the snapshot that workers will ask for next, and begins
// expected updates before they are ordered (protocol/speculative_update.h).
#pragma once
#include <functional>
#include <optional>
#include <vector>

#include "protocol/shard.h"
#include "runtime/receive_buffers.h"
#include "runtime/snapshot_cache.h"
#include "runtime/store_thread.h"

namespace motley::runtime {

/// Event-loop thread only. An update is not given to the store thread at once: the first pull after it tells the format of the snapshot
/// that it should write. Any other work for the store thread that depends on the update comes after flush().
class UpdateEngine {
 public:
  /// The update has written these slices of the snapshot. From the event loop.
  using OnWritten = std::function<void(const SharedSnapshot&, std::vector<SliceId>)>;
  UpdateEngine(const store::Layout& layout, StoreThread& store_thread, ReceiveBuffers& contributions, SnapshotCache& snapshots,
               OnWritten on_written);

  /// Takes the update's contributions. It begins with the next flush(), at the latest when the event loop comes to it.
  void commit(const protocol::Commit& commit);
  /// A worker asks for parameters in the format that the cache predicts now: an update that has not begun writes a snapshot in it.
  void expect_pull();
  /// Gives the store thread the update that has not begun, if there is one.
  void flush();
  /// Computes this slice of the expected update beside the current values; nothing is visible until commit().
  void speculate(const protocol::Speculate& complete);

 private:
  struct Pending {
    protocol::Commit commit;
    std::vector<Contribution> parts;
    std::optional<UpdateSnapshot> snapshot;
  };
  void apply(Pending pending);
  void begin_speculation(const protocol::Commit& commit);
  void speculate_waiting();

  store::Layout layout_;
  StoreThread& store_thread_;
  ReceiveBuffers& contributions_;
  SnapshotCache& snapshots_;
  OnWritten on_written_;
  std::optional<Pending> pending_;  // not known to the store thread yet
  // Of the expected update:
  std::optional<UpdateSnapshot> expected_snapshot_;
  std::vector<wire::Part> expected_parts_;  // as of the last complete slice
  std::vector<SliceId> complete_;           // slices to speculate in the next batch
  std::size_t batches_in_progress_ = 0;     // of earlier slices
};

}  // namespace motley::runtime

// The snapshots of a server's newest version: which exist, which are being made, and which format the next requests will ask for. Workers
// that ask for the same thing share one snapshot.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>

#include "protocol/shard.h"
#include "runtime/snapshot.h"
#include "runtime/store_thread.h"
#include "store/pull_shadow.h"

namespace motley::runtime {

/// Event-loop thread only; encoding runs on the store thread. A snapshot lives as long as a worker is still to be sent it; the one that the
/// last update wrote lives until the next update.
class SnapshotCache {
 public:
  /// A snapshot that was requested and not there is complete now. Called from the event loop.
  using OnReady = std::function<void(const SnapshotKey&, const SharedSnapshot&)>;
  SnapshotCache(const store::Layout& layout, ServerId server, Version version, StoreThread& store_thread, OnReady on_ready);

  [[nodiscard]] SnapshotKey key_of(const protocol::Snapshot& request) const;
  /// The snapshot of the newest version that answers `request`, null while it is being made: on_ready() follows.
  SharedSnapshot find_or_make(const protocol::Snapshot& request);

  /// The store thread is about to be told of this version: snapshots of older ones serve no new request. `written`: by the update itself.
  void begin_version(Version version, std::optional<UpdateSnapshot> written);
  /// The update to the newest version, of which the store thread does not know yet, will write this snapshot.
  void add(UpdateSnapshot written) { written_by_update_ = std::move(written); }

  /// The format that workers will ask for after this update, judged by their last requests. One format is predicted: where workers differ
  /// it is bf16, since workers that compute in bf16 are the fast ones.
  [[nodiscard]] store::SnapshotFormat predicted_format(const wire::Apply& update) const;
  /// A worker asked for fp32 or bf16 values in this format.
  void note_format(const protocol::Snapshot& request);
  void forget(WorkerId worker) { bf16_workers_.erase(worker); }

 private:
  struct Entry {
    bool being_made = true;
    std::weak_ptr<Snapshot> snapshot;
  };
  void make(const protocol::Snapshot& request, const SnapshotKey& key);
  void ready(const SnapshotKey& key, const SharedSnapshot& snapshot);

  store::Layout layout_;
  ServerId server_;
  Version version_;
  StoreThread& store_thread_;
  OnReady on_ready_;
  std::map<SnapshotKey, Entry> entries_;  // of the newest version
  std::optional<UpdateSnapshot> written_by_update_;
  double last_rho_ = 0;              // look-ahead of the last fp32 or bf16 request
  std::set<WorkerId> bf16_workers_;  // their last such request was for bf16
  using Shadows = std::map<std::uint32_t, store::PullShadow>;
  std::shared_ptr<Shadows> shadows_ = std::make_shared<Shadows>();  // by pull class; the store thread's
};

}  // namespace motley::runtime

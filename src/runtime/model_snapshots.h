// Versions of the model that a chief evaluates or saves: collects their parts from the servers, then does both on a background thread.
#pragma once
#include <boost/asio/io_context.hpp>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "base/result.h"
#include "runtime/background_thread.h"
#include "runtime/chief_hooks.h"
#include "runtime/model_assembly.h"
#include "store/layout.h"
#include "trace/event.h"

namespace motley::runtime {

/// Called on the event-loop thread.
class SnapshotOwner {
 public:
  SnapshotOwner() = default;
  SnapshotOwner(const SnapshotOwner&) = delete;
  SnapshotOwner& operator=(const SnapshotOwner&) = delete;
  virtual ~SnapshotOwner() = default;

  virtual void evaluated(const trace::Event& event) = 0;
  virtual void evaluation_failed(const Error& why) = 0;
  /// `what` of this version has values that are not finite.
  virtual void model_not_finite(Version version, const std::string& what) = 0;
  /// Something was collected, evaluated or saved: done() may be true now.
  virtual void snapshots_advanced() = 0;
};

/// Event-loop thread only.
class ModelSnapshots {
 public:
  /// `hooks` and `owner` outlive this.
  ModelSnapshots(boost::asio::io_context& event_loop, const store::Layout& layout, OptimizerKind optimizer, const ChiefHooks& hooks,
                 SnapshotOwner& owner);

  /// The slices were placed anew. Nothing has been requested yet.
  void set_layout(const store::Layout& layout) { assembly_ = ModelAssembly(layout, optimizer_); }
  /// The servers were told to export this version.
  void request(ModelRequest wanted) { assembly_.want(std::move(wanted)); }

  /// Parts of the versions, of server 0 and of the others; `newest` is the chief's version. See ModelAssembly.
  void exported(Exported part, Version newest);
  std::span<std::byte> receive_buffer(const wire::StateChunk& head, std::size_t bytes) { return assembly_.receive_buffer(head, bytes); }
  void received(const wire::StateChunk& head, Version newest);

  /// Everything that was requested has been evaluated or saved.
  [[nodiscard]] bool done() const { return assembly_.empty() && background_.idle(); }
  /// The model was updated: newest_values() is outdated.
  void updated() { newest_values_.reset(); }
  /// The whole model at the newest version, if it was collected.
  [[nodiscard]] SharedBuffer newest_values() const { return newest_values_; }

 private:
  void take_complete(Version newest);
  void evaluate(const ModelRequest& wanted);
  void save(ModelRequest& wanted);

  const ChiefHooks& hooks_;
  SnapshotOwner& owner_;
  OptimizerKind optimizer_;
  ModelAssembly assembly_;
  SharedBuffer newest_values_;
  std::optional<Version> infinite_loss_;  // the background thread's: the last version whose loss was not finite; it is not saved
  BackgroundThread background_;           // last: ends first
};

}  // namespace motley::runtime

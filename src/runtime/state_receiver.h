// Receives the state that a server begins with from its chief: slices of values and of the optimizer's moments, and their end.
#pragma once
#include <cstddef>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <utility>

#include "base/ids.h"
#include "base/result.h"
#include "runtime/peer_connection.h"
#include "runtime/shard_host.h"
#include "store/layout.h"
#include "wire/message.h"
#include "wire/permissions.h"

namespace motley::runtime {

class StateReceiver {
 public:
  /// `layout` outlives this.
  StateReceiver(const store::Layout& layout, ServerId server);

  /// Why the message must not be received; none: it may.
  [[nodiscard]] wire::Objection objection(const wire::StateChunk& chunk) const;
  [[nodiscard]] wire::Objection objection(const wire::StateEnd& end) const;
  /// Memory for the payload; empty: there is no such slice, or its size is wrong.
  std::span<std::byte> receive_buffer(PeerConnection& from, const wire::StateChunk& chunk, std::size_t bytes);
  void received(PeerConnection& from, const wire::StateChunk& chunk);
  void received(const wire::StateEnd& end) { end_ = end; }
  /// The control and the bulk lane overtake each other: complete once the end and as many chunks as it says are here.
  [[nodiscard]] bool is_complete() const { return end_ && chunks_.size() >= end_->pieces; }
  /// Once, when complete. An error: the chunks are not those of this server.
  Result<std::shared_ptr<const InitialState>> take();

 private:
  const store::Layout& layout_;
  ServerId server_;
  std::shared_ptr<InitialState> state_;
  std::set<std::pair<SliceId, wire::StateKind>> chunks_;  // received
  std::optional<wire::StateEnd> end_;
};

}  // namespace motley::runtime

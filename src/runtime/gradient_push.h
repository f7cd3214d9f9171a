// Sends a worker's contributions to the servers, slice by slice: as they are, or encoded with error feedback.
#pragma once
#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "base/ids.h"
#include "runtime/peer_connection.h"
#include "runtime/step_executor.h"
#include "store/layout.h"
#include "store/push_stream.h"
#include "wire/message.h"

namespace motley::runtime {

/// Event-loop thread only.
class GradientPush {
 public:
  /// `local_steps`: contributions are changes of the model, which do not scale with the learning rate. `layout` outlives this.
  GradientPush(const store::Layout& layout, bool local_steps) : layout_(layout), local_steps_(local_steps) {}

  /// `push.bits`: as ordered; a contribution that the device has encoded is sent with the device's bits. The contribution's memory, or its
  /// encoded copy, is kept until the transport has read it.
  void send(PeerConnection& server, wire::Push push, const Computation& computation);
  /// See store::PushStream; 0 when nothing was encoded here.
  [[nodiscard]] double residual_ratio() const { return stream_ ? stream_->residual_ratio() : 0; }

 private:
  std::shared_ptr<std::vector<std::byte>> encode(const wire::Push& push, const Computation& computation);

  const store::Layout& layout_;
  bool local_steps_;
  std::optional<store::PushStream> stream_;  // from the first slice that is encoded
  std::optional<Step> encoding_;             // the contribution that `stream_` encodes
};

}  // namespace motley::runtime

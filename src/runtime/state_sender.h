// Sends the states that a server exports to its chief, one after another, so that the chief can tell their slices apart.
#pragma once
#include <deque>
#include <memory>

#include "base/ids.h"
#include "runtime/peer_connection.h"
#include "runtime/shard_host.h"
#include "store/layout.h"

namespace motley::runtime {

class StateSender {
 public:
  /// `layout` and `chief` outlive this. Nothing else is sent through `chief` with PeerConnection::send_payload().
  StateSender(const store::Layout& layout, ServerId server, PeerConnection& chief) : layout_(layout), server_(server), chief_(chief) {}

  void send(const std::shared_ptr<const Exported>& state);
  /// The transport has read a payload to the chief.
  void sent();

 private:
  void send_first();

  const store::Layout& layout_;
  ServerId server_;
  PeerConnection& chief_;
  std::deque<std::shared_ptr<const Exported>> waiting_;  // the first one is being sent
};

}  // namespace motley::runtime

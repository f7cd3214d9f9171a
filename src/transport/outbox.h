// The bulk messages that wait for the bulk lane, the most urgent first. Pure: no socket, no clock. Priorities as in ByteScheduler (SOSP
// 2019): slices that the next forward pass needs first overtake slices queued earlier. Ageing prevents starvation.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>

#include "transport/transport.h"

namespace motley::transport {

/// Cost: O(log n) per message.
class Outbox {
 public:
  /// The oldest message goes next once `overtakes` later ones have gone before it.
  explicit Outbox(std::uint32_t overtakes) : overtakes_(overtakes) {}

  void push(const BulkMessage& bulk_message);
  /// The message that pop() would take. Must not be empty.
  [[nodiscard]] const BulkMessage& next() const { return chosen()->second; }
  BulkMessage pop();
  void clear();

  [[nodiscard]] bool empty() const { return waiting_.empty(); }
  [[nodiscard]] std::size_t size() const { return waiting_.size(); }
  [[nodiscard]] std::size_t payload_bytes() const { return payload_bytes_; }

 private:
  using SequenceNumber = std::uint64_t;
  using Waiting = std::map<std::pair<std::uint32_t, SequenceNumber>, BulkMessage>;  // by priority, then arrival

  [[nodiscard]] Waiting::const_iterator chosen() const;

  std::uint32_t overtakes_;
  std::uint32_t oldest_overtaken_ = 0;  // messages that have overtaken the front of by_arrival_ since it became the oldest
  Waiting waiting_;
  std::map<SequenceNumber, std::uint32_t> by_arrival_;  // the priority of each message
  SequenceNumber arrivals_ = 0;
  std::size_t payload_bytes_ = 0;
};

}  // namespace motley::transport

#include "sim/transfers.h"

#include <utility>

#include "base/check.h"
#include "codec/codec.h"

namespace motley::sim {

Transfers::Transfers(const cluster::Spec& cluster, const store::Layout& layout, EventQueue<WorldEvent>& queue)
    : layout_(layout),
      queue_(queue),
      network_(cluster, {[this](Instant when, std::uint32_t egress) { queue_.at(when, EgressFree{egress}); },
                         [this](Instant when, std::uint32_t bulk_message) { queue_.at(when, BulkMessageReaches{bulk_message}); },
                         [this](Instant when, std::uint32_t bulk_message) { queue_.at(when, BulkMessageArrives{bulk_message}); }}) {}

void Transfers::send(Instant now, ControlMessage message, Port from, Port to) {
  std::uint32_t slot = 0;
  if (unused_.empty()) {
    slot = keep(std::move(message)).message;
  } else {
    slot = unused_.back();
    unused_.pop_back();
    messages_[slot] = std::move(message);
  }
  queue_.at(network_.departure(now, from, to) + network_.latency(from, to), ControlArrives{slot});
}

void Transfers::send(Instant now, const wire::Push& slice, std::uint32_t node, std::uint32_t server, std::uint8_t bits) {
  network_.send(now, {node_port(node), server_port(server), layout_[slice.slice].priority, bytes_of(slice.slice, bits), slice});
}

void Transfers::send(Instant now, const wire::Pulled& slice, std::uint32_t server, std::uint32_t node) {
  network_.send(now, {server_port(server), node_port(node), layout_[slice.slice].priority, bytes_of(slice.slice, slice.bits), slice});
}

Instant Transfers::loss_noticed(Instant now, Port from, Port to) const {
  return network_.departure(now, from, to) + network_.latency(from, to);
}

ControlMessage Transfers::take(const ControlArrives& arrival) {
  unused_.push_back(arrival.message);
  return std::move(messages_[arrival.message]);
}

ControlArrives Transfers::keep(ControlMessage message) {
  messages_.push_back(std::move(message));
  return {static_cast<std::uint32_t>(messages_.size() - 1)};
}

std::uint64_t Transfers::bytes_of(SliceId slice, std::uint8_t bits) {
  auto& bytes = slice_bytes_[bits];
  if (bytes.empty()) {
    for (const store::Slice& s : layout_.slices) {
      const auto codec = codec::make(s.bits(bits));
      check(codec.ok(), "a strategy uses numbers of bits that have a codec");
      bytes.push_back((*codec)->encoded_bytes(s.count));
    }
  }
  return bytes[slice.value];
}

}  // namespace motley::sim

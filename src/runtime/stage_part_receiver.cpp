#include "runtime/stage_part_receiver.h"

namespace motley::runtime {

StagePartReceiver::StagePartReceiver(const store::StagePlace& place, std::uint32_t kinds, std::uint64_t updates)
    : part_(std::make_shared<store::StagePart>()), missing_(place.values + (kinds - 1) * place.parameters) {
  part_->values.resize(place.values);
  if (kinds > 1) part_->first.resize(place.parameters);
  if (kinds > 2) part_->second.resize(place.parameters);
  part_->updates = updates;
}

std::span<std::byte> StagePartReceiver::receive_buffer(PeerConnection& from, const wire::StageSlice& slice, std::size_t bytes) {
  std::vector<float>& all = slice.state_kind == wire::StateKind::values  ? part_->values
                            : slice.state_kind == wire::StateKind::first ? part_->first
                                                                         : part_->second;
  const std::size_t count = bytes / sizeof(float);
  if (bytes % sizeof(float) != 0 || slice.offset > all.size() || count > all.size() - slice.offset) return {};
  return from.receive_into(std::as_writable_bytes(std::span(all).subspan(slice.offset, count)), part_);
}

void StagePartReceiver::received(PeerConnection& from, const wire::StageSlice& slice) {
  const PeerConnection::Received payload = from.take_received();
  if (payload.memory != part_) return;
  const std::size_t count = payload.bytes.size() / sizeof(float);
  received_[index(slice)] += count;
  missing_ -= count;
}

}  // namespace motley::runtime

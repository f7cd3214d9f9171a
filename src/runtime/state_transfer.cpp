#include "runtime/state_transfer.h"

#include "base/check.h"
#include "codec/codec.h"

namespace motley::runtime {

std::uint64_t encoded_bytes(const store::Layout& layout, ServerId server, std::uint8_t bits) {
  std::uint64_t bytes = 0;
  for (const SliceId slice : layout.of(server)) {
    const auto codec = codec::make(layout[slice].bits(bits));
    check(codec.ok(), "there is a codec for the bits that a strategy asks for");
    bytes += (*codec)->encoded_bytes(layout[slice].count);
  }
  return bytes;
}

std::uint64_t pieces_of(const store::Layout& layout, ServerId server, bool first, bool second) {
  std::uint64_t pieces = 0;
  for (const SliceId id : layout.of(server))
    pieces += layout[id].kind == TensorKind::parameter ? 1U + (first ? 1U : 0U) + (second ? 1U : 0U) : 1U;
  return pieces;
}

void send_state(const store::Layout& layout, ServerId server, Version version, std::span<const float> values, const store::Moments* moments,
                const SendStateChunk& send) {
  for (const SliceId id : layout.of(server)) {
    const store::Slice& slice = layout[id];
    const auto piece = [&](std::span<const float> all) { return std::as_bytes(all.subspan(slice.offset, slice.count)); };
    send({server, version, id, wire::StateKind::values}, piece(values));
    if (moments == nullptr || slice.kind != TensorKind::parameter) continue;
    send({server, version, id, wire::StateKind::first}, piece(moments->first));
    if (!moments->second.empty()) send({server, version, id, wire::StateKind::second}, piece(moments->second));
  }
}

std::span<std::byte> place(const store::Layout& layout, const wire::StateChunk& head, std::size_t bytes, std::span<float> values,
                           std::optional<store::Moments>& moments) {
  if (head.slice.value >= layout.slices.size()) return {};
  const store::Slice& slice = layout[head.slice];
  if (slice.server != head.server || slice.count * sizeof(float) != bytes) return {};
  if (head.state_kind == wire::StateKind::values) return std::as_writable_bytes(values.subspan(slice.offset, slice.count));
  if (!moments) moments.emplace();
  auto& held = head.state_kind == wire::StateKind::first ? moments->first : moments->second;
  held.resize(layout.values);
  return std::as_writable_bytes(std::span(held).subspan(slice.offset, slice.count));
}

}  // namespace motley::runtime

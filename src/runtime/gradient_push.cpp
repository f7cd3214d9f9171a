#include "runtime/gradient_push.h"

#include <span>
#include <utility>

#include "base/bits.h"
#include "codec/codec.h"

namespace motley::runtime {

void GradientPush::send(PeerConnection& server, wire::Push push, const Computation& computation) {
  const std::uint8_t device_bits = computation.coded;
  if (device_bits > 0) push.bits = device_bits;
  const store::Slice& slice = layout_[push.slice];
  const std::uint8_t bits = slice.bits(push.bits);
  std::shared_ptr<const void> memory = computation.out;
  std::span<const std::byte> payload = std::as_const(*computation.out).bytes(slice.offset, slice.count);
  if (device_bits > 0) {
    payload = payload.first(codec::encoded_bytes(bits, slice.count));
  } else if (bits != fp32_bits || (stream_ && stream_->has_residual(push.slice))) {
    const auto encoded = encode(push, computation);
    payload = *encoded;
    memory = encoded;
  }
  server.send_payload({.head = push, .payload = payload, .priority = slice.priority, .may_borrow = true}, std::move(memory));
}

std::shared_ptr<std::vector<std::byte>> GradientPush::encode(const wire::Push& push, const Computation& computation) {
  if (!stream_) stream_.emplace(layout_);
  if (encoding_ != push.step) {
    encoding_ = push.step;
    stream_->begin(local_steps_ ? 0 : computation.samples, computation.order.rate);
  }
  auto bytes = std::make_shared<std::vector<std::byte>>();
  stream_->encode(push.slice, push.bits, std::as_const(*computation.out).floats(), *bytes);
  return bytes;
}

}  // namespace motley::runtime

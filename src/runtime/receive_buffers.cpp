#include "runtime/receive_buffers.h"

#include <algorithm>

#include "base/bits.h"
#include "base/check.h"
#include "base/finite.h"

namespace motley::runtime {

ReceiveBuffers::ReceiveBuffers(const store::Layout& layout, ServerId server, StoreThread& store_thread, OnChecked on_checked)
    : layout_(layout),
      own_slices_(layout.of(server).size()),
      on_checked_(std::move(on_checked)),
      checker_(store_thread, [this](const ValueChecker::Slice& slice, bool finite) { checked(slice, finite); }),
      decoder_(store_thread) {}

std::span<std::byte> ReceiveBuffers::receive_buffer(const transport::Connection& from, const wire::Push& push, std::size_t bytes,
                                                    bool discard) {
  const store::Slice& slice = layout_[push.slice];
  const codec::Codec* codec = codec_of(bits_of(push));
  if (codec == nullptr || codec->encoded_bytes(slice.count) != bytes) return {};
  if (!discard && is_here(push)) return {};
  Receiving& receiving = receiving_[&from] = {};
  if (!discard) {
    receiving.flat = writable_buffer({push.worker, push.step});
    if (summed_as_received(push)) return receiving.flat->bytes(slice.offset, slice.count).first(bytes);
  }
  receiving.bytes.resize(bytes);
  return receiving.bytes;
}

bool ReceiveBuffers::received(const transport::Connection& from, const wire::Push& push, bool discard) {
  auto extracted = receiving_.extract(&from);
  if (extracted.empty() || !extracted.mapped().flat || discard) return false;
  Receiving& receiving = extracted.mapped();
  Partial& partial = store_slice(push, receiving.flat);
  partial.contribution.flat = receiving.flat;
  const store::Slice& slice = layout_[push.slice];
  const std::uint8_t bits = bits_of(push);
  const std::size_t bytes = codec::encoded_bytes(bits, slice.count);
  const bool flat = summed_as_received(push);
  const auto payload = flat ? std::as_const(*receiving.flat).bytes(slice.offset, slice.count).first(bytes) : receiving.bytes;
  const bool finite = codec_of(bits)->all_below(value_limit, payload, slice.count);  // just received: the bytes are in the cache
  partial.finite = partial.finite && finite;
  ++partial.checked;
  bytes_received_ += bytes;
  if (!flat) decoder_.add({std::move(receiving.flat), slice, bits, std::move(receiving.bytes)});
  return true;
}

bool ReceiveBuffers::accept_in_place(const wire::Push& push, std::span<const std::byte> payload, const transport::BorrowedMemory& borrow) {
  const store::Slice& slice = layout_[push.slice];
  if (!summed_as_received(push) || payload.size() != codec::encoded_bytes(bits_of(push), slice.count)) return false;
  if (is_here(push)) return false;
  const float* flat = Buffer::flat_begin(payload, slice.offset);
  const Contribution* known = find({push.worker, push.step});
  if (known != nullptr && (!known->flat->borrowed() || known->flat->floats().data() != flat)) return false;
  Partial& partial = store_slice(push, known == nullptr ? std::make_shared<Buffer>(flat, layout_.values) : nullptr);
  partial.contribution.flat->add(borrow);
  partial.borrowed.push_back(push.slice);
  bytes_received_ += payload.size();
  checker_.add({push, partial.number, bits_of(push), payload, borrow});
  return true;
}

void ReceiveBuffers::checked(const ValueChecker::Slice& slice, bool finite) {
  const auto found = contributions_.find({slice.push.worker, slice.push.step});
  if (found == contributions_.end() || found->second.number != slice.contribution) return;  // erased meanwhile
  ++found->second.checked;
  found->second.finite = found->second.finite && finite;
  on_checked_(slice.push);
}

/// Marks the slice as here. `flat`: the contribution's buffer, if this is its first slice.
ReceiveBuffers::Partial& ReceiveBuffers::store_slice(const wire::Push& push, const SharedBuffer& flat) {
  const auto [found, first] = contributions_.try_emplace({push.worker, push.step});
  Partial& partial = found->second;
  if (first) {
    const std::size_t slices = layout_.slices.size();
    partial = {next_number_++, {flat, std::vector<bool>(slices)}, std::vector<bool>(slices), {}};
  }
  partial.here[push.slice.value] = true;
  partial.contribution.bf16_transfer[push.slice.value] = bits_of(push) == bf16_bits;
  return partial;
}

/// The buffer of a contribution, for the process to write to: slices that it borrows are copied first.
SharedBuffer ReceiveBuffers::writable_buffer(const ContributionKey& key) {
  const auto found = contributions_.find(key);
  if (found == contributions_.end()) return make_buffer(layout_.values);
  Partial& partial = found->second;
  SharedBuffer& flat = partial.contribution.flat;
  if (!flat->borrowed()) return flat;
  SharedBuffer copy = make_buffer(layout_.values);
  for (const SliceId id : partial.borrowed) {
    const store::Slice& slice = layout_[id];
    const std::size_t bytes = codec::encoded_bytes(partial.contribution.bf16_transfer[id.value] ? bf16_bits : fp32_bits, slice.count);
    const auto source = std::as_const(*flat).bytes(slice.offset, slice.count).first(bytes);
    std::copy(source.begin(), source.end(), copy->bytes(slice.offset, slice.count).begin());
  }
  partial.borrowed.clear();
  return flat = std::move(copy);
}

bool ReceiveBuffers::is_here(const wire::Push& push) const {
  const auto found = contributions_.find({push.worker, push.step});
  return found != contributions_.end() && found->second.here[push.slice.value];
}

/// fp32 and bf16 are summed without decoding.
bool ReceiveBuffers::summed_as_received(const wire::Push& push) const {
  const std::uint8_t bits = bits_of(push);
  return bits == fp32_bits || bits == bf16_bits;
}

const codec::Codec* ReceiveBuffers::codec_of(std::uint8_t bits) {
  auto& codec = codecs_[bits];
  if (!codec)
    if (auto made = codec::make(bits); made.ok()) codec = std::move(*made);
  return codec.get();
}

const Contribution* ReceiveBuffers::find(const ContributionKey& key) const {
  const auto found = contributions_.find(key);
  return found == contributions_.end() ? nullptr : &found->second.contribution;
}

Contribution ReceiveBuffers::take(const ContributionKey& key) {
  auto extracted = contributions_.extract(key);
  check(!extracted.empty(), "a contribution that is applied is here");
  return std::move(extracted.mapped().contribution);
}

void ReceiveBuffers::erase_incomplete(WorkerId worker) {
  std::erase_if(contributions_, [&](const auto& entry) { return entry.first.first == worker && entry.second.checked < own_slices_; });
}

}  // namespace motley::runtime

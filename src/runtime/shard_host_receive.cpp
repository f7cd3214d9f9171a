// Slices of contributions, as they come in: where each lands, or where it lies and is read; that its values are such as can be applied; and
// what is coded, decoded.
#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <utility>

#include "base/check.h"
#include "base/finite.h"
#include "runtime/shard_host.h"

namespace motley::runtime {
namespace {

std::unique_ptr<codec::Codec> codec_of(int bits) {
  auto made = codec::make(bits);
  check(made.ok(), "a strategy asks for bits that there is a codec for");
  return std::move(*made);
}

}  // namespace

wire::Objection ShardHost::objection(const transport::Connection& from, const wire::Push& push) const {
  if (!gone_.contains(push.worker) && !may_push(from, push.worker))
    return fmt::format("it pushes for worker {} and is not attached as it", push.worker.value);
  return machine_.objection(push);
}

wire::Objection ShardHost::objection(const wire::Message& message) const {
  const auto* release = std::get_if<wire::Release>(&message);
  if (release != nullptr && !codec::make(release->pull_bits).ok()) return fmt::format("there is no codec of {} bits", release->pull_bits);
  return machine_.objection(message);
}

std::span<std::byte> ShardHost::receive_buffer(const transport::Connection& from, const wire::Push& push, std::size_t bytes) {
  if (objection(from, push)) return {};
  const store::Slice& slice = layout_[push.slice];
  const std::uint8_t bits = slice.bits(push.bits);
  auto& codec = codecs_[bits];
  if (!codec) {
    auto made = codec::make(bits);
    if (!made.ok()) return {};
    codec = std::move(*made);
  }
  if (codec->encoded_bytes(slice.count) != bytes) return {};
  const bool over = machine_.is_over(push);
  if (!over && is_here(push)) return {};
  ReceiveBuffer& landing_buffer = landing_buffers_[&from] = {};
  if (!over) {
    landing_buffer.flat = own({push.worker, push.step});
    if (as_it_comes(push)) return landing_buffer.flat->bytes(slice.offset, slice.count).first(bytes);
  }
  landing_buffer.bytes.resize(bytes);
  return landing_buffer.bytes;
}

bool ShardHost::is_attached(const transport::Connection& connection) const {
  return std::any_of(attached_.begin(), attached_.end(), [&](const auto& one) { return one.second == &connection; });
}

bool ShardHost::may_push(const transport::Connection& from, WorkerId worker) const {
  const auto owner = attached_.find(worker);
  return owner != attached_.end() && owner->second == &from;
}

/// It must not come again: it may be looked at already.
bool ShardHost::is_here(const wire::Push& push) const {
  const auto found = contributions_.find({push.worker, push.step});
  return found != contributions_.end() && found->second.here[push.slice.value];
}

/// The contribution of this slice, which is here now. `flat`: where it lies if it is the first.
ShardHost::Contribution& ShardHost::begun(const wire::Push& push, const SharedBuffer& flat) {
  const auto [found, fresh] = contributions_.try_emplace({push.worker, push.step});
  Contribution& here = found->second;
  const std::size_t slices = layout_.slices.size();
  if (fresh) here = {next_contribution_++, flat, std::vector<bool>(slices), std::vector<bool>(slices), {}};
  here.here[push.slice.value] = true;
  here.bf16_transfer[push.slice.value] = layout_[push.slice].bits(push.bits) == bf16_bits;
  return here;
}

/// Its bytes can be summed: floats, or upper halves of floats.
bool ShardHost::as_it_comes(const wire::Push& push) const {
  const std::uint8_t bits = layout_[push.slice].bits(push.bits);
  return bits == fp32_bits || bits == bf16_bits;
}

/// The buffer of a contribution, to write to. What was borrowed for it so far is copied.
SharedBuffer ShardHost::own(const ContributionKey& contribution) {
  const auto found = contributions_.find(contribution);
  if (found == contributions_.end()) return make_buffer(layout_.values);
  Contribution& here = found->second;
  if (!here.flat->borrowed()) return here.flat;
  SharedBuffer copy = make_buffer(layout_.values);
  for (const SliceId id : here.kept) {
    const std::size_t bytes = codec::encoded_bytes(here.bf16_transfer[id.value] ? bf16_bits : fp32_bits, layout_[id].count);
    const auto from = std::as_const(*here.flat).bytes(layout_[id].offset, layout_[id].count).first(bytes);
    std::copy(from.begin(), from.end(), copy->bytes(layout_[id].offset, layout_[id].count).begin());
  }
  here.kept.clear();
  return here.flat = std::move(copy);
}

bool ShardHost::accept_in_place(const transport::Connection& from, const wire::Push& push, std::span<const std::byte> payload,
                                const transport::BorrowedMemory& borrow) {
  if (objection(from, push) || machine_.is_over(push)) return false;
  const store::Slice& slice = layout_[push.slice];
  if (!as_it_comes(push) || payload.size() != codec::encoded_bytes(slice.bits(push.bits), slice.count)) return false;
  if (is_here(push)) return false;
  const float* flat = Buffer::initial_state(payload, slice.offset);
  const auto found = contributions_.find({push.worker, push.step});
  if (found != contributions_.end() && (!found->second.flat->borrowed() || found->second.flat->floats().data() != flat)) return false;
  Contribution& here = begun(push, found == contributions_.end() ? std::make_shared<Buffer>(flat, layout_.values) : nullptr);
  here.flat->add(borrow);
  here.kept.push_back(push.slice);
  bytes_pushed_ += payload.size();
  unseen_.push_back({push, here.number, slice.bits(push.bits), payload, borrow});
  if (!looking_) look_at_waiting();
  speculate_slice(push);
  return true;
}

/// What a peer has written is in none of our caches: the team reads it, in pieces, while the pump goes on. The peer could still write to it
/// afterwards; but it is a process of this user, to whom our memory is as open as its own.
void ShardHost::look_at_waiting() {
  if (unseen_.empty()) return;
  looking_ = true;
  store_thread_.post(
      [this, alive = alive_, pool = pool_, slices = std::make_shared<std::vector<Unseen>>(std::exchange(unseen_, {}))]() mutable {
        const std::vector<Unseen>& batch = *slices;
        constexpr std::size_t piece_bytes = std::size_t{256} << 10U;
        std::vector<std::pair<std::size_t, std::size_t>> pieces;  // slice, and where in it
        for (std::size_t i = 0; i < batch.size(); ++i)
          for (std::size_t at = 0; at < batch[i].payload.size(); at += piece_bytes) pieces.emplace_back(i, at);
        std::vector<std::uint8_t> finite(pieces.size());  // not bool: threads write side by side
        pool->parallel_for(pieces.size(), [&](std::size_t p) {
          const Unseen& slice = batch[pieces[p].first];
          const auto piece = slice.payload.subspan(pieces[p].second);
          const auto bytes = piece.first(std::min(piece.size(), piece_bytes));
          finite[p] = codec_of(slice.bits)->all_below(value_limit, bytes, bytes.size() * 8 / slice.bits) ? 1 : 0;
        });
        std::vector<bool> all(batch.size(), true);
        for (std::size_t p = 0; p < pieces.size(); ++p)
          if (finite[p] == 0) all[pieces[p].first] = false;
        boost::asio::post(event_loop_, [this, alive, slices = std::move(slices), all] {
          if (!*alive) return;
          looking_ = false;
          for (std::size_t i = 0; i < slices->size(); ++i) looked_at((*slices)[i].push, (*slices)[i].number, all[i]);
          if (!looking_) look_at_waiting();
        });
      });
}

/// From now on the slice counts. Nothing when its contribution was freed meanwhile.
void ShardHost::looked_at(const wire::Push& push, std::uint64_t number, bool finite) {
  const auto found = contributions_.find({push.worker, push.step});
  if (found == contributions_.end() || found->second.number != number) return;
  ++found->second.counted;
  found->second.finite = found->second.finite && finite;
  receive(push);
}

void ShardHost::received(const transport::Connection& from, const wire::Push& push) {
  auto arrived_slices = landing_buffers_.extract(&from);
  if (arrived_slices.empty() || !arrived_slices.mapped().flat || machine_.is_over(push)) return;
  ReceiveBuffer& landing_buffer = arrived_slices.mapped();
  Contribution& here = begun(push, landing_buffer.flat);
  here.flat = landing_buffer.flat;
  const store::Slice& slice = layout_[push.slice];
  const std::uint8_t bits = slice.bits(push.bits);
  const std::size_t bytes = codec::encoded_bytes(bits, slice.count);
  const bool as_it_is = as_it_comes(push);
  const auto payload = as_it_is ? std::as_const(*landing_buffer.flat).bytes(slice.offset, slice.count).first(bytes) : landing_buffer.bytes;
  const bool finite = codecs_.at(bits)->all_below(value_limit, payload, slice.count);  // just copied: it is in the cache
  bytes_pushed_ += bytes;
  const std::uint64_t number = here.number;
  if (!as_it_is) decode({std::move(landing_buffer.flat), slice, bits, std::move(landing_buffer.bytes)});
  speculate_slice(push);
  looked_at(push, number, finite);
}

/// Slices that come faster than one thread decodes them gather while it does, and are then decoded side by side.
void ShardHost::decode(Coded coded) {
  coded_.push_back(std::move(coded));
  if (!decoding_) decode_waiting();
}

void ShardHost::decode_waiting() {
  if (coded_.empty()) return;
  decoding_ = true;
  store_thread_.post([this, alive = alive_, pool = pool_, batch = std::exchange(coded_, {})] {
    pool->parallel_for(batch.size(), [&](std::size_t i) {
      const Coded& coded = batch[i];
      const Outcome decoded =
          codec_of(coded.bits)->decode(coded.bytes, coded.flat->floats().subspan(coded.slice.offset, coded.slice.count));
      check(decoded.ok(), "a payload's size was checked when it was announced");
    });
    boost::asio::post(event_loop_, [this, alive] {
      if (!*alive) return;
      decoding_ = false;
      decode_waiting();
    });
  });
}

}  // namespace motley::runtime

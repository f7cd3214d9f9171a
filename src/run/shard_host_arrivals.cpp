// Slices of contributions, as they come in: where each lands, or where it lies and is read; and what is coded, decoded.
#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <utility>

#include "base/check.h"
#include "run/shard_host.h"

namespace motley::run {
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
  constexpr std::size_t most_pulls = 64;  // that wait for one worker
  if (const auto* release = std::get_if<wire::Release>(&message)) {
    const auto waiting = pulls_.find(release->worker);
    if (!codec::make(release->pull_bits).ok()) return fmt::format("there is no codec of {} bits", release->pull_bits);
    if (waiting != pulls_.end() && waiting->second.size() >= most_pulls)
      return fmt::format("more than {} pulls wait for worker {}", most_pulls, release->worker.value);
  }
  return machine_.objection(message);
}

std::span<std::byte> ShardHost::room(const transport::Connection& from, const wire::Push& push, std::size_t bytes) {
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
  Landing& landing = landings_[&from] = {};
  if (!machine_.is_over(push)) {
    landing.flat = own({push.worker, push.step});
    if (as_it_comes(push)) return landing.flat->bytes(slice.offset, slice.count).first(bytes);
  }
  landing.bytes.resize(bytes);
  return landing.bytes;
}

bool ShardHost::is_attached(const transport::Connection& connection) const {
  return std::any_of(attached_.begin(), attached_.end(), [&](const auto& one) { return one.second == &connection; });
}

bool ShardHost::may_push(const transport::Connection& from, WorkerId worker) const {
  const auto owner = attached_.find(worker);
  return owner != attached_.end() && owner->second == &from;
}

/// Its bytes can be summed: floats, or upper halves of floats.
bool ShardHost::as_it_comes(const wire::Push& push) const {
  const std::uint8_t bits = layout_[push.slice].bits(push.bits);
  return bits == plain_bits || bits == half_bits;
}

/// The buffer of a contribution, to write to. What was borrowed for it so far is copied.
SharedBuffer ShardHost::own(const ContributionKey& contribution) {
  const auto found = contributions_.find(contribution);
  if (found == contributions_.end()) return make_buffer(layout_.values);
  Contribution& here = found->second;
  if (!here.flat->borrowed()) return here.flat;
  SharedBuffer copy = make_buffer(layout_.values);
  for (const SliceId id : here.kept) {
    const std::size_t bytes = codec::encoded_bytes(here.halves[id.value] ? half_bits : plain_bits, layout_[id].count);
    const auto from = std::as_const(*here.flat).bytes(layout_[id].offset, layout_[id].count).first(bytes);
    std::copy(from.begin(), from.end(), copy->bytes(layout_[id].offset, layout_[id].count).begin());
  }
  here.kept.clear();
  return here.flat = std::move(copy);
}

bool ShardHost::keep(const transport::Connection& from, const wire::Push& push, std::span<const std::byte> payload,
                     const transport::Loan& loan) {
  if (objection(from, push) || machine_.is_over(push)) return false;
  const store::Slice& slice = layout_[push.slice];
  if (!as_it_comes(push) || payload.size() != codec::encoded_bytes(slice.bits(push.bits), slice.count)) return false;
  const float* flat = Buffer::beginning(payload, slice.offset);
  const auto [found, fresh] = contributions_.try_emplace({push.worker, push.step});
  Contribution& here = found->second;
  if (fresh) here = {std::make_shared<Buffer>(flat, layout_.values), std::vector<bool>(layout_.slices.size()), {}};
  if (!here.flat->borrowed() || here.flat->floats().data() != flat) return false;
  here.flat->add(loan);
  here.halves[push.slice.value] = slice.bits(push.bits) == half_bits;
  here.kept.push_back(push.slice);
  bytes_pushed_ += payload.size();
  prepare(push);
  hear(push);
  return true;
}

void ShardHost::received(const transport::Connection& from, const wire::Push& push) {
  auto landed = landings_.extract(&from);
  if (landed.empty() || !landed.mapped().flat || machine_.is_over(push)) return;
  Landing& landing = landed.mapped();
  Contribution& here = contributions_[{push.worker, push.step}];
  here.flat = landing.flat;
  here.halves.resize(layout_.slices.size());
  const store::Slice& slice = layout_[push.slice];
  const std::uint8_t bits = slice.bits(push.bits);
  here.halves[push.slice.value] = bits == half_bits;
  bytes_pushed_ += codec::encoded_bytes(bits, slice.count);
  if (!as_it_comes(push)) decode({std::move(landing.flat), slice, bits, std::move(landing.bytes)});
  prepare(push);
  hear(push);
}

/// Slices that come faster than one thread decodes them gather while it does, and are then decoded side by side.
void ShardHost::decode(Coded coded) {
  coded_.push_back(std::move(coded));
  if (!decoding_) decode_waiting();
}

void ShardHost::decode_waiting() {
  if (coded_.empty()) return;
  decoding_ = true;
  store_thread_.post([this, alive = alive_, team = team_, batch = std::exchange(coded_, {})] {
    team->each(batch.size(), [&](std::size_t i) {
      const Coded& coded = batch[i];
      const Outcome decoded =
          codec_of(coded.bits)->decode(coded.bytes, coded.flat->floats().subspan(coded.slice.offset, coded.slice.count));
      check(decoded.ok(), "a payload's size was checked when it was announced");
    });
    boost::asio::post(pump_, [this, alive] {
      if (!*alive) return;
      decoding_ = false;
      decode_waiting();
    });
  });
}

}  // namespace motley::run

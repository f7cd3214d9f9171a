#include "runtime/incoming_parameters.h"

#include <algorithm>
#include <utility>

#include "base/bits.h"
#include "base/check.h"
#include "codec/codec.h"

namespace motley::runtime {

IncomingParameters::IncomingParameters(const store::Layout& layout, SharedBuffer buffer)
    : layout_(layout),
      buffer_(std::move(buffer)),
      here_(layout.slices.size()),
      when_(layout.slices.size()),
      bits_(layout.slices.size(), fp32_bits),
      change_(layout.slices.size()),
      handed_over_(layout.slices.size()),
      left_(layout.slices.size()) {}

void IncomingParameters::arrived(SliceId slice, std::uint8_t bits, const std::shared_ptr<IncomingParameters>& before) {
  {
    const std::lock_guard lock(mutex_);
    here_[slice.value] = true;
    bits_[slice.value] = bits;
    change_[slice.value] = bits < fp32_bits && before;
    if (change_[slice.value] && left_ > 0) before_ = before;
    when_[slice.value] = std::chrono::steady_clock::now();
  }
  changed_.notify_one();
}

void IncomingParameters::hand_over(std::size_t slice, const std::function<void(const IncomingValues&)>& each) {
  std::shared_ptr<IncomingParameters> before;
  std::uint8_t bits = fp32_bits;
  bool change = false;
  {
    const std::lock_guard lock(mutex_);
    if (handed_over_[slice]) return;
    check(here_[slice], "only slices that have arrived are handed over");
    bits = bits_[slice];
    change = change_[slice];
    if (change) before = before_;
  }
  if (before) before->hand_over(slice, each);
  const store::Slice& place = layout_.slices[slice];
  const std::size_t bytes = codec::encoded_bytes(bits, place.count);
  each({place.offset, place.count, bits, std::as_const(*buffer_).bytes(place.offset, place.count).first(bytes),
        bits < fp32_bits && !change});
  const std::lock_guard lock(mutex_);  // only now: each() may have thrown
  handed_over_[slice] = true;
  if (--left_ == 0) before_.reset();
}

void IncomingParameters::hand_over(std::uint64_t first, std::uint64_t last, const std::function<void(const IncomingValues&)>& each) {
  const auto [from, to] = layout_.touching(first, last);
  for (std::size_t s = from; s < to; ++s) hand_over(s, each);
}

bool IncomingParameters::has(SliceId slice) {
  const std::lock_guard lock(mutex_);
  return here_[slice.value];
}

bool IncomingParameters::has(std::uint64_t first, std::uint64_t last) {
  const auto [from, to] = layout_.touching(first, last);
  const std::lock_guard lock(mutex_);
  const auto begin = here_.begin();
  return !cancelled_ &&
         std::all_of(begin + static_cast<std::ptrdiff_t>(from), begin + static_cast<std::ptrdiff_t>(to), [](bool here) { return here; });
}

std::chrono::steady_clock::time_point IncomingParameters::when(SliceId slice) {
  const std::lock_guard lock(mutex_);
  return when_[slice.value];
}

bool IncomingParameters::complete() {
  const std::lock_guard lock(mutex_);
  return std::find(here_.begin(), here_.end(), false) == here_.end();
}

bool IncomingParameters::await(std::uint64_t first, std::uint64_t last) {
  const auto [from, to] = layout_.touching(first, last);
  std::unique_lock lock(mutex_);
  for (std::size_t s = from; s < to; ++s) changed_.wait(lock, [&, s] { return cancelled_ || here_[s]; });
  return !cancelled_;
}

void IncomingParameters::cancel() {
  {
    const std::lock_guard lock(mutex_);
    cancelled_ = true;
  }
  changed_.notify_one();
}

void IncomingParameters::take(std::vector<bool>& taken, std::vector<store::IncomingUpdates::Piece>& out) {
  taken.resize(here_.size());
  const std::size_t before = out.size();
  const std::lock_guard lock(mutex_);
  for (std::size_t s = 0; s < here_.size(); ++s) {
    if (taken[s] || !here_[s]) continue;
    taken[s] = true;
    const store::Slice& slice = layout_.slices[s];
    const bool goes_on = out.size() > before && out.back().first + out.back().values.size() == slice.offset;
    const std::uint64_t first = goes_on ? out.back().first : slice.offset;
    if (goes_on) out.pop_back();
    out.push_back({first, buffer_->floats().subspan(first, slice.offset + slice.count - first)});
  }
}

}  // namespace motley::runtime

#include "store/shard_store.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include "base/bits.h"
#include "base/check.h"
#include "store/constants.h"

namespace motley::store {
namespace {

/// Eight partial sums, so that no addition waits for the previous one.
double inner_product(std::span<const float> a, std::span<const float> b) {
  constexpr std::size_t lanes = 8;
  std::array<double, lanes> sums{};
  std::size_t i = 0;
  for (; i + lanes <= a.size(); i += lanes)
    for (std::size_t lane = 0; lane < lanes; ++lane) sums[lane] += static_cast<double>(a[i + lane]) * b[i + lane];
  for (; i < a.size(); ++i) sums[i % lanes] += static_cast<double>(a[i]) * b[i];
  return std::accumulate(sums.begin(), sums.end(), 0.0);
}

}  // namespace

ShardStore::Run ShardStore::Run::piece(std::size_t first, std::size_t most) const {
  Run part = *this;
  part.flat += first;
  part.local += first;
  part.within += first;
  part.count = std::min(most, count - first);
  return part;
}

const std::uint16_t* ShardStore::Run::bf16_transfer(std::span<const float> all) const {
  return reinterpret_cast<const std::uint16_t*>(all.data() + (flat - within)) + within;
}

std::vector<ShardStore::Run> ShardStore::slices_of(const Layout& layout, ServerId server) {
  std::vector<Run> slices;
  std::size_t local = 0;
  for (const SliceId id : layout.of(server)) {
    const Slice& slice = layout[id];
    slices.push_back({slice.offset, local, slice.count, slice.kind, id, 0, slice.bits(bf16_bits) == bf16_bits});
    local += slice.count;
  }
  return slices;
}

std::size_t ShardStore::parameters_in(std::span<const Run> slices) {
  std::size_t end = 0;
  for (const Run& slice : slices)
    if (slice.kind == TensorKind::parameter) end = slice.local + slice.count;
  return end;
}

ShardStore::ShardStore(const Layout& layout, ServerId server, const OptimizerSpec& spec, std::span<const float> initial_flat,
                       ExecutionContext context)
    : context_(std::move(context)),
      kernels_(&kernels_for(context_.target)),
      flat_values_(layout.values),
      slices_(slices_of(layout, server)),
      bf16_codec_(codec::kernels_of(context_.target)),
      optimizer_(spec, parameters_in(slices_), context_.target),
      spec_(spec) {
  check(initial_flat.size() == flat_values_, "the initial values cover the whole flat buffer");
  if (!slices_.empty()) values_.reserve(slices_.back().local + slices_.back().count);
  for (const Run& slice : slices_)
    values_.insert(values_.end(), initial_flat.begin() + slice.flat, initial_flat.begin() + slice.flat + slice.count);
  by_priority_.resize(slices_.size());
  std::iota(by_priority_.begin(), by_priority_.end(), std::size_t{0});
  std::stable_sort(by_priority_.begin(), by_priority_.end(),
                   [&](std::size_t a, std::size_t b) { return layout[slices_[a].id].priority < layout[slices_[b].id].priority; });
}

template <class Work>
void ShardStore::for_each_slice(std::span<const std::size_t> slices, Work work, const OnSlicesDone& on_slices_done) const {
  std::vector<Run> pieces;
  std::vector<SliceId> done;
  std::size_t values = 0;
  for (std::size_t i = 0; i < slices.size(); ++i) {
    const Run& all = slices_[slices[i]];
    for (std::size_t skipped = 0; skipped < all.count; skipped += piece_values) pieces.push_back(all.piece(skipped, piece_values));
    done.push_back(all.id);
    values += all.count;
    if (values < values_per_batch && i + 1 < slices.size()) continue;
    context_.pool->parallel_for(pieces.size(), [&](std::size_t piece) { work(pieces[piece]); });
    on_slices_done(done);
    pieces.clear();
    done.clear();
    values = 0;
  }
}

template <class Work>
void ShardStore::for_each_piece(Work work) const {
  context_.pool->parallel_for(pieces(), [&](std::size_t piece) {
    const std::size_t begin = piece * piece_values;
    const std::size_t end = std::min(begin + piece_values, values_.size());
    auto slice =
        std::upper_bound(slices_.begin(), slices_.end(), begin, [](std::size_t at, const Run& r) { return at < r.local + r.count; });
    for (; slice != slices_.end() && slice->local < end; ++slice) {
      const std::size_t first = std::max(begin, slice->local);
      work(piece, slice->piece(first - slice->local, end - first));
    }
  });
}

void ShardStore::apply(const Update& wanted, std::span<const WeightedPart> parts, const SnapshotFormat& format, std::span<float> snapshot,
                       const OnSlicesDone& on_slices_done) {
  check(!parts.empty(), "an update has at least one part");
  check(snapshot.empty() || snapshot.size() == flat_values_, "a snapshot is written to a whole flat buffer");
  for (const WeightedPart& part : parts) check(part.flat.size() == flat_values_, "a part covers the whole flat buffer");
  Update update = wanted;
  if (update.kind == UpdateKind::bypass_momentum && optimizer_.updates() == 0)
    update.kind = UpdateKind::gradient;  // there is no momentum to leave unchanged
  if (update.kind == UpdateKind::gradient) {
    optimizer_.begin_update();
    rate_ = update.rate;
  }
  const auto work = [&](const Run& run) {
    apply(update, parts, run, values_, optimizer_);
    if (!snapshot.empty()) this->snapshot(run, format, snapshot);
  };
  for_each_slice(by_priority_, work, on_slices_done);
  version_ = version_.next();
}

std::vector<Addend> ShardStore::addends_of(const Update& update, std::span<const WeightedPart> parts, const Run& run) const {
  const bool optimized = update.kind != UpdateKind::delta && run.kind == TensorKind::parameter;
  std::vector<Addend> addends;
  addends.reserve(parts.size());
  for (const WeightedPart& part : parts) {
    const std::span<const float> base = optimized && update.compensation > 0 ? weight_stash_.find(part.base) : std::span<const float>();
    const bool bf16_transfer = !part.bf16_transfer.empty() && part.bf16_transfer[run.id.value];
    addends.push_back({part.flat.data() + run.flat, static_cast<float>(part.weight), base.empty() ? nullptr : base.data() + run.local,
                       bf16_transfer ? run.bf16_transfer(part.flat) : nullptr});
  }
  return addends;
}

void ShardStore::apply(const Update& update, std::span<const WeightedPart> parts, const Run& run, std::span<float> values,
                       Optimizer& optimizer) const {
  const bool optimized = update.kind != UpdateKind::delta && run.kind == TensorKind::parameter;
  const std::span<float> held = values.subspan(run.local, run.count);
  const std::vector<Addend> addends = addends_of(update, parts, run);
  const Sum sum{addends.data(), addends.size(), optimized ? static_cast<float>(update.compensation) : 0.0F};
  if (!optimized)
    kernels_->add(sum, held.size(), held.data());
  else if (update.kind == UpdateKind::bypass_momentum)
    optimizer.update_piece_bypassing_momentum(run.local, held, sum, update.rate, update.momentum, update.share);
  else
    optimizer.update_piece(run.local, held, sum, update.rate, update.momentum, update.share);
}

void ShardStore::begin_speculation(const Update& expected, const SnapshotFormat& format, std::span<float> snapshot) {
  check(expected.kind != UpdateKind::bypass_momentum && expected.compensation == 0, "a speculated update depends on its parts alone");
  check(snapshot.size() == flat_values_, "a snapshot is written to a whole flat buffer");
  if (!speculation_) speculation_ = Speculation{Floats(values_.size()), Optimizer(spec_, optimizer_.first().size(), context_.target), {}};
  speculation_->update = expected;
  speculation_->format = format;
  speculation_->snapshot = snapshot;
  speculation_->speculated.assign(slices_.size(), false);
  speculation_->optimizer.follow(optimizer_);
  if (expected.kind == UpdateKind::gradient) speculation_->optimizer.begin_update();
}

void ShardStore::speculate(std::span<const WeightedPart> parts, std::span<const SliceId> slices) {
  check(speculation_.has_value(), "slices are speculated after begin_speculation()");
  std::vector<std::size_t> missing;
  for (const SliceId id : slices) {
    const auto found = std::lower_bound(slices_.begin(), slices_.end(), id, [](const Run& run, SliceId wanted) { return run.id < wanted; });
    check(found != slices_.end() && found->id == id, "a speculated slice is one of this server");
    const auto slice = static_cast<std::size_t>(found - slices_.begin());
    if (speculation_->speculated[slice]) continue;
    speculation_->speculated[slice] = true;
    missing.push_back(slice);
  }
  for_each_slice(
      missing, [&](const Run& run) { speculate(parts, run); }, [](std::span<const SliceId>) {});
}

void ShardStore::speculate(std::span<const WeightedPart> parts, const Run& run) {
  write_out(run, speculation_->format.bf16_transfer, speculation_->snapshot,
            [&](const Run& piece, std::span<float> out) { speculate(parts, piece, out); });
}

void ShardStore::speculate(std::span<const WeightedPart> parts, const Run& run, std::span<float> out) {
  Speculation& ahead = *speculation_;
  const Update& update = ahead.update;
  const double rate = update.kind == UpdateKind::gradient ? update.rate : rate_;
  const std::span<float> values = std::span(ahead.values).subspan(run.local, run.count);
  if (update.kind == UpdateKind::gradient && run.kind == TensorKind::parameter) {
    const std::vector<Addend> addends = addends_of(update, parts, run);
    const bool non_temporal = values_.size() >= non_temporal_values;
    return ahead.optimizer.update_piece_of(optimizer_, run.local, std::span(values_).subspan(run.local, run.count), values,
                                           {addends.data(), addends.size(), 0},
                                           {update.rate, update.momentum, update.share, ahead.format.rho * rate, non_temporal}, out);
  }
  std::copy_n(values_.data() + run.local, run.count, values.data());
  if (run.kind == TensorKind::parameter) ahead.optimizer.follow(optimizer_, run.local, run.count);
  apply(ahead.update, parts, run, ahead.values, ahead.optimizer);
  if (run.kind == TensorKind::parameter)
    ahead.optimizer.look_ahead(values, ahead.format.rho, rate, out, run.local);
  else
    std::copy(values.begin(), values.end(), out.begin());
}

void ShardStore::commit(std::span<const WeightedPart> parts, const OnSlicesDone& on_slices_done) {
  check(speculation_.has_value(), "a commit follows begin_speculation()");
  std::vector<std::size_t> missing;
  std::vector<SliceId> done;
  for (const std::size_t slice : by_priority_) {
    if (speculation_->speculated[slice])
      done.push_back(slices_[slice].id);
    else
      missing.push_back(slice);
  }
  on_slices_done(done);
  for_each_slice(
      missing, [&](const Run& run) { speculate(parts, run); }, on_slices_done);
  std::swap(values_, speculation_->values);
  std::swap(optimizer_, speculation_->optimizer);
  if (speculation_->update.kind == UpdateKind::gradient) rate_ = speculation_->update.rate;
  version_ = version_.next();
}

void ShardStore::keep(const PullId& sent, double rho) {
  if (weight_stash_.reuse(sent, version_, rho)) return;
  Floats values = weight_stash_.take_buffer(optimizer_.first().size());
  for_each_piece([&](std::size_t, const Run& run) {
    if (run.kind == TensorKind::parameter)
      optimizer_.look_ahead({values_.data() + run.local, run.count}, rho, rate_, std::span(values).subspan(run.local, run.count),
                            run.local);
  });
  weight_stash_.keep(sent, version_, rho, std::move(values));
}

double ShardStore::alignment(const WeightedPart& part) const {
  check(part.flat.size() == flat_values_, "a contribution covers the whole flat buffer");
  std::vector<double> sums(pieces());
  for_each_piece([&](std::size_t piece, const Run& run) {
    if (run.kind != TensorKind::parameter) return;
    std::span<const float> values = part.flat.subspan(run.flat, run.count);
    std::vector<float> widened;
    if (!part.bf16_transfer.empty() && part.bf16_transfer[run.id.value]) {
      widened.resize(run.count);
      const Outcome done = bf16_codec_.decode(std::as_bytes(std::span(run.bf16_transfer(part.flat), run.count)), widened);
      check(done.ok(), "the buffer has as many values as the slice");
      values = widened;
    }
    sums[piece] += inner_product(values, optimizer_.first().subspan(run.local, run.count));
  });
  return std::accumulate(sums.begin(), sums.end(), 0.0);
}

void ShardStore::snapshot(const SnapshotFormat& format, std::span<float> flat_out) const {
  check(flat_out.size() == flat_values_, "a snapshot is written to a whole flat buffer");
  for_each_piece([&](std::size_t, const Run& run) { snapshot(run, format, flat_out); });
}

void ShardStore::snapshot(const Run& run, const SnapshotFormat& format, std::span<float> flat_out) const {
  write_out(run, format.bf16_transfer, flat_out, [&](const Run& piece, std::span<float> out) {
    const std::span<const float> values(values_.data() + piece.local, piece.count);
    if (piece.kind == TensorKind::parameter)
      optimizer_.look_ahead(values, format.rho, rate_, out, piece.local);
    else
      std::copy(values.begin(), values.end(), out.begin());
  });
}

template <class Write>
void ShardStore::write_out(const Run& run, bool bf16_transfer, std::span<float> flat_out, Write write) const {
  if (!bf16_transfer || !run.may_be_bf16) return write(run, flat_out.subspan(run.flat, run.count));
  std::array<float, values_per_rounding> floats;  // NOLINT(cppcoreguidelines-pro-type-member-init): written before it is read
  for (std::size_t done = 0; done < run.count; done += values_per_rounding) {
    const Run piece = run.piece(done, values_per_rounding);
    const std::span<float> out = std::span(floats).first(piece.count);
    write(piece, out);
    auto* const place =
        const_cast<std::uint16_t*>(piece.bf16_transfer(flat_out));  // NOLINT(cppcoreguidelines-pro-type-const-cast): not const
    bf16_codec_.encode_into(out, std::as_writable_bytes(std::span(place, piece.count)));
  }
}

void ShardStore::values(std::span<float> flat_out) const {
  check(flat_out.size() == flat_values_, "values are written to a whole flat buffer");
  for_each_piece([&](std::size_t, const Run& run) { copy_out(run, flat_out); });
}

void ShardStore::copy_out(const Run& run, std::span<float> flat_out) const {
  std::copy_n(values_.data() + run.local, run.count, flat_out.data() + run.flat);
}

void ShardStore::moments(Moments& out) const {
  out.first.resize(flat_values_);
  if (!optimizer_.second().empty()) out.second.resize(flat_values_);
  out.updates = optimizer_.updates();
  out.rate = rate_;
  for (const Run& run : slices_) {
    if (run.kind != TensorKind::parameter) continue;
    std::copy_n(optimizer_.first().data() + run.local, run.count, out.first.data() + run.flat);
    if (!out.second.empty()) std::copy_n(optimizer_.second().data() + run.local, run.count, out.second.data() + run.flat);
  }
}

void ShardStore::restore(const Moments& moments, Version version) {
  check(moments.first.size() == flat_values_, "moments cover the whole flat buffer");
  std::vector<float> first(optimizer_.first().size());
  std::vector<float> second(optimizer_.second().size());
  for (const Run& run : slices_) {
    if (run.kind != TensorKind::parameter) continue;
    std::copy_n(moments.first.data() + run.flat, run.count, first.data() + run.local);
    if (!second.empty()) std::copy_n(moments.second.data() + run.flat, run.count, second.data() + run.local);
  }
  optimizer_.restore(first, second, moments.updates);
  rate_ = moments.rate;
  version_ = version;
}

}  // namespace motley::store

#include "store/shard_store.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include "base/bits.h"
#include "base/check.h"

namespace motley::store {
namespace {

/// As many, with their momentum, before and after an update, are 64 MiB: few caches keep them, and all that is summed, until the next.
constexpr std::size_t far_values = std::size_t{4} << 20;

/// In eight sums, so that no addition waits for the one before it.
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

const std::uint16_t* ShardStore::Run::halves(std::span<const float> all) const {
  return reinterpret_cast<const std::uint16_t*>(all.data() + (flat - within)) + within;
}

std::vector<ShardStore::Run> ShardStore::slices_of(const Layout& layout, ServerId server) {
  std::vector<Run> slices;
  std::size_t local = 0;
  for (const SliceId id : layout.of(server)) {
    const Slice& slice = layout[id];
    slices.push_back({slice.offset, local, slice.count, slice.kind, id, 0, slice.bits(half_bits) == half_bits});
    local += slice.count;
  }
  return slices;
}

std::size_t ShardStore::parameters_in(std::span<const Run> slices) {
  std::size_t end = 0;
  for (const Run& slice : slices)
    if (slice.kind == SliceKind::parameter) end = slice.local + slice.count;
  return end;
}

ShardStore::ShardStore(const Layout& layout, ServerId server, const OptimizerSpec& spec, std::span<const float> initial_flat, Means means)
    : means_(std::move(means)),
      kernels_(&kernels_for(means_.target)),
      flat_values_(layout.values),
      slices_(slices_of(layout, server)),
      narrow_(codec::kernels_of(means_.target)),
      optimizer_(spec, parameters_in(slices_), means_.target),
      spec_(spec) {
  check(initial_flat.size() == flat_values_, "the initial values cover the whole flat buffer");
  if (!slices_.empty()) values_.reserve(slices_.back().local + slices_.back().count);
  for (const Run& slice : slices_)
    values_.insert(values_.end(), initial_flat.begin() + slice.flat, initial_flat.begin() + slice.flat + slice.count);
  by_need_.resize(slices_.size());
  std::iota(by_need_.begin(), by_need_.end(), std::size_t{0});
  std::stable_sort(by_need_.begin(), by_need_.end(),
                   [&](std::size_t a, std::size_t b) { return layout[slices_[a].id].priority < layout[slices_[b].id].priority; });
}

template <class Work>
void ShardStore::by_slices(std::span<const std::size_t> slices, Work work, const Told& told) const {
  constexpr std::size_t at_once = 16 * piece_values;  // enough for every thread to have something to do
  std::vector<Run> pieces;
  std::vector<SliceId> done;
  std::size_t values = 0;
  for (std::size_t i = 0; i < slices.size(); ++i) {
    const Run& all = slices_[slices[i]];
    for (std::size_t skipped = 0; skipped < all.count; skipped += piece_values) pieces.push_back(all.piece(skipped, piece_values));
    done.push_back(all.id);
    values += all.count;
    if (values < at_once && i + 1 < slices.size()) continue;
    means_.team->each(pieces.size(), [&](std::size_t piece) { work(pieces[piece]); });
    told(done);
    pieces.clear();
    done.clear();
    values = 0;
  }
}

template <class Work>
void ShardStore::by_pieces(Work work) const {
  means_.team->each(pieces(), [&](std::size_t piece) {
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

void ShardStore::apply(const Update& wanted, std::span<const WeightedPart> parts, const Outlook& outlook, std::span<float> snapshot,
                       const Told& told) {
  check(!parts.empty(), "an update has at least one part");
  check(snapshot.empty() || snapshot.size() == flat_values_, "a snapshot is written into a whole flat buffer");
  for (const WeightedPart& part : parts) check(part.flat.size() == flat_values_, "a part covers the whole flat buffer");
  Update update = wanted;
  if (update.kind == UpdateKind::apart && optimizer_.updates() == 0) update.kind = UpdateKind::gradient;  // there is no momentum to spare
  if (update.kind == UpdateKind::gradient) {
    optimizer_.begin_update();
    rate_ = update.rate;
  }
  const auto work = [&](const Run& run) {
    apply(update, parts, run, values_, optimizer_);
    if (!snapshot.empty()) this->snapshot(run, outlook, snapshot);
  };
  by_slices(by_need_, work, told);
  version_ = version_.next();
}

std::vector<Addend> ShardStore::addends_of(const Update& update, std::span<const WeightedPart> parts, const Run& run) const {
  const bool optimized = update.kind != UpdateKind::delta && run.kind == SliceKind::parameter;
  std::vector<Addend> addends;
  addends.reserve(parts.size());
  for (const WeightedPart& part : parts) {
    const std::span<const float> base = optimized && update.compensation > 0 ? bases_.find(part.base) : std::span<const float>();
    const bool halves = !part.halves.empty() && part.halves[run.id.value];
    addends.push_back({part.flat.data() + run.flat, static_cast<float>(part.weight), base.empty() ? nullptr : base.data() + run.local,
                       halves ? run.halves(part.flat) : nullptr});
  }
  return addends;
}

void ShardStore::apply(const Update& update, std::span<const WeightedPart> parts, const Run& run, std::span<float> values,
                       Optimizer& optimizer) const {
  const bool optimized = update.kind != UpdateKind::delta && run.kind == SliceKind::parameter;
  const std::span<float> held = values.subspan(run.local, run.count);
  const std::vector<Addend> addends = addends_of(update, parts, run);
  const Sum sum{addends.data(), addends.size(), optimized ? static_cast<float>(update.compensation) : 0.0F};
  if (!optimized)
    kernels_->add(sum, held.size(), held.data());
  else if (update.kind == UpdateKind::apart)
    optimizer.update_apart_piece(run.local, held, sum, update.rate, update.momentum, update.share);
  else
    optimizer.update_piece(run.local, held, sum, update.rate, update.momentum, update.share);
}

void ShardStore::foresee(const Update& expected, const Outlook& outlook, std::span<float> snapshot) {
  check(expected.kind != UpdateKind::apart && expected.compensation == 0, "what is expected depends on its parts alone");
  check(snapshot.size() == flat_values_, "a snapshot is written into a whole flat buffer");
  if (!ahead_) ahead_ = Ahead{Floats(values_.size()), Optimizer(spec_, optimizer_.first().size(), means_.target), {}};
  ahead_->update = expected;
  ahead_->outlook = outlook;
  ahead_->snapshot = snapshot;
  ahead_->prepared.assign(slices_.size(), false);
  ahead_->optimizer.follow(optimizer_);
  if (expected.kind == UpdateKind::gradient) ahead_->optimizer.begin_update();
}

void ShardStore::prepare(std::span<const WeightedPart> parts, std::span<const SliceId> slices) {
  check(ahead_.has_value(), "what is prepared is expected");
  std::vector<std::size_t> missing;
  for (const SliceId id : slices) {
    const auto found = std::lower_bound(slices_.begin(), slices_.end(), id, [](const Run& run, SliceId wanted) { return run.id < wanted; });
    check(found != slices_.end() && found->id == id, "what is prepared is held here");
    const auto slice = static_cast<std::size_t>(found - slices_.begin());
    if (ahead_->prepared[slice]) continue;
    ahead_->prepared[slice] = true;
    missing.push_back(slice);
  }
  by_slices(
      missing, [&](const Run& run) { prepare(parts, run); }, [](std::span<const SliceId>) {});
}

void ShardStore::prepare(std::span<const WeightedPart> parts, const Run& run) {
  write_out(run, ahead_->outlook.halves, ahead_->snapshot, [&](const Run& piece, std::span<float> out) { prepare(parts, piece, out); });
}

void ShardStore::prepare(std::span<const WeightedPart> parts, const Run& run, std::span<float> out) {
  Ahead& ahead = *ahead_;
  const Update& update = ahead.update;
  const double rate = update.kind == UpdateKind::gradient ? update.rate : rate_;
  const std::span<float> values = std::span(ahead.values).subspan(run.local, run.count);
  if (update.kind == UpdateKind::gradient && run.kind == SliceKind::parameter) {
    const std::vector<Addend> addends = addends_of(update, parts, run);
    const bool far = values_.size() >= far_values;
    return ahead.optimizer.update_piece_of(optimizer_, run.local, std::span(values_).subspan(run.local, run.count), values,
                                           {addends.data(), addends.size(), 0},
                                           {update.rate, update.momentum, update.share, ahead.outlook.rho * rate, far}, out);
  }
  std::copy_n(values_.data() + run.local, run.count, values.data());
  if (run.kind == SliceKind::parameter) ahead.optimizer.follow(optimizer_, run.local, run.count);
  apply(ahead.update, parts, run, ahead.values, ahead.optimizer);
  if (run.kind == SliceKind::parameter)
    ahead.optimizer.look_ahead(values, ahead.outlook.rho, rate, out, run.local);
  else
    std::copy(values.begin(), values.end(), out.begin());
}

void ShardStore::commit(std::span<const WeightedPart> parts, const Told& told) {
  check(ahead_.has_value(), "what is committed was expected");
  std::vector<std::size_t> missing;
  std::vector<SliceId> done;
  for (const std::size_t slice : by_need_) {
    if (ahead_->prepared[slice])
      done.push_back(slices_[slice].id);
    else
      missing.push_back(slice);
  }
  told(done);
  by_slices(
      missing, [&](const Run& run) { prepare(parts, run); }, told);
  std::swap(values_, ahead_->values);
  std::swap(optimizer_, ahead_->optimizer);
  if (ahead_->update.kind == UpdateKind::gradient) rate_ = ahead_->update.rate;
  version_ = version_.next();
}

void ShardStore::keep(const Sent& sent, double rho) {
  if (bases_.keep_again(sent, version_, rho)) return;
  Floats values = bases_.room(optimizer_.first().size());
  by_pieces([&](std::size_t, const Run& run) {
    if (run.kind == SliceKind::parameter)
      optimizer_.look_ahead({values_.data() + run.local, run.count}, rho, rate_, std::span(values).subspan(run.local, run.count),
                            run.local);
  });
  bases_.keep(sent, version_, rho, std::move(values));
}

double ShardStore::along(const WeightedPart& part) const {
  check(part.flat.size() == flat_values_, "a contribution covers the whole flat buffer");
  std::vector<double> sums(pieces());
  by_pieces([&](std::size_t piece, const Run& run) {
    if (run.kind != SliceKind::parameter) return;
    std::span<const float> values = part.flat.subspan(run.flat, run.count);
    std::vector<float> widened;
    if (!part.halves.empty() && part.halves[run.id.value]) {
      widened.resize(run.count);
      const Outcome done = narrow_.decode(std::as_bytes(std::span(run.halves(part.flat), run.count)), widened);
      check(done.ok(), "as many values as there is room for");
      values = widened;
    }
    sums[piece] += inner_product(values, optimizer_.first().subspan(run.local, run.count));
  });
  return std::accumulate(sums.begin(), sums.end(), 0.0);
}

void ShardStore::snapshot(const Outlook& outlook, std::span<float> flat_out) const {
  check(flat_out.size() == flat_values_, "a snapshot is written into a whole flat buffer");
  by_pieces([&](std::size_t, const Run& run) { snapshot(run, outlook, flat_out); });
}

void ShardStore::snapshot(const Run& run, const Outlook& outlook, std::span<float> flat_out) const {
  write_out(run, outlook.halves, flat_out, [&](const Run& piece, std::span<float> out) {
    const std::span<const float> values(values_.data() + piece.local, piece.count);
    if (piece.kind == SliceKind::parameter)
      optimizer_.look_ahead(values, outlook.rho, rate_, out, piece.local);
    else
      std::copy(values.begin(), values.end(), out.begin());
  });
}

template <class Write>
void ShardStore::write_out(const Run& run, bool halves, std::span<float> flat_out, Write write) const {
  if (!halves || !run.may_be_halves) return write(run, flat_out.subspan(run.flat, run.count));
  constexpr std::size_t at_once = 4096;  // values: they stay in the cache nearest to the core until they are rounded
  std::array<float, at_once> floats;     // NOLINT(cppcoreguidelines-pro-type-member-init): written before it is read
  for (std::size_t done = 0; done < run.count; done += at_once) {
    const Run piece = run.piece(done, at_once);
    const std::span<float> out = std::span(floats).first(piece.count);
    write(piece, out);
    auto* const place = const_cast<std::uint16_t*>(piece.halves(flat_out));  // NOLINT(cppcoreguidelines-pro-type-const-cast): not const
    narrow_.encode_into(out, std::as_writable_bytes(std::span(place, piece.count)));
  }
}

void ShardStore::values(std::span<float> flat_out) const {
  check(flat_out.size() == flat_values_, "values are written into a whole flat buffer");
  by_pieces([&](std::size_t, const Run& run) { copy_out(run, flat_out); });
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
    if (run.kind != SliceKind::parameter) continue;
    std::copy_n(optimizer_.first().data() + run.local, run.count, out.first.data() + run.flat);
    if (!out.second.empty()) std::copy_n(optimizer_.second().data() + run.local, run.count, out.second.data() + run.flat);
  }
}

void ShardStore::restore(const Moments& moments, Version version) {
  check(moments.first.size() == flat_values_, "moments cover the whole flat buffer");
  std::vector<float> first(optimizer_.first().size());
  std::vector<float> second(optimizer_.second().size());
  for (const Run& run : slices_) {
    if (run.kind != SliceKind::parameter) continue;
    std::copy_n(moments.first.data() + run.flat, run.count, first.data() + run.local);
    if (!second.empty()) std::copy_n(moments.second.data() + run.flat, run.count, second.data() + run.local);
  }
  optimizer_.restore(first, second, moments.updates);
  rate_ = moments.rate;
  version_ = version;
}

}  // namespace motley::store

#include "sim/real_numbers.h"

#include <algorithm>

#include "base/check.h"

namespace motley::sim {
namespace {

constexpr std::uint8_t plain = 32;  // bits of a float

}  // namespace

RealNumbers::RealNumbers(RealNumbersOptions options, GradientSource& source)
    : options_(std::move(options)), source_(source), epochs_(options_.epoch_samples, options_.seed, options_.shards) {
  std::vector<float> initial(options_.layout.values);
  source_.initialize(options_.seed, initial);
  for (std::uint32_t s = 0; s < options_.layout.servers; ++s)
    servers_.emplace_back(options_.layout, ServerId{s}, options_.optimizer, initial);
}

void RealNumbers::equip(Held& held) const {
  if (held.replica) return;
  held.replica = std::make_unique<store::Replica>(store::ReplicaOptions{options_.optimizer, options_.layout.values, options_.parameters,
                                                                        options_.local_steps, options_.local_momentum,
                                                                        options_.tracks_updates, options_.control_variate, false});
  held.push = std::make_unique<store::PushStream>(options_.layout);
}

void RealNumbers::snapshot(ServerId server, const protocol::Snapshot& wanted) {
  store::PullShadow* shadow = nullptr;
  if (wanted.bits != plain) {
    shadow = &shadows_.try_emplace({server, wanted.pull_class}, options_.layout, server).first->second;
    if (wanted.first_of_class) {  // also when this member of the class has left
      target_.resize(options_.layout.values);
      servers_[server.value].snapshot(wanted.rho, target_);
      shadow->move_to(target_, wanted.bits);
    }
  }
  Held& held = held_[wanted.worker];
  if (held.forgotten) return;
  equip(held);
  if (wanted.keep) servers_[server.value].keep({wanted.worker, wanted.step}, wanted.rho);
  auto& values = held.values.try_emplace(wanted.step).first->second;
  if (values.empty()) values = take_buffer();
  if (shadow == nullptr)
    servers_[server.value].snapshot(wanted.rho, values);
  else
    shadow->values(values);
}

StepReport RealNumbers::compute(const wire::Order& order, std::span<const ArrivedSlice> arrived_slices) {
  Held& held = held_[order.worker];
  if (held.forgotten) return {};
  equip(held);
  const auto found = held.values.find(order.parameters);
  check(found != held.values.end(), "what is computed on was pulled");
  while (held.values.begin() != found) {
    spare_.push_back(std::move(held.values.begin()->second));
    held.values.erase(held.values.begin());
  }
  Payload payload{take_buffer(), 0, false};
  StepReport report = contribute(held, order, arrived_slices, payload.values);
  report.residual = held.push->residual_ratio();
  code(held, order, payload.values);
  payloads_.insert_or_assign({order.worker, order.step}, std::move(payload));
  return report;
}

/// Slices that arrived during a round, merged at their local step.
class RealNumbers::ArrivedUpdates final : public store::IncomingUpdates {
 public:
  ArrivedUpdates(const store::Layout& layout, std::span<const ArrivedSlice> arrived_slices, std::span<const float> values)
      : layout_(layout), arrived_slices_(arrived_slices), values_(values) {}
  std::span<const Piece> since(std::uint32_t done) override {
    pieces_.clear();
    for (; !arrived_slices_.empty() && arrived_slices_.front().after <= done; arrived_slices_ = arrived_slices_.subspan(1)) {
      const store::Slice& slice = layout_[arrived_slices_.front().slice];
      pieces_.push_back({slice.offset, values_.subspan(slice.offset, slice.count)});
    }
    return pieces_;
  }

 private:
  const store::Layout& layout_;
  std::span<const ArrivedSlice> arrived_slices_;
  std::span<const float> values_;
  std::vector<Piece> pieces_;
};

StepReport RealNumbers::contribute(Held& held, const wire::Order& order, std::span<const ArrivedSlice> arrived_slices,
                                   std::span<float> out) {
  const auto values = held.values.find(order.parameters);
  const std::vector<std::uint32_t>& samples = epochs_.samples_of(order.lease);
  NoStreaming still;
  if (!options_.local_steps) return held.replica->contribute(source_, {values->second, samples}, out, still);
  const auto next = std::next(values);
  check(arrived_slices.empty() || next != held.values.end(), "an arrived slice was sent");
  ArrivedUpdates arrived(options_.layout, arrived_slices,
                         arrived_slices.empty() ? std::span<const float>() : std::span<const float>(next->second));
  return held.replica->contribute(source_,
                                  {values->second, order.version, samples, order.local_steps, order.rate, order.parameters == order.step,
                                   order.missing < order.step, order.correction, order.mean_steps},
                                  arrived, out, still);
}

/// Replaces a contribution by its values after encoding in few bits, with error feedback.
void RealNumbers::code(Held& held, const wire::Order& order, std::vector<float>& values) {
  // A delta is a change of the model; it has the learning rate in it.
  held.push->begin(options_.local_steps ? 0 : order.lease.size(), order.rate);
  codec::Bytes bytes;
  for (std::uint32_t s = 0; s < options_.layout.slices.size(); ++s) {
    const store::Slice& slice = options_.layout.slices[s];
    const std::uint8_t bits = slice.bits(order.push_bits);
    if (bits == plain && !held.push->has_residual(SliceId{s})) continue;
    bytes.clear();
    held.push->encode(SliceId{s}, order.push_bits, values, bytes);
    const Outcome decoded = codec::make(bits).value()->decode(bytes, std::span(values).subspan(slice.offset, slice.count));
    check(decoded.ok(), "a codec decodes what it encoded");
  }
}

void RealNumbers::commit(ServerId server, const wire::Apply& update) {
  std::vector<store::WeightedPart> parts;
  parts.reserve(update.parts.size());
  for (const wire::Part& part : update.parts) {
    const auto found = payloads_.find({part.worker, part.step});
    check(found != payloads_.end(), "what is committed has a payload");
    parts.push_back({found->second.values, part.weight, {part.worker, part.parameters}});
  }
  servers_[server.value].apply({update.kind, update.rate, update.momentum, update.share, update.compensation}, parts);
  for (const wire::Part& part : update.parts)
    if (++payloads_.at({part.worker, part.step}).commits == options_.layout.servers) free(part.worker, part.step);
}

void RealNumbers::free(WorkerId worker, Step step) {
  const auto found = payloads_.find({worker, step});
  if (found == payloads_.end()) return;
  spare_.push_back(std::move(found->second.values));
  payloads_.erase(found);
}

double RealNumbers::alignment(ServerId server, WorkerId worker, Step step) {
  const auto found = payloads_.find({worker, step});
  check(found != payloads_.end(), "what is judged has a payload");
  return servers_[server.value].alignment(found->second.values);
}

void RealNumbers::completed(WorkerId worker, Step step) { payloads_.at({worker, step}).complete = true; }

void RealNumbers::forget(WorkerId worker) {
  held_[worker] = Held{{}, nullptr, nullptr, true};
  for (auto it = payloads_.lower_bound({worker, Step{}}); it != payloads_.end() && it->first.first == worker;)
    it = it->second.complete ? std::next(it) : payloads_.erase(it);
}

std::optional<Evaluation> RealNumbers::exported(ServerId server, Version version) {
  Export& collected = exports_[version];
  collected.values.resize(options_.layout.values);
  servers_[server.value].values(collected.values);
  if (++collected.servers < options_.layout.servers) return std::nullopt;
  const StepResult loss = source_.evaluate(collected.values);
  exports_.erase(version);
  const double samples = static_cast<double>(std::max<std::uint64_t>(loss.samples, 1));
  return Evaluation{static_cast<double>(loss.correct) / samples, loss.loss_sum / samples};
}

void RealNumbers::values(std::span<float> out) const {
  for (const store::ShardStore& server : servers_) server.values(out);
}

std::vector<float> RealNumbers::take_buffer() {
  if (spare_.empty()) return std::vector<float>(options_.layout.values);
  std::vector<float> buffer = std::move(spare_.back());
  spare_.pop_back();
  return buffer;
}

}  // namespace motley::sim

#include "store/replica.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "base/check.h"
#include "base/finite.h"

namespace motley::store {
namespace {

/// Sums in parallel lanes: additions of one sum would wait for each other.
double squared_norm(std::span<const float> values) {
  constexpr std::size_t lanes = 16;
  std::array<double, lanes> sums{};
  const std::size_t whole = values.size() / lanes * lanes;
  for (std::size_t i = 0; i < whole; i += lanes)
    for (std::size_t lane = 0; lane < lanes; ++lane) sums[lane] += static_cast<double>(values[i + lane]) * values[i + lane];
  for (std::size_t i = whole; i < values.size(); ++i) sums[i - whole] += static_cast<double>(values[i]) * values[i];
  return std::accumulate(sums.begin(), sums.end(), 0.0);
}

}  // namespace

Replica::Replica(const ReplicaOptions& options) : options_(options) {
  check(options.parameters <= options.values, "parameters are among the values");
  if (options.local_steps)
    local_.emplace(LocalModelOptions{options.optimizer, options.values, options.parameters, options.local_momentum, options.tracks_updates,
                                     options.control_variate});
}

/// The weighted mean over the pieces of a step. A value is final when its part of the last piece is. The gradient of a step in one piece is
/// written directly to the result.
class Replica::Mean final : public StepIo {
 public:
  Mean(StepIo& outer, std::span<float> mean, std::span<float> piece) : outer_(outer), mean_(mean), piece_(piece) {}
  /// Begins a piece of `samples` after `before` samples. Returns the span for its gradient.
  std::span<float> begin(std::uint64_t before, std::uint64_t samples, bool last) {
    before_ = static_cast<float>(static_cast<double>(before) / static_cast<double>(before + samples));
    now_ = static_cast<float>(static_cast<double>(samples) / static_cast<double>(before + samples));
    last_ = last;
    whole_ = before == 0 && last;
    return whole_ ? mean_ : piece_;
  }
  [[nodiscard]] bool any_ready() const { return any_ready_; }
  [[nodiscard]] bool whole() const { return whole_; }
  bool wait_for(std::uint64_t first, std::uint64_t last) override { return outer_.wait_for(first, last); }
  bool take(std::uint64_t first, std::uint64_t last, const std::function<void(const IncomingValues&)>& each) override {
    return outer_.take(first, last, each);
  }
  void stalled(Duration time) override { outer_.stalled(time); }
  void gradient_ready(std::uint64_t first, std::uint64_t last) override {
    if (!whole_)
      for (std::uint64_t i = first; i < last; ++i) mean_[i] = before_ > 0 ? before_ * mean_[i] + now_ * piece_[i] : piece_[i];
    if (!last_) return;
    any_ready_ = true;
    outer_.gradient_ready(first, last);
  }
  [[nodiscard]] std::uint64_t id() const override { return whole_ ? outer_.id() : 0; }
  [[nodiscard]] std::optional<NextStep> next_step() override { return whole_ ? outer_.next_step() : std::nullopt; }
  /// Between two pieces the next samples are known: those of the next piece.
  [[nodiscard]] std::span<const std::uint32_t> likely_next_samples() override {
    return whole_ ? outer_.likely_next_samples() : std::span<const std::uint32_t>();
  }
  /// Only a step in one piece can be encoded.
  [[nodiscard]] const GradientEncoding* gradient_encoding() override { return whole_ ? outer_.gradient_encoding() : nullptr; }
  void encoded_gradient_ready(std::uint64_t first, std::uint64_t last) override {
    any_ready_ = true;
    outer_.encoded_gradient_ready(first, last);
  }

 private:
  StepIo& outer_;
  std::span<float> mean_;
  std::span<float> piece_;
  float before_ = 0;
  float now_ = 1;
  bool last_ = true;
  bool whole_ = true;
  bool any_ready_ = false;
};

StepResult Replica::run_in_pieces(GradientSource& source, const Task& task, std::span<float> out, StepIo& io, MicroBatcher& batcher,
                                  StepReport& report) {
  StepResult total;
  for (bool last = false; !last;) {
    const std::uint64_t left = task.samples.size() - report.samples;
    MicroBatcher::Piece piece = batcher.next(report.samples, left);
    if (max_batch_ > 0 && piece.samples > max_batch_) piece = {max_batch_, false};
    last = piece.last || piece.samples == left;
    if (!(report.samples == 0 && last)) gradient_.resize(options_.values);
    Mean mean(io, out, gradient_);
    const std::span<float> into = mean.begin(report.samples, piece.samples, last);
    try {
      const StepResult loss = source.gradient(task.values, task.samples.subspan(report.samples, piece.samples), into, mean);
      total.loss_sum += loss.loss_sum;
      total.squared_norm = mean.whole() ? loss.squared_norm : -1;
      total.encoded = loss.encoded;
      total.residual = loss.residual;
      report.samples += static_cast<std::uint32_t>(piece.samples);
    } catch (const OutOfMemory&) {
      if (piece.samples == 1 || mean.any_ready() || !options_.splits_on_out_of_memory) throw;
      max_batch_ = report.max_batch = static_cast<std::uint32_t>(piece.samples / 2);
      last = false;
    }
    if (!io.wait_for(0, 0)) break;
  }
  return total;
}

StepReport Replica::contribute(GradientSource& source, const Task& task, std::span<float> out, StepIo& io, MicroBatcher& batcher) {
  check(task.values.size() == options_.values && out.size() == options_.values, "a contribution is as large as the model");
  check(!local_, "a replica with local steps contributes rounds");
  StepReport report;
  const StepResult loss = run_in_pieces(source, task, out, io, batcher, report);
  measure(out, loss, report);
  return report;
}

StepReport Replica::contribute(GradientSource& source, const LocalRound& round, IncomingUpdates& incoming, std::span<float> out,
                               StepIo& io) {
  check(local_.has_value(), "only a replica with local steps contributes rounds");
  StepReport report;
  if (!io.wait_for(0, options_.values)) return report;
  const StepResult loss = local_->run_round(source, round, incoming, out, io);
  report.samples = static_cast<std::uint32_t>(round.samples.size());
  report.local_steps = round.steps;
  report.update_norm = local_->update_norm();
  if (loss.encoded)
    io.encoded_gradient_ready(0, options_.values);
  else
    io.gradient_ready(0, options_.values);
  measure(out, loss, report);
  if (!report.finite) local_->forget();  // its momentum would make every later step infinite too
  return report;
}

/// A contribution that servers would refuse is not reported as finite. The norm is over parameters, without statistics.
void Replica::measure(std::span<const float> out, const StepResult& loss, StepReport& report) const {
  report.loss_sum = loss.loss_sum;
  report.residual = loss.encoded ? loss.residual : 0;
  const bool uncounted = loss.squared_norm < 0;  // NaN: it was counted
  check(!uncounted || !loss.encoded, "a device that encodes a gradient has counted its norm");
  report.squared_norm = uncounted ? squared_norm(out.first(options_.parameters)) : loss.squared_norm;
  const auto statistics = uncounted ? out.subspan(options_.parameters) : std::span<const float>();  // else they may be encoded
  const bool small = std::all_of(statistics.begin(), statistics.end(),
                                 [](float x) { return static_cast<double>(x) * static_cast<double>(x) < squared_norm_limit; });
  report.finite = report.squared_norm < squared_norm_limit && small && std::isfinite(report.loss_sum);
}

}  // namespace motley::store

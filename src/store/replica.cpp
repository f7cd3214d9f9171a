#include "store/replica.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "base/check.h"
#include "base/finite.h"

namespace motley::store {
namespace {

/// Several sums side by side: one alone would wait for each addition before the next.
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
    local_.emplace(
        LocalModelOptions{options.optimizer, options.values, options.parameters, options.local_momentum, options.watches, options.variate});
}

/// The mean over several pieces, made while the last one's gradient is: each value is final when its part of the last piece is. A piece
/// that is the whole step lands where it belongs.
class Replica::Mean final : public Flow {
 public:
  Mean(Flow& outer, std::span<float> mean, std::span<float> piece) : outer_(outer), mean_(mean), piece_(piece) {}
  /// Where the gradient of the piece that comes now, after `before` samples, is to be written.
  std::span<float> begin(std::uint64_t before, std::uint64_t samples, bool last) {
    before_ = static_cast<float>(static_cast<double>(before) / static_cast<double>(before + samples));
    now_ = static_cast<float>(static_cast<double>(samples) / static_cast<double>(before + samples));
    last_ = last;
    whole_ = before == 0 && last;
    return whole_ ? mean_ : piece_;
  }
  [[nodiscard]] bool told() const { return told_; }
  [[nodiscard]] bool whole() const { return whole_; }
  bool need(std::uint64_t first, std::uint64_t last) override { return outer_.need(first, last); }
  bool take(std::uint64_t first, std::uint64_t last, const std::function<void(const Arriving&)>& each) override {
    return outer_.take(first, last, each);
  }
  void stood(Duration time) override { outer_.stood(time); }
  void made(std::uint64_t first, std::uint64_t last) override {
    if (!whole_)
      for (std::uint64_t i = first; i < last; ++i) mean_[i] = before_ > 0 ? before_ * mean_[i] + now_ * piece_[i] : piece_[i];
    if (!last_) return;
    told_ = true;
    outer_.made(first, last);
  }
  [[nodiscard]] std::uint64_t id() const override { return whole_ ? outer_.id() : 0; }
  [[nodiscard]] std::optional<Upcoming> upcoming() override { return whole_ ? outer_.upcoming() : std::nullopt; }
  /// What comes after a piece is the next piece.
  [[nodiscard]] std::span<const std::uint32_t> foreseen() override { return whole_ ? outer_.foreseen() : std::span<const std::uint32_t>(); }
  /// Only what is whole can be coded.
  [[nodiscard]] const Coding* coding() override { return whole_ ? outer_.coding() : nullptr; }
  void coded(std::uint64_t first, std::uint64_t last) override {
    told_ = true;
    outer_.coded(first, last);
  }

 private:
  Flow& outer_;
  std::span<float> mean_;
  std::span<float> piece_;
  float before_ = 0;
  float now_ = 1;
  bool last_ = true;
  bool whole_ = true;
  bool told_ = false;
};

void Replica::run_in_pieces(GradientSource& source, const Task& task, std::span<float> out, Flow& flow, Pace& pace, Worth& worth) {
  for (bool last = false; !last;) {
    const std::uint64_t left = task.samples.size() - worth.samples;
    Pace::Piece piece = pace.next(worth.samples, left);
    if (most_samples_ > 0 && piece.samples > most_samples_) piece = {most_samples_, false};
    last = piece.last || piece.samples == left;
    if (!(worth.samples == 0 && last)) gradient_.resize(options_.values);
    Mean mean(flow, out, gradient_);
    const std::span<float> into = mean.begin(worth.samples, piece.samples, last);
    try {
      const Loss loss = source.gradient(task.values, task.samples.subspan(worth.samples, piece.samples), into, mean);
      worth.loss.sum += loss.sum;
      worth.loss.correct += loss.correct;
      worth.loss.samples += loss.samples;
      worth.loss.squared_norm = mean.whole() ? loss.squared_norm : -1;
      worth.loss.coded = loss.coded;
      worth.loss.residual = loss.residual;
      worth.samples += piece.samples;
    } catch (const OutOfMemory&) {
      if (piece.samples == 1 || mean.told() || !options_.cuts_to_fit) throw;
      most_samples_ = worth.most_samples = static_cast<std::uint32_t>(piece.samples / 2);
      last = false;
    }
    if (!flow.need(0, 0)) return;
  }
}

Worth Replica::contribute(GradientSource& source, const Task& task, std::span<float> out, Flow& flow, Pace& pace) {
  check(task.values.size() == options_.values && out.size() == options_.values, "a contribution is as large as the model");
  check(!local_, "who takes local steps contributes rounds");
  Worth worth;
  run_in_pieces(source, task, out, flow, pace, worth);
  judge(out, worth);
  return worth;
}

Worth Replica::contribute(GradientSource& source, const Round& round, News& news, std::span<float> out, Flow& flow) {
  check(local_.has_value(), "rounds are for who takes local steps");
  Worth worth;
  if (!flow.need(0, options_.values)) return worth;
  worth.loss = local_->walk(source, round, news, out, flow);
  worth.samples = round.samples.size();
  worth.moved = local_->moved();
  if (worth.loss.coded)
    flow.coded(0, options_.values);
  else
    flow.made(0, options_.values);
  judge(out, worth);
  if (!worth.finite) local_->forget();  // its momentum would make every later step infinite too
  return worth;
}

/// What servers would refuse is not called finite; no squared norm counts statistics.
void Replica::judge(std::span<const float> out, Worth& worth) const {
  const bool uncounted = worth.loss.squared_norm < 0;  // what is no number was counted
  check(!uncounted || !worth.loss.coded, "who codes counts what it codes");
  worth.squared_norm = uncounted ? squared_norm(out.first(options_.parameters)) : worth.loss.squared_norm;
  const auto statistics = uncounted ? out.subspan(options_.parameters) : std::span<const float>();  // else they may lie here coded
  const bool small = std::all_of(statistics.begin(), statistics.end(),
                                 [](float x) { return static_cast<double>(x) * static_cast<double>(x) < squared_norm_limit; });
  worth.finite = worth.squared_norm < squared_norm_limit && small && std::isfinite(worth.loss.sum);
}

}  // namespace motley::store

#include "policy/communication/divergence_detector.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "policy/constants.h"

namespace motley::policy {

void DivergenceDetector::contributed(const Contribution& contribution) {
  const StepReport& report = contribution.report;
  samples_ += report.samples;
  losses_ += report.mean_loss() * report.samples;
  norms_ += report.norm() * report.samples;
}

bool DivergenceDetector::updated() {
  if (samples_ <= 0) return false;
  const double loss = losses_ / samples_;
  const double norm = norms_ / samples_;
  samples_ = losses_ = norms_ = 0;
  if (updates_++ == 0) {
    loss_ = lowest_loss_ = loss;
    norm_ = usual_norm_ = norm;
    return false;
  }
  updates_spiking_ = updates_ > divergence::enough_to_spike_from && loss > divergence::spikes * lowest_loss_ ? updates_spiking_ + 1 : 0;
  const double weight = 1 / static_cast<double>(updates_);  // the plain mean until there are enough updates
  loss_ += std::max(divergence::fast, weight) * (loss - loss_);
  norm_ += std::max(divergence::fast, weight) * (norm - norm_);
  usual_norm_ += std::max(divergence::slow, weight) * (norm - usual_norm_);
  if (updates_ < divergence::enough && updates_spiking_ < divergence::no_accident) {
    lowest_loss_ = loss_;
    return false;
  }
  lowest_loss_ = std::min(lowest_loss_, loss_);
  const bool diverges =
      updates_spiking_ >= divergence::no_accident || loss_ > divergence::climbed * lowest_loss_ || norm_ > divergence::grown * usual_norm_;
  if (diverges) {
    spiked_ = std::exchange(updates_spiking_, 0) >= divergence::no_accident;
    if (spiked_) loss_ = std::max(loss_, loss);
    lowest_loss_ = loss_;
    usual_norm_ = norm_;
  }
  return diverges;
}

void DivergenceDetector::save(StateWriter& state) const {
  state.count("divergence.updates", updates_);
  state.number("divergence.loss", loss_);
  state.number("divergence.lowest_loss", lowest_loss_);
  state.number("divergence.norm", norm_);
  state.number("divergence.usual_norm", usual_norm_);
  state.count("divergence.updates_spiking", updates_spiking_);
}

void DivergenceDetector::restore(StateReader& state) {
  constexpr double any = std::numeric_limits<double>::max();  // a worker's loss need not be an entropy: it may be negative
  updates_ = state.count("divergence.updates");
  loss_ = state.number("divergence.loss", -any);
  lowest_loss_ = state.number("divergence.lowest_loss", -any);
  norm_ = state.number("divergence.norm");
  usual_norm_ = state.number("divergence.usual_norm");
  updates_spiking_ = static_cast<std::uint32_t>(state.count("divergence.updates_spiking", divergence::no_accident));
}

}  // namespace motley::policy

// A learner as both worlds see it: a source of gradients. And a model's tensors as the store sees them.
#pragma once
#include <memory>
#include <new>
#include <stdexcept>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "learn/learner.h"
#include "runtime/checkpoint.h"
#include "store/gradient_source.h"
#include "store/layer_timing.h"
#include "store/layout.h"

namespace motley::engine {

/// What torch (or the system under it) threw in the midst of training; not our bug.
struct LearnerFailed : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The border to torch's exceptions while it computes.
template <class Deed>
auto translate_errors(Deed deed) {
  try {
    return deed();
  } catch (const Bug&) {
    throw;
  } catch (const std::bad_alloc& failure) {
    throw store::OutOfMemory(failure.what());
  } catch (const std::exception& failure) {
    const std::string_view what = failure.what();
    // Torch has no exception of its own for this that both its versions share.
    if (what.find("out of memory") != std::string_view::npos || what.find("not enough memory") != std::string_view::npos ||
        what.find("can't allocate memory") != std::string_view::npos)
      throw store::OutOfMemory(failure.what());
    throw LearnerFailed(failure.what());
  }
}

/// Throws LearnerFailed where torch throws; our own bugs pass.
class LearnerSource : public store::GradientSource {
 public:
  explicit LearnerSource(std::unique_ptr<learn::Learner> learner) : learner_(std::move(learner)) {}
  [[nodiscard]] const learn::ModelShape& shape() const { return learner_->shape(); }
  [[nodiscard]] std::uint64_t activation_bytes_per_sample() const { return learner_->activation_bytes_per_sample(); }
  [[nodiscard]] std::vector<learn::BlockProfile> profile() { return learner_->profile(); }
  void initialize(std::uint64_t seed, std::span<float> values) override;
  store::Loss gradient(std::span<const float> values, std::span<const std::uint32_t> samples, std::span<float> out, StepIo& io) override;
  store::Loss evaluate(std::span<const float> values) override;
  store::LocalSgd* local_steps() override;

 private:
  std::unique_ptr<learn::Learner> learner_;
  std::unique_ptr<store::LocalSgd> local_steps_;
};

[[nodiscard]] std::vector<store::TensorPlace> places(const learn::ModelShape& shape);
/// When each slice is read and made in the course of a step.
[[nodiscard]] store::LayerTiming layer_timing(LearnerSource& learning, const store::Layout& layout);
/// The tensors under the names that files give them.
[[nodiscard]] runtime::ModelTensors model_tensors(const learn::ModelShape& shape);

}  // namespace motley::engine

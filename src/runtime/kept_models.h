// The model of a pipeline as its chief keeps it: the stages submit their parts now and then, a model that is whole replaces the one before,
// and is evaluated and saved on a background thread.
#pragma once
#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "runtime/background_thread.h"
#include "runtime/chief_hooks.h"
#include "runtime/model_parts.h"
#include "runtime/peer_connection.h"
#include "store/staged_model.h"

namespace motley::runtime {

/// A whole model and how it came about.
struct KeptModel {
  store::StagedModel model;
  std::uint64_t mini_batches = 0;
  Duration trained{};
};

/// `evaluate` and `save` are called on a thread of their own, the others on the event-loop thread. See ChiefHooks.
struct PipelineChiefHooks {
  std::function<Result<EvaluationResult>(std::span<const float> values)> evaluate;
  std::function<Outcome(const KeptModel&)> save;
  std::function<void()> saving;
  std::function<void(const Outcome&)> saved;
  Log log;
  std::function<void(const trace::Event&)> on_event;
};

struct KeptModelsOptions {
  store::StagedModel initial_model;
  bool second = false;                 // the optimizer has second moments
  std::uint64_t first_mini = 0;        // mini-batches that the initial model has
  std::uint64_t mini_batches = 0;      // of the training
  std::uint64_t samples = 0;           // of a mini-batch
  std::uint64_t total_samples = 0;     // where the last mini-batch is smaller
  std::uint64_t evaluate_every = 1;    // mini-batches
  std::uint64_t checkpoint_every = 0;  // mini-batches; 0: only on save()
};

/// Called on the event-loop thread.
class KeptModelsOwner {
 public:
  KeptModelsOwner() = default;
  KeptModelsOwner(const KeptModelsOwner&) = delete;
  KeptModelsOwner& operator=(const KeptModelsOwner&) = delete;
  virtual ~KeptModelsOwner() = default;

  /// Training time now.
  [[nodiscard]] virtual Instant trained() const = 0;
  /// A checkpoint is about to be saved: the trace up to its model must be written before.
  virtual void saving() = 0;
  virtual void evaluated(const trace::Event& event) = 0;
  virtual void evaluation_failed(const Error& why) = 0;
  virtual void diverged(const std::string& what) = 0;
  /// Something was evaluated or saved: done() may be true now.
  virtual void models_advanced() = 0;
};

/// Event-loop thread only.
class KeptModels {
 public:
  /// `hooks` and `owner` outlive this.
  KeptModels(boost::asio::io_context& event_loop, KeptModelsOptions options, const PipelineChiefHooks& hooks, KeptModelsOwner& owner);

  /// A new layout: parts of the one before are dropped.
  void begin(const std::vector<store::StagePlace>& places) { parts_.begin(places); }

  /// Where a slice is received, as of PeerOwner. `wanted`: it is of this layout and of a model newer than the kept one.
  std::span<std::byte> receive_buffer(PeerConnection& from, const wire::StageSlice& slice, std::size_t bytes, bool wanted);
  enum class Received { not_wanted, not_finite, part, whole_model };
  Received received(PeerConnection& from, const wire::StageSlice& slice);

  /// The machine continues from this model after a loss: it replaces model(), and is saved and evaluated when it is due.
  void keep(std::uint64_t mini_batches);
  /// Saves model(), if it has any update.
  void save();

  [[nodiscard]] const store::StagedModel& model() const { return model_; }
  /// In the first `mini_batches`.
  [[nodiscard]] std::uint64_t samples_of(std::uint64_t mini_batches) const;
  /// Nothing is being evaluated or saved.
  [[nodiscard]] bool done() const { return background_.idle(); }

 private:
  void evaluate(std::uint64_t mini_batches);

  KeptModelsOptions options_;
  const PipelineChiefHooks& hooks_;
  KeptModelsOwner& owner_;
  store::StagedModel model_;
  ModelParts parts_;
  std::uint64_t saved_;          // mini-batches of the last checkpoint
  BackgroundThread background_;  // last: ends first
};

}  // namespace motley::runtime

// A learner turns parameters and samples into gradients, in flat spans: the only way into torch. Torch-free header.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/model_spec.h"
#include "base/result.h"
#include "base/step_io.h"
#include "learn/data.h"

namespace motley::learn {

/// Where a learner computes.
struct Place {
  bool cuda = false;
  int index = 0;  // of the GPU
};

enum class TensorKind {
  parameter,  // has a gradient, is updated by the optimizer
  statistic   // batch norm's running mean and variance: averaged by sample count
};

/// One tensor of the model, in forward order; its values are [offset, offset+count) of the flat buffer.
struct Tensor {
  std::string name;  // "layer2.0.conv1.weight"
  std::vector<std::int64_t> shape;
  std::uint64_t offset{};
  std::uint64_t count{};
  TensorKind kind{};
  std::uint32_t block{};  // index of the block it belongs to
};

/// All parameters come first, then all statistics.
struct ModelShape {
  std::vector<Tensor> tensors;
  std::uint64_t parameters{};  // values
  std::uint64_t statistics{};  // values
  std::uint32_t blocks{};
  [[nodiscard]] std::uint64_t values() const { return parameters + statistics; }
};

/// What one block takes for one sample, counted from shapes: the same on every machine.
struct BlockProfile {
  std::string name;
  double work{};                 // multiply-adds of its forward, and one for each value that any operation puts out
  std::uint64_t parameters{};    // values
  std::uint64_t output_bytes{};  // that the next block reads
  std::uint64_t kept_bytes{};    // that its backward needs: an upper estimate
};

/// Text: gradient() counts sequences (loss_sum adds the mean over each one's characters, `correct` is the share of characters hit
/// times sequences, rounded); evaluate() counts predicted characters.
struct StepResult {
  double loss_sum{};        // over the samples
  std::uint64_t correct{};  // samples whose highest score is their class
  std::uint64_t samples{};
  double squared_norm = -1;  // of the gradient or the way beside it, over the parameters; below 0: not counted
  bool coded = false;        // what is beside it is, as was asked for
  double residual = 0;       // if so: what rounding has kept back, as a part of it
};

/// A model that walks on its device, several steps at a time, and stays there in between: what a worker with local steps needs of a device
/// with memory of its own. SGD with Nesterov's momentum; statistics move as the steps move them. Ranges are [first, first + size) of the
/// flat buffer. One owner thread, the learner's.
class LocalSgd {
 public:
  virtual ~LocalSgd() = default;
  /// The model of now, and no momentum.
  virtual void begin(std::span<const float> values) = 0;
  /// The values of a range are these.
  virtual void put(std::uint64_t first, std::span<const float> values) = 0;
  /// They are these and `kept_fraction` of the way that the last round went (all of it for statistics); the momentum is `kept_fraction` of
  /// what it was.
  virtual void put_stale(std::uint64_t first, std::span<const float> values, double kept_fraction) = 0;
  /// A round begins here.
  virtual void begin_round() = 0;
  /// In its midst: newer values, and `kept_fraction` of the way so far, which still counts whole.
  virtual void merge(std::uint64_t first, std::span<const float> values, double kept_fraction) = 0;
  struct Rule {
    double rate = 0;
    double momentum = 0;
    double weight_decay = 0;
  };
  /// One step. Returns when the device has at most this and the one before left to do.
  virtual void step(std::span<const std::uint32_t> samples, const Rule& rule) = 0;
  /// What was put and merged lately is a whole model again. When the round is over, update_norm() is the squared distance of its parameters
  /// from those of the model that was watched before.
  virtual void watch() = 0;
  [[nodiscard]] virtual double update_norm() const = 0;
  /// The way that the round went, coded if that is wanted (see StepIo), and the loss of its steps; it is over.
  virtual StepResult delta(std::span<float> out, const GradientEncoding* coding) = 0;
  StepResult delta(std::span<float> out) { return delta(out, nullptr); }
};

/// One model on one device. Not thread-safe: one owner thread. Several learners of one process share their data set.
/// Equal arguments give equal bits, call after call and thread after thread, while use_threads() keeps its count.
/// Spans of the wrong size and indices beyond the training set are our bug (check); torch's exceptions (memory) pass through.
class Learner {
 public:
  virtual ~Learner() = default;
  [[nodiscard]] virtual const ModelShape& shape() const = 0;
  /// Memory that each sample of a step takes beside the parameters: itself, and every layer's output with its gradient. An upper
  /// estimate, measured by one forward when the model was made.
  [[nodiscard]] virtual std::uint64_t activation_bytes_per_sample() const = 0;

  /// One entry for each block, in forward order.
  [[nodiscard]] virtual std::vector<BlockProfile> profile() = 0;

  /// It computes with weights (all parameters of two dimensions or more) of 16 bits: they may come so, and their gradients may leave so;
  /// see IncomingValues::rounded and GradientEncoding::bf16_as_is.
  [[nodiscard]] virtual bool bf16_transfer() const { return false; }

  /// Fills `values` (shape().values() floats) with the initial model of this seed: the same for every version of torch.
  virtual void initialize(std::uint64_t seed, std::span<float> values) = 0;

  /// Mean gradient over `samples` (indices into the training set, at least one) at `values`.
  /// `out` (shape().values() floats) receives the gradient of each parameter and, for each statistic, its change by this step.
  /// Block by block: `io` is asked for a block's values before its forward, and told of its gradient once its backward is done;
  /// statistics come with the first block. When flow gives up, so does this, and nothing it leaves is worth anything.
  virtual StepResult gradient(std::span<const float> values, std::span<const std::uint32_t> samples, std::span<float> out, StepIo& io) = 0;
  /// The same when all values are there and nobody waits for the gradient.
  StepResult gradient(std::span<const float> values, std::span<const std::uint32_t> samples, std::span<float> out) {
    NoStreaming no_streaming;
    return gradient(values, samples, out, no_streaming);
  }

  /// Local steps on the device itself; null: take them with gradient(), nothing is far away. Lives with the learner.
  virtual LocalSgd* local_sgd() { return nullptr; }

  /// Loss and accuracy over the whole evaluation split, with batch norm in evaluation mode.
  virtual StepResult evaluate(std::span<const float> values) = 0;
};

/// A model that does not fit its data (a transformer on images) is refused with what fits; a place that is not there, with what is.
/// On a GPU equal arguments give nearly equal values, not equal bits: its library chooses among algorithms.
Result<std::unique_ptr<Learner>> make_learner(const ModelSpec& spec, std::shared_ptr<const DataSet> data, const Place& place);
/// On the CPU.
Result<std::unique_ptr<Learner>> make_learner(const ModelSpec& spec, std::shared_ptr<const DataSet> data);

/// GPUs that torch can use.
[[nodiscard]] int gpus();
/// True when this binary was built with torch.
[[nodiscard]] bool available();
/// "libtorch 1.13.0, OpenBLAS 0.3.21 for Cooperlake, 2 threads", or why there is none. For `motley doctor`.
[[nodiscard]] std::string describe_backend();

/// Call once in each thread that will own a learner: this many threads inside one operation. OpenBLAS has one count for the whole
/// process, so all threads should ask for the same.
void use_threads(int count);

}  // namespace motley::learn

// A learner turns parameters and samples into gradients, in flat spans: the way into torch. Torch-free header.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/gradient_source.h"
#include "base/model_shape.h"
#include "base/model_spec.h"
#include "base/result.h"
#include "learn/data.h"

namespace motley::learn {

/// Where a learner computes.
struct Place {
  bool cuda = false;
  int index = 0;  // of the GPU
};

/// Cost of one block for one sample, counted from shapes: the same on every machine.
struct BlockProfile {
  std::string name;
  double work{};                 // multiply-adds of its forward, and one for each value that any operation puts out
  std::uint64_t parameters{};    // values
  std::uint64_t output_bytes{};  // that the next block reads
  std::uint64_t kept_bytes{};    // that its backward needs: an upper estimate
};

/// One model on one device. Not thread-safe: one owner thread. Several learners of one process share their data set.
/// Equal arguments give equal bits on the CPU, call after call and thread after thread, while use_threads() keeps its count.
/// Spans of the wrong size and indices beyond the training set are our bug (check). Exceptions of torch leave as OutOfMemory or
/// ComputationFailed.
class Learner : public GradientSource {
 public:
  [[nodiscard]] virtual const ModelShape& shape() const = 0;
  /// Memory that each sample of a step needs beside the parameters: the sample itself, and every layer's output with its gradient. An upper
  /// estimate, measured by one forward when the model was made.
  [[nodiscard]] virtual std::uint64_t activation_bytes_per_sample() const = 0;

  /// One entry for each block, in forward order.
  [[nodiscard]] virtual std::vector<BlockProfile> profile() = 0;

  /// True if weights (parameters of two dimensions or more) are computed with in bf16: they may arrive as bf16 and their gradients may be
  /// sent as bf16; see IncomingValues::rounded and GradientEncoding::bf16_as_is.
  [[nodiscard]] virtual bool bf16_transfer() const { return false; }
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

// Blocks with torch's autograd. Their tensors are views into one flat buffer, so that one copy brings new values; their gradients are views
// into the caller's buffer, so that backward writes them in place.
#include <algorithm>

#include "learn/torch/allocations.h"
#include "learn/torch/network.h"
#include "learn/torch/work.h"

namespace motley::learn {

namespace {

at::Tensor view_of(float* first, at::IntArrayRef shape) { return at::from_blob(first, shape, at::kFloat); }

class GraphNetwork final : public Network {
 public:
  explicit GraphNetwork(Model& model)
      : blocks_(model.blocks),
        parameters_(model.shape.parameters),
        values_(at::zeros({static_cast<std::int64_t>(model.shape.values())})),
        tensors_(model.blocks.size()) {
    for (std::size_t t = 0; t < model.slots.size(); ++t) {
      Slot& slot = *model.slots[t];
      const Tensor& tensor = model.shape.tensors[t];
      slot.tensor = view_of(flat() + tensor.offset, slot.shape).requires_grad_(slot.kind == TensorKind::parameter);
      if (slot.kind == TensorKind::parameter) tensors_[tensor.block].add(slot.tensor, tensor);
    }
  }

  at::Tensor forward(std::span<const float> values, const at::Tensor& inputs, Mode mode, StepIo& io) override {
    before_ = values;
    const c10::AutoGradMode graph(mode == Mode::training);
    if (!take(parameters_, values.size(), io)) return {};
    at::Tensor x = inputs;
    for (std::size_t b = 0; b < blocks_.size(); ++b) {
      BlockTensors& block_tensors = tensors_[b];
      if (!take(block_tensors.first, block_tensors.last, io)) return {};
      // Each block has an autograd graph of its own, so that its gradient is final before backward reaches the block in front of it.
      if (mode == Mode::training && b > 0) x = x.detach().requires_grad_(true);
      block_tensors.input = x;
      block_tensors.output = x = blocks_[b]->forward(x, mode);
      if (mode == Mode::evaluation) block_tensors.forget();
    }
    return x.detach().contiguous();
  }

  void backward(const at::Tensor& logits_gradient, std::span<float> out, StepIo& io) override {
    std::fill_n(out.begin(), parameters_, 0.0F);
    at::Tensor gradient = logits_gradient;
    for (std::size_t b = blocks_.size(); b-- > 0;) {
      BlockTensors& block_tensors = tensors_[b];
      for (Bound& bound : block_tensors.bound) bound.parameter.mutable_grad() = view_of(out.data() + bound.offset, bound.parameter.sizes());
      if (block_tensors.output.requires_grad()) block_tensors.output.backward(gradient);  // adds to the zeros in `out`
      for (Bound& bound : block_tensors.bound) bound.parameter.mutable_grad().reset();    // `out` is the caller's again
      if (b > 0) gradient = block_tensors.input.grad();
      block_tensors.forget();
      if (block_tensors.first < block_tensors.last) io.gradient_ready(block_tensors.first, block_tensors.last);
    }
    for (std::size_t i = parameters_; i < out.size(); ++i) out[i] = flat()[i] - before_[i];
    if (parameters_ < out.size()) io.gradient_ready(parameters_, out.size());
  }

  /// Every allocation of a training forward is an operation's output. Autograd keeps no more than these, and backward computes a gradient
  /// of each.
  std::uint64_t activation_bytes_per_sample(const at::Tensor& sample) override {
    const std::vector<float> zeros(static_cast<std::size_t>(values_.numel()));
    const Allocations allocations;
    NoStreaming no_streaming;
    forward(zeros, sample, Mode::training, no_streaming);
    for (BlockTensors& block_tensors : tensors_) block_tensors.forget();
    before_ = {};
    return 2 * allocations.bytes();
  }

  std::vector<BlockProfile> profile(const at::Tensor& sample) override {
    const c10::AutoGradMode graph(false);
    std::vector<BlockProfile> result;
    at::Tensor x = sample;
    for (const auto& block : blocks_) {
      const ArithmeticCounter work;
      const Allocations allocations;
      x = block->forward(x, Mode::training);
      result.push_back({"", work.multiply_adds(), 0, x.nbytes(), allocations.bytes()});
    }
    return result;
  }

 private:
  struct Bound {
    at::Tensor parameter;
    std::uint64_t offset{};
  };
  /// The tensors of one block.
  struct BlockTensors {
    std::uint64_t first = 0;  // range of its parameters in the flat buffer; empty if it has none
    std::uint64_t last = 0;
    std::vector<Bound> bound;
    at::Tensor input;  // of the last training forward
    at::Tensor output;

    /// Frees the graph.
    void forget() {
      input.reset();
      output.reset();
    }
    void add(const at::Tensor& parameter, const Tensor& place) {
      if (bound.empty()) first = place.offset;
      last = place.offset + place.count;
      bound.push_back({parameter, place.offset});
    }
  };
  float* flat() { return values_.data_ptr<float>(); }

  bool take(std::uint64_t first, std::uint64_t last, StepIo& io) {
    if (first == last) return true;
    if (!io.wait_for(first, last)) return false;
    std::copy(before_.begin() + static_cast<std::ptrdiff_t>(first), before_.begin() + static_cast<std::ptrdiff_t>(last), flat() + first);
    return true;
  }

  const Blocks& blocks_;
  std::size_t parameters_;
  at::Tensor values_;
  std::vector<BlockTensors> tensors_;  // by block
  std::span<const float> before_;      // the caller's values at the last forward
};

}  // namespace

std::unique_ptr<Network> graph_network(Model& model) { return std::make_unique<GraphNetwork>(model); }

}  // namespace motley::learn

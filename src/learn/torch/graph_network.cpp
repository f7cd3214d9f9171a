// Blocks under torch's autograd. Their tensors are views into one flat buffer, so that new values arrive by one copy; their gradients
// are views into the caller's, so that backward leaves them in place.
#include <algorithm>

#include "learn/torch/allocations.h"
#include "learn/torch/network.h"

namespace motley::learn {

namespace {

at::Tensor view_of(float* first, at::IntArrayRef shape) { return at::from_blob(first, shape, at::kFloat); }

class GraphNetwork final : public Network {
 public:
  explicit GraphNetwork(Model& model)
      : blocks_(model.blocks), parameters_(model.shape.parameters), values_(at::zeros({static_cast<std::int64_t>(model.shape.values())})) {
    for (std::size_t t = 0; t < model.slots.size(); ++t) {
      Slot& slot = *model.slots[t];
      const std::uint64_t offset = model.shape.tensors[t].offset;
      slot.tensor = view_of(flat() + offset, slot.shape).requires_grad_(slot.kind == TensorKind::parameter);
      if (slot.kind == TensorKind::parameter) bound_.push_back({slot.tensor, offset});
    }
  }

  at::Tensor forward(std::span<const float> values, const at::Tensor& inputs, Mode mode) override {
    std::copy(values.begin(), values.end(), flat());
    before_ = values;
    const c10::AutoGradMode graph(mode == Mode::training);
    at::Tensor x = inputs;
    for (const auto& block : blocks_) x = block->forward(x, mode);
    logits_ = x;
    return x.detach().contiguous();
  }

  void backward(const at::Tensor& logits_gradient, std::span<float> out) override {
    std::fill_n(out.begin(), parameters_, 0.0F);
    for (Bound& bound : bound_) bound.parameter.mutable_grad() = view_of(out.data() + bound.offset, bound.parameter.sizes());
    logits_.backward(logits_gradient);                                   // adds into what is there
    logits_.reset();                                                     // frees the graph
    for (Bound& bound : bound_) bound.parameter.mutable_grad().reset();  // `out` is the caller's again
    for (std::size_t i = parameters_; i < out.size(); ++i) out[i] = flat()[i] - before_[i];
  }

  /// Whatever a training forward allocates is some operation's output; autograd keeps no more than that, and backward makes a gradient
  /// of each.
  std::uint64_t activation_bytes_per_sample(const at::Tensor& sample) override {
    const std::vector<float> zeros(static_cast<std::size_t>(values_.numel()));
    const Allocations allocations;
    forward(zeros, sample, Mode::training);
    logits_.reset();
    before_ = {};
    return 2 * allocations.bytes();
  }

 private:
  struct Bound {
    at::Tensor parameter;
    std::uint64_t offset{};
  };
  float* flat() { return values_.data_ptr<float>(); }

  const Blocks& blocks_;
  std::size_t parameters_;
  at::Tensor values_;
  std::vector<Bound> bound_;
  at::Tensor logits_;              // of the last training forward, with its graph
  std::span<const float> before_;  // the caller's values of the last forward
};

}  // namespace

std::unique_ptr<Network> graph_network(Model& model) { return std::make_unique<GraphNetwork>(model); }

}  // namespace motley::learn

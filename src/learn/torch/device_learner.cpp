// A model on a device with memory of its own. Values and gradients lie there in flat buffers. Each block's values are copied in just before
// its forward, on a lane of their own, and its gradient is copied out as soon as its backward has made it, while the device goes on with
// the next; between host and device lies pinned memory. Samples are gathered and the loss is computed on the device, so the host waits
// only for gradients.
//
// In bf16 the weights have a second flat buffer, rounded from the first block by block, and gradients of them one more; norms, sums and
// statistics stay in floats.
#include "learn/torch/device_learner.h"

#include <c10/core/GradMode.h>

#include <algorithm>
#include <numeric>

#include "learn/torch/device_samples.h"
#include "learn/torch/lanes.h"

namespace motley::learn {

namespace {

constexpr std::size_t evaluation_chunk = 1000;

std::int64_t length(std::uint64_t values) { return static_cast<std::int64_t>(values); }

class DeviceLearner final : public Learner {
 public:
  DeviceLearner(Model model, Measured measured, std::shared_ptr<const DataSet> data, at::Device device, bool half)
      : model_(std::move(model)),
        measured_(std::move(measured)),
        device_(device),
        half_type_(half ? at::kBFloat16 : at::kFloat),
        samples_(data, {device, half_type_, device.is_cuda()}),
        text_(data->shape().text),
        targets_(static_cast<std::uint64_t>(data->shape().targets())),
        evaluated_(data->size(Part::evaluation)),
        lanes_(device),
        cuts_(model_.blocks.size()) {
    const auto guard = lanes_.on(Lane::compute);
    const auto floats = at::TensorOptions(at::kFloat);
    const std::int64_t all = length(model_.shape.values());
    const std::int64_t parameters = length(model_.shape.parameters);
    values_ = at::zeros({all}, floats.device(device_));
    gradient_ = at::zeros({all}, floats.device(device_));
    if (half) {
      half_ = at::zeros({parameters}, floats.device(device_).dtype(half_type_));
      half_gradient_ = at::zeros({parameters}, half_.options());
    }
    came_ = at::empty({all}, pinned(floats));
    leaves_ = at::empty({all}, pinned(floats));
    score_ = at::empty({2}, pinned(at::TensorOptions(at::kDouble)));
    bind();
    lanes_.settle();
  }

  const ModelShape& shape() const override { return model_.shape; }
  std::uint64_t activation_bytes_per_sample() const override { return measured_.activation_bytes; }
  std::vector<BlockProfile> profile() override { return measured_.profile; }

  void initialize(std::uint64_t seed, std::span<float> values) override {
    check(values.size() == shape().values(), "values has room for the whole model");
    fill_initial(model_, seed, values);
  }

  using Learner::gradient;
  StepResult gradient(std::span<const float> values, std::span<const std::uint32_t> samples, std::span<float> out, Flow& flow) override {
    check(!samples.empty(), "a gradient is taken over a sample or more");
    check(values.size() == shape().values() && out.size() == values.size(), "values and out hold the whole model");
    const Tidy tidy(*this);
    const auto guard = lanes_.on(Lane::compute);
    const auto batch = samples_.gather(Part::training, samples);
    gradient_.zero_();
    if (half_.defined()) half_gradient_.zero_();
    const at::Tensor logits = forward(values, batch.inputs, Mode::training, flow);
    if (!logits.defined()) return {};  // given up
    backward(score(logits, batch.targets, /*wants_gradient=*/true));
    score_.copy_(sums_, /*non_blocking=*/true);
    scored_.set(lanes_, Lane::compute);
    hand_out(out, flow);
    scored_.wait();
    const auto* sums = score_.data_ptr<double>();
    return {sums[0] / static_cast<double>(targets_), (static_cast<std::uint64_t>(sums[1]) + targets_ / 2) / targets_, samples.size()};
  }

  StepResult evaluate(std::span<const float> values) override {
    check(values.size() == shape().values(), "values holds the whole model");
    const Tidy tidy(*this);
    const auto guard = lanes_.on(Lane::compute);
    Still still;
    std::vector<std::uint32_t> chunk(text_ ? 64 : evaluation_chunk);
    StepResult result;
    at::Tensor total = at::zeros({2}, at::TensorOptions(at::kDouble).device(device_));
    for (std::uint64_t first = 0; first < evaluated_; first += chunk.size()) {
      chunk.resize(std::min<std::uint64_t>(chunk.size(), evaluated_ - first));
      std::iota(chunk.begin(), chunk.end(), static_cast<std::uint32_t>(first));
      const auto batch = samples_.gather(Part::evaluation, chunk);
      // The values are copied once, with the first chunk.
      const at::Tensor logits = first == 0 ? forward(values, batch.inputs, Mode::evaluation, still) : through(batch.inputs);
      score(logits, batch.targets, /*wants_gradient=*/false);
      total.add_(sums_);
      result.samples += static_cast<std::uint64_t>(batch.targets.numel());
    }
    score_.copy_(total, /*non_blocking=*/true);
    lanes_.settle();
    result.loss_sum = score_.data_ptr<double>()[0];
    result.correct = static_cast<std::uint64_t>(score_.data_ptr<double>()[1]);
    return result;
  }

 private:
  struct Bound {
    at::Tensor parameter;
    at::Tensor gradient;  // of the flat buffer that belongs to it
  };
  /// A block's own piece of the work.
  struct Cut {
    std::uint64_t first = 0;  // its parameters in the flat buffer; none: first == last
    std::uint64_t last = 0;
    std::vector<Bound> bound;
    at::Tensor input;  // of the last training forward
    at::Tensor output;
    Mark in, made, out;
  };
  /// However a step ends: no graph is left, and nothing is under way in the pinned memory that the next one will write.
  struct Tidy {
    explicit Tidy(DeviceLearner& of) : learner(of) {}
    Tidy(const Tidy&) = delete;
    Tidy& operator=(const Tidy&) = delete;
    ~Tidy() {
      for (Cut& cut : learner.cuts_) {
        cut.input.reset();
        cut.output.reset();
      }
      learner.lanes_.settle();
    }
    DeviceLearner& learner;
  };

  [[nodiscard]] at::TensorOptions pinned(const at::TensorOptions& options) const { return options.pinned_memory(!device_.is_cpu()); }

  /// Views of the flat buffers, each with a version of its own: values of a later block may come while an earlier one's are in use.
  static at::Tensor view(const at::Tensor& flat, const Tensor& of, at::IntArrayRef shape) {
    return flat.narrow(0, length(of.offset), length(of.count)).view(shape).variable_data();
  }

  void bind() {
    for (std::size_t t = 0; t < model_.slots.size(); ++t) {
      Slot& slot = *model_.slots[t];
      const Tensor& tensor = model_.shape.tensors[t];
      const bool half = half_.defined() && slot.kind == TensorKind::parameter && !slot.exact;
      slot.tensor = view(half ? half_ : values_, tensor, slot.shape);
      if (slot.kind != TensorKind::parameter) continue;
      slot.tensor.requires_grad_(true);
      Cut& cut = cuts_[tensor.block];
      if (cut.bound.empty()) cut.first = tensor.offset;
      cut.last = tensor.offset + tensor.count;
      cut.bound.push_back({slot.tensor, view(half ? half_gradient_ : gradient_, tensor, slot.shape)});
    }
  }

  /// Values [first, last) are on the device before what the compute lane does next.
  bool take(std::uint64_t first, std::uint64_t last, std::span<const float> values, Mark& mark, Flow& flow) {
    if (first == last) return true;
    if (!flow.need(first, last)) return false;
    const auto piece = values.subspan(first, last - first);
    std::copy(piece.begin(), piece.end(), came_.data_ptr<float>() + first);
    {
      const auto guard = lanes_.on(Lane::in);
      part(values_, first, last).copy_(part(came_, first, last), /*non_blocking=*/true);
      mark.set(lanes_, Lane::in);
    }
    mark.hold(lanes_, Lane::compute);
    if (half_.defined() && last <= model_.shape.parameters) part(half_, first, last).copy_(part(values_, first, last));
    return true;
  }
  static at::Tensor part(const at::Tensor& flat, std::uint64_t first, std::uint64_t last) {
    return flat.narrow(0, length(first), length(last - first));
  }

  at::Tensor forward(std::span<const float> values, const at::Tensor& inputs, Mode mode, Flow& flow) {
    const c10::AutoGradMode graph(mode == Mode::training);
    const std::uint64_t parameters = model_.shape.parameters;
    if (!take(parameters, values.size(), values, statistics_in_, flow)) return {};
    before_ = part(values_, parameters, values.size()).clone();
    at::Tensor x = inputs;
    for (std::size_t b = 0; b < cuts_.size(); ++b) {
      Cut& cut = cuts_[b];
      if (!take(cut.first, cut.last, values, cut.in, flow)) return {};
      // Each block has a graph of its own, so that its gradient is done before that of the block in front of it begins.
      if (mode == Mode::training && b > 0) x = x.detach().requires_grad_(true);
      at::Tensor y = model_.blocks[b]->forward(x, mode);
      if (mode == Mode::training) {
        cut.input = x;
        cut.output = y;
      }
      x = std::move(y);
    }
    return x.detach();
  }

  /// An evaluation at the values that are there.
  at::Tensor through(const at::Tensor& inputs) {
    const c10::AutoGradMode graph(false);
    at::Tensor x = inputs;
    for (const auto& block : model_.blocks) x = block->forward(x, Mode::evaluation);
    return x;
  }

  /// Loss and hits into sums_; the gradient of the mean loss, in the logits' own type, if it is wanted.
  at::Tensor score(const at::Tensor& logits, const at::Tensor& targets, bool wants_gradient) {
    const c10::AutoGradMode graph(false);
    const at::Tensor rows = logits.to(at::kFloat).reshape({targets.size(0), -1});
    const at::Tensor logarithms = at::log_softmax(rows, 1);
    const at::Tensor wanted = targets.unsqueeze(1);
    const at::Tensor loss = logarithms.gather(1, wanted).sum().neg().to(at::kDouble);
    const at::Tensor hits = rows.argmax(1).eq(targets).sum().to(at::kDouble);
    sums_ = at::stack({loss, hits});
    if (!wants_gradient) return {};
    at::Tensor gradient = logarithms.exp();
    gradient.scatter_add_(1, wanted, at::full_like(wanted, -1, gradient.options()));
    gradient.div_(static_cast<double>(rows.size(0)));
    return gradient.reshape(logits.sizes()).to(logits.scalar_type());
  }

  void backward(at::Tensor gradient) {
    for (std::size_t b = cuts_.size(); b-- > 0;) {
      Cut& cut = cuts_[b];
      for (Bound& bound : cut.bound) bound.parameter.mutable_grad() = bound.gradient;
      if (cut.output.requires_grad()) cut.output.backward(gradient);  // adds into what is there
      for (Bound& bound : cut.bound) bound.parameter.mutable_grad().reset();
      if (b > 0) gradient = cut.input.grad();
      cut.input.reset();
      cut.output.reset();
      if (half_.defined() && cut.first < cut.last) part(gradient_, cut.first, cut.last).add_(part(half_gradient_, cut.first, cut.last));
      send(cut.first, cut.last, cut.made, cut.out);
    }
    const std::uint64_t parameters = model_.shape.parameters;
    const std::uint64_t all = model_.shape.values();
    if (parameters < all) part(gradient_, parameters, all).copy_(part(values_, parameters, all) - before_);
    send(parameters, all, statistics_made_, statistics_out_);
  }

  /// What the compute lane has made goes to the pinned memory.
  void send(std::uint64_t first, std::uint64_t last, Mark& made, Mark& out) {
    if (first == last) return;
    made.set(lanes_, Lane::compute);
    made.hold(lanes_, Lane::out);
    const auto guard = lanes_.on(Lane::out);
    part(leaves_, first, last).copy_(part(gradient_, first, last), /*non_blocking=*/true);
    out.set(lanes_, Lane::out);
  }

  /// In the order in which it is made, as soon as it is there.
  void hand_out(std::span<float> out, Flow& flow) {
    const auto hand = [&](std::uint64_t first, std::uint64_t last, Mark& mark) {
      if (first == last) return;
      mark.wait();
      std::copy(leaves_.data_ptr<float>() + first, leaves_.data_ptr<float>() + last, out.begin() + length(first));
      flow.made(first, last);
    };
    for (std::size_t b = cuts_.size(); b-- > 0;) hand(cuts_[b].first, cuts_[b].last, cuts_[b].out);
    hand(model_.shape.parameters, model_.shape.values(), statistics_out_);
  }

  Model model_;
  Measured measured_;
  at::Device device_;
  at::ScalarType half_type_;
  DeviceSamples samples_;
  bool text_;
  std::uint64_t targets_;    // of a sample
  std::uint64_t evaluated_;  // samples
  Lanes lanes_;
  std::vector<Cut> cuts_;  // by block
  Mark statistics_in_, statistics_made_, statistics_out_, scored_;
  at::Tensor values_, gradient_;      // flat, on the device
  at::Tensor half_, half_gradient_;   // the same in bf16; undefined: not used
  at::Tensor before_;                 // the statistics before this step
  at::Tensor sums_;                   // loss and hits, on the device
  at::Tensor came_, leaves_, score_;  // pinned
};

}  // namespace

std::unique_ptr<Learner> device_learner(Model model, Measured measured, std::shared_ptr<const DataSet> data, at::Device device, bool half) {
  return std::make_unique<DeviceLearner>(std::move(model), std::move(measured), std::move(data), device, half);
}

}  // namespace motley::learn

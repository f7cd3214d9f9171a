#include "learn/torch/loss_function.h"

#include <c10/core/GradMode.h>

#include "learn/registry.h"
#include "learn/torch/batch.h"

namespace motley::learn {
namespace {

at::Tensor hits(const at::Tensor& rows, const at::Tensor& targets) { return rows.argmax(1).eq(targets).sum().to(at::kDouble); }

class CrossEntropy final : public LossFunction {
 public:
  [[nodiscard]] Score on_host(const at::Tensor& outputs, const at::Tensor& targets, const at::Tensor& gradient) const override {
    const std::span<const float> logits = span_of<float>(outputs);
    const std::span<const std::int64_t> classes = span_of<std::int64_t>(targets);
    return gradient.defined() ? cross_entropy(logits, classes, span_of<float>(gradient)) : cross_entropy(logits, classes);
  }

  [[nodiscard]] Tensors on_device(const at::Tensor& outputs, const at::Tensor& targets, bool wants_gradient) const override {
    const c10::AutoGradMode graph(false);
    const at::Tensor rows = outputs.to(at::kFloat).reshape({targets.size(0), -1});
    const at::Tensor logarithms = at::log_softmax(rows, 1);
    const at::Tensor wanted = targets.unsqueeze(1);
    const at::Tensor loss = logarithms.gather(1, wanted).sum().neg().to(at::kDouble);
    const at::Tensor sums = at::stack({loss, hits(rows, targets)});
    if (!wants_gradient) return {sums, {}};
    at::Tensor gradient = logarithms.exp();
    gradient.scatter_add_(1, wanted, at::full_like(wanted, -1, gradient.options()));
    gradient.div_(static_cast<double>(rows.size(0)));
    return {sums, gradient.reshape(outputs.sizes()).to(outputs.scalar_type())};
  }
};

class AutogradLoss final : public LossFunction {
 public:
  explicit AutogradLoss(MeanLoss mean_loss) : mean_loss_(std::move(mean_loss)) {}

  [[nodiscard]] Score on_host(const at::Tensor& outputs, const at::Tensor& targets, const at::Tensor& gradient) const override {
    const Tensors tensors = on_device(outputs, targets.flatten(), gradient.defined());
    if (gradient.defined()) at::Tensor(gradient).copy_(tensors.gradient);
    const double* sums = tensors.sums.data_ptr<double>();
    return {sums[0], static_cast<std::uint64_t>(sums[1])};
  }

  [[nodiscard]] Tensors on_device(const at::Tensor& outputs, const at::Tensor& targets, bool wants_gradient) const override {
    const c10::AutoGradMode graph(wants_gradient);
    at::Tensor rows = outputs.detach().to(at::kFloat).reshape({targets.size(0), -1});
    if (wants_gradient) rows = rows.detach().requires_grad_(true);
    const at::Tensor mean = mean_loss_(rows, targets);
    const at::Tensor loss = mean.detach().to(at::kDouble) * static_cast<double>(rows.size(0));
    const at::Tensor sums = at::stack({loss, hits(rows.detach(), targets)});
    if (!wants_gradient) return {sums, {}};
    mean.backward();
    return {sums, rows.grad().reshape(outputs.sizes()).to(outputs.scalar_type())};
  }

 private:
  MeanLoss mean_loss_;
};

}  // namespace

std::shared_ptr<const LossFunction> autograd_loss(MeanLoss mean_loss) { return std::make_shared<AutogradLoss>(std::move(mean_loss)); }

Registry<LossFactory>& losses() {
  static Registry<LossFactory> registry({
      {"cross-entropy", [] { return std::make_shared<CrossEntropy>(); }},
  });
  return registry;
}

}  // namespace motley::learn

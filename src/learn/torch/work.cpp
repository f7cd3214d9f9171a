#include "learn/torch/work.h"

#include <ATen/ATen.h>

#include <string_view>

namespace motley::learn {
namespace {

thread_local Work* counting = nullptr;  // a callback is a bare function

/// Terms of each value that this operation puts out.
double terms(const at::RecordFunction& operation) {
  const auto inputs = operation.inputs();
  const auto tensor = [&](std::size_t i) -> at::Tensor {
    return i < inputs.size() && inputs[i].isTensor() ? inputs[i].toTensor() : at::Tensor();
  };
  const std::string_view name(operation.name());
  if (name == "aten::conv2d" || name == "aten::convolution") {
    const at::Tensor weight = tensor(1);
    return weight.defined() ? static_cast<double>(weight.numel()) / static_cast<double>(weight.size(0)) : 1;
  }
  const bool product = name == "aten::linear" || name == "aten::matmul" || name == "aten::mm" || name == "aten::bmm";
  const at::Tensor left = tensor(name == "aten::addmm" || name == "aten::baddbmm" ? 1 : 0);
  const bool sum_of_product = name == "aten::addmm" || name == "aten::baddbmm";
  return (product || sum_of_product) && left.defined() ? static_cast<double>(left.size(-1)) : 1;
}

}  // namespace

Work::Work()
    : handle_(at::addThreadLocalCallback(at::RecordFunctionCallback(&Work::began, &Work::ended)
                                             .needsInputs(true)
                                             .needsOutputs(true)
                                             .scopes({at::RecordScope::FUNCTION}))) {
  counting = this;
}

Work::~Work() {
  counting = nullptr;
  at::removeCallback(handle_);
}

std::unique_ptr<at::ObserverContext> Work::began(const at::RecordFunction&) {
  if (counting != nullptr) ++counting->depth_;
  return nullptr;
}

void Work::ended(const at::RecordFunction& operation, at::ObserverContext*) {
  if (counting == nullptr || --counting->depth_ > 0) return;
  const auto inputs = operation.inputs();
  const at::Tensor first = !inputs.empty() && inputs[0].isTensor() ? inputs[0].toTensor() : at::Tensor();
  double values = 0;
  for (const c10::IValue& output : operation.outputs()) {
    const at::Tensor tensor = output.isTensor() ? output.toTensor() : at::Tensor();
    const bool view = tensor.defined() && first.defined() && tensor.is_alias_of(first);
    if (tensor.defined() && !view) values += static_cast<double>(tensor.numel());
  }
  counting->multiply_adds_ += values * terms(operation);
}

}  // namespace motley::learn
